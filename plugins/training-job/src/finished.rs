//! A job that has ended: its status stays as it is, and its Pods go as its policy says. It creates no Pods.

use crate::api::{CleanPodPolicy, TrainingJobStatus};
use crate::children::config_maps::ConfigMap;
use crate::desired_child::DesiredChild;
use crate::job::Job;
use crate::job_response::{Children, JobResponse};
use pilothouse_pods::observed_pod::{ObservedPod, PodPhase};
use pilothouse_pods::time::Time;
use pilothouse_sdk::Response;

/// The response. The host reads in the status when the job is to be deleted.
pub fn respond(
    job: &Job<'_>,
    old_status: &TrainingJobStatus,
    pods: &[ObservedPod],
    config_maps: &[ConfigMap],
) -> Response {
    let mut response = JobResponse::new(job, old_status);
    response.status = TrainingJobStatus { expiration_time: expiration(job, old_status), ..old_status.clone() };
    response.children = remaining_children(effective_policy(job, old_status), pods, job, config_maps);
    response.done()
}

/// When the job is to be deleted, if it ever is.
pub fn expiration(job: &Job<'_>, status: &TrainingJobStatus) -> Option<String> {
    let end = status.completion_time.as_deref().and_then(Time::parse)?;
    job.ttl_seconds_after_finished().map(|seconds| end.plus(seconds).to_rfc3339())
}

/// The policy of the job. A limit that stopped the job stops its Pods as well, whatever the policy says: they would go on
/// beyond the limit.
fn effective_policy(job: &Job<'_>, old_status: &TrainingJobStatus) -> CleanPodPolicy {
    const LIMITS: [&str; 5] = [
        "DeadlineExceeded",
        "BackoffLimitExceeded",
        "DisruptionLimitExceeded",
        "StartDeadlineExceeded",
        "TerminationTimeoutExceeded",
    ];
    let failed = old_status.condition("Failed").filter(|failed| failed.status == "True");
    let is_stopped_by_limit = failed.is_some_and(|failed| LIMITS.contains(&failed.reason.as_str()));
    match job.clean_pod_policy() {
        CleanPodPolicy::None if is_stopped_by_limit => CleanPodPolicy::Running,
        policy => policy,
    }
}

/// What stays of the children: as it is, whatever became of the spec since the end.
fn remaining_children(
    policy: CleanPodPolicy,
    pods: &[ObservedPod],
    job: &Job<'_>,
    config_maps: &[ConfigMap],
) -> Children {
    let stays = |pod: &ObservedPod| match policy {
        CleanPodPolicy::None => true,
        CleanPodPolicy::Running => matches!(pod.phase(), PodPhase::Succeeded | PodPhase::Failed),
        CleanPodPolicy::All => false,
    };
    let (staying, going): (Vec<_>, Vec<_>) = pods.iter().filter(|pod| !pod.is_deleting()).partition(|pod| stays(pod));
    let mut list: Vec<_> = staying.iter().map(|pod| DesiredChild::kept("v1", "Pod", pod.name())).collect();
    let services = job.kind.remaining_services(job, policy, &staying.iter().map(|pod| pod.name()).collect::<Vec<_>>());
    list.extend(services.iter().map(|service| DesiredChild::kept("v1", "Service", service)));
    if policy != CleanPodPolicy::All {
        list.extend(config_maps.iter().map(|config_map| DesiredChild::kept("v1", "ConfigMap", config_map.name())));
    }
    Children::Exactly { list, removes_pods: !going.is_empty() }
}
