//! A job that has ended: its status stays as it is, and its Pods go as its policy says. It creates no Pods.

use crate::api::{CleanPodPolicy, TrainingJobStatus};
use crate::children::workload::{self, Quota};
use crate::desired_child::DesiredChild;
use crate::job::Job;
use crate::job_response::{Children, JobResponse};
use crate::observed::Observed;
use crate::termination;
use pilothouse_pods::observed_pod::{ObservedPod, PodPhase};
use pilothouse_pods::time::Time;
use pilothouse_sdk::{Error, Response};
use std::collections::BTreeMap;

/// The response. The host reads in the status when the job is to be deleted.
///
/// # Errors
/// The clock cannot be read, or a lookup fails.
pub fn respond(job: &Job<'_>, old_status: &TrainingJobStatus, observed: Observed<'_>) -> Result<Response, Error> {
    let (pods, policy) = (observed.pods, job.termination_policy());
    let mut response = JobResponse::new(job, old_status, pods);
    response.status = with_present_pods(old_status, pods);
    response.status.expiration_time = expiration(job, old_status);
    // Without such Pods, the answer does not depend on the time.
    if pods.iter().any(ObservedPod::is_deleting) {
        let now = Time::now()?;
        observed.children.force(&policy.forced_now(pods, old_status, now));
        response.status.stuck_pods = policy.stuck(pods, now);
        response.requeue_after = policy.next_look(pods, now);
    }
    if termination::tells_of_new_forced_pods(&response.status, old_status) {
        response.requeue_within(0);
    }
    response.children = remaining_children(effective_policy(job, old_status, observed)?, job, observed);
    Ok(response.done())
}

/// A status with what became since of the Pods that ran then, whatever became of the spec. How replicas ended stays, also where their Pods
/// are gone.
pub fn with_present_pods(old_status: &TrainingJobStatus, pods: &[ObservedPod]) -> TrainingJobStatus {
    let pods: BTreeMap<&str, &ObservedPod> = pods.iter().map(|pod| (pod.uid(), pod)).collect();
    let mut status = TrainingJobStatus { stuck_pods: Vec::new(), ..old_status.clone() };
    for replica in status.replica_statuses_mut() {
        if !matches!(replica.status.as_str(), "Succeeded" | "Failed") {
            let pod = replica.pod_uid.as_deref().and_then(|uid| pods.get(uid));
            let now = pod.map_or("Missing", |pod| if pod.is_deleting() { "Terminating" } else { pod.display_status() });
            if replica.status != now {
                (replica.reason, replica.message) = (None, None);
                now.clone_into(&mut replica.status);
            }
        }
    }
    let stays = |uid: &str| pods.get(uid).is_some_and(|pod| !pod.is_deleting());
    let workers = || status.worker_statuses.iter();
    let count = |wanted: &str| workers().filter(|worker| worker.status == wanted).count();
    let staying = workers().filter(|worker| worker.pod_uid.as_deref().is_some_and(stays)).count();
    let numbers = [staying, count("Running"), count("Succeeded"), count("Failed")];
    let numbers = numbers.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    [status.replicas, status.active, status.succeeded, status.failed] = numbers;
    status
}

/// When the job is to be deleted, if it ever is.
pub fn expiration(job: &Job<'_>, status: &TrainingJobStatus) -> Option<String> {
    let end = status.completion_time.as_deref().and_then(Time::parse)?;
    job.ttl_seconds_after_finished().map(|seconds| end.plus(seconds).to_rfc3339())
}

/// The policy of the job. A limit that stopped the job stops its Pods as well, whatever the policy says: they would go on
/// beyond the limit. So does the loss of the quota that they use.
fn effective_policy(
    job: &Job<'_>,
    old_status: &TrainingJobStatus,
    observed: Observed<'_>,
) -> Result<CleanPodPolicy, Error> {
    const LIMITS: [&str; 5] = [
        "DeadlineExceeded",
        "BackoffLimitExceeded",
        "DisruptionLimitExceeded",
        "StartDeadlineExceeded",
        "TerminationTimeoutExceeded",
    ];
    let failed = old_status.condition("Failed").filter(|failed| failed.status == "True");
    let is_stopped_by_limit = failed.is_some_and(|failed| LIMITS.contains(&failed.reason.as_str()));
    Ok(match job.clean_pod_policy() {
        CleanPodPolicy::None if is_stopped_by_limit || has_lost_quota(job, observed)? => CleanPodPolicy::Running,
        policy => policy,
    })
}

fn has_lost_quota(job: &Job<'_>, observed: Observed<'_>) -> Result<bool, Error> {
    Ok(observed.has_workload && matches!(workload::quota(job, true, true)?, Quota::Lost(_)))
}

/// What stays of the children: as it is, whatever became of the spec since the end.
fn remaining_children(policy: CleanPodPolicy, job: &Job<'_>, observed: Observed<'_>) -> Children {
    let Observed { pods, config_maps, .. } = observed;
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
    // Also those that stay, and still run.
    list.extend(workload::kept_while_used(job.name, observed.has_workload, pods));
    Children::Exactly { list, removes_pods: !going.is_empty() }
}
