//! A job that has ended: its status stays as it is, and its Pods go as its policy says. It creates no Pods.

use crate::api::{CleanPodPolicy, TrainingJobStatus};
use crate::children::config_maps::{self, ConfigMap};
use crate::children::{pod::PodTemplate, service};
use crate::fingerprint::{TemplateMatch, template_match};
use crate::job::{Job, ReplicaId};
use crate::job_response::{Children, JobResponse};
use crate::time::Time;
use pilothouse_pods::observed_pod::{ObservedPod, PodPhase};
use pilothouse_sdk::Response;
use std::collections::BTreeMap;

/// The response. The host reads in the status when the job is to be deleted.
pub fn respond(
    job: &Job<'_>,
    old_status: &TrainingJobStatus,
    pods: &[ObservedPod],
    config_maps: &[ConfigMap],
) -> Response {
    let mut response = JobResponse::new(job, old_status);
    response.status = TrainingJobStatus { expiration_time: expiration(job, old_status), ..old_status.clone() };
    response.children = remaining_children(job, effective_policy(job, old_status), pods, config_maps);
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
    const LIMITS: [&str; 2] = ["DeadlineExceeded", "BackoffLimitExceeded"];
    let failed = old_status.condition("Failed").filter(|failed| failed.status == "True");
    let is_stopped_by_limit = failed.is_some_and(|failed| LIMITS.contains(&failed.reason.as_str()));
    match job.clean_pod_policy() {
        CleanPodPolicy::None if is_stopped_by_limit => CleanPodPolicy::Running,
        policy => policy,
    }
}

fn remaining_children(
    job: &Job<'_>,
    policy: CleanPodPolicy,
    pods: &[ObservedPod],
    config_maps: &[ConfigMap],
) -> Children {
    if policy == CleanPodPolicy::All {
        return Children::Exactly { list: Vec::new(), removes_pods: !pods.is_empty() };
    }
    let stays = |pod: &ObservedPod| {
        policy == CleanPodPolicy::None || matches!(pod.phase(), PodPhase::Succeeded | PodPhase::Failed)
    };
    let existing = || pods.iter().filter(|pod| !pod.is_deleting());
    let removes_pods = existing().any(|pod| !stays(pod));
    let is_current = |pod: &ObservedPod| template_match(pod, &job.fingerprint) == TemplateMatch::Current;
    // The spec or the plugin has changed since the end. Pods of another template cannot be returned as they are; they are left
    // alone by returning no children, as long as no Pod has to go.
    if !removes_pods && !existing().all(is_current) {
        return Children::Unchanged;
    }
    let by_name: BTreeMap<&str, &ObservedPod> = existing().map(|pod| (pod.name(), pod)).collect();
    let keeps_pod = |replica: &ReplicaId| {
        by_name.get(job.pod_name(*replica).as_str()).is_some_and(|pod| stays(pod) && is_current(pod))
    };
    let template = PodTemplate::of(job);
    let mut list: Vec<_> = job.replicas().filter(keeps_pod).map(|replica| template.pod(replica)).collect();
    if policy == CleanPodPolicy::None {
        list.push(service::service(job));
    }
    list.extend(config_maps::hyperparameters(job));
    list.extend(template.config_map());
    list.extend(config_maps::existing_snapshots(job, config_maps));
    Children::Exactly { list, removes_pods }
}
