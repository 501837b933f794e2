//! A job that has ended: its status stays as it is, and what is left of it goes when it shall. It makes no Pods.

use crate::answer::{Answer, Children};
use crate::api::{CleanPodPolicy, TrainingJobStatus};
use crate::children::config_maps::{self, ConfigMap};
use crate::children::{pod::Template, service};
use crate::fingerprint::Match;
use crate::job::{Job, Role};
use crate::live::{LivePod, PodPhase};
use crate::time::Time;
use pilothouse_sdk::{Error, Response};
use std::collections::BTreeMap;

/// Answers. The clock is only read where it matters, so that the host need not ask for nothing.
///
/// # Errors
/// The time cannot be read.
pub fn respond(
    job: &Job<'_>,
    memory: &TrainingJobStatus,
    pods: &[LivePod],
    config_maps: &[ConfigMap],
) -> Result<Response, Error> {
    let mut answer = Answer::new(job, memory);
    answer.status = memory.clone();
    let left = time_left(job, memory)?;
    answer.children = match left {
        Some(0) => none_of(pods),
        _ => remaining(job, memory, pods, config_maps),
    };
    if let Some(seconds) = left.filter(|seconds| *seconds > 0) {
        answer.again_in(seconds);
    }
    Ok(answer.done())
}

/// Seconds until everything is removed, if it ever is.
fn time_left(job: &Job<'_>, memory: &TrainingJobStatus) -> Result<Option<u32>, Error> {
    let end = memory.completion_time.as_deref().and_then(Time::parse);
    let Some((end, seconds)) = end.zip(job.time_to_live()) else { return Ok(None) };
    Ok(Some(end.plus(seconds).since(Time::now()?)))
}

fn none_of(pods: &[LivePod]) -> Children {
    Children::Exactly { list: Vec::new(), removes: !pods.is_empty() }
}

fn remaining(job: &Job<'_>, memory: &TrainingJobStatus, pods: &[LivePod], config_maps: &[ConfigMap]) -> Children {
    let policy = policy(job, memory);
    let stays = |pod: &LivePod| match policy {
        CleanPodPolicy::None => true,
        CleanPodPolicy::Running => matches!(pod.phase(), PodPhase::Succeeded | PodPhase::Failed),
        CleanPodPolicy::All => false,
    };
    let live = || pods.iter().filter(|pod| !pod.is_deleting());
    if policy == CleanPodPolicy::All {
        return none_of(pods);
    }
    let removes = live().any(|pod| !stays(pod));
    let is_ours = |pod: &LivePod| pod.matches(&job.fingerprint) == Match::Same;
    if !removes && !live().all(is_ours) {
        // The spec or the plugin has changed since: these Pods cannot be returned as they are, and nothing need go.
        return Children::Leave;
    }
    let by_name: BTreeMap<&str, &LivePod> = live().map(|pod| (pod.name(), pod)).collect();
    let keeps = |(role, index): &(Role, u32)| {
        by_name.get(job.pod_name(*role, *index).as_str()).is_some_and(|pod| stays(pod) && is_ours(pod))
    };
    let template = Template::of(job);
    let mut list: Vec<_> = job.members().filter(keeps).map(|(role, index)| template.pod(role, index)).collect();
    if policy == CleanPodPolicy::None {
        list.push(service::service(job));
    }
    list.extend(config_maps::hyperparameters(job));
    list.extend(template.config_map());
    list.extend(config_maps::taken(job, config_maps));
    Children::Exactly { list, removes }
}

/// The job's policy. A limit that stopped the job stops its Pods, too, or it would be none.
fn policy(job: &Job<'_>, memory: &TrainingJobStatus) -> CleanPodPolicy {
    let limits = ["DeadlineExceeded", "BackoffLimitExceeded"];
    let failed = memory.condition("Failed").filter(|failed| failed.status == "True");
    let is_stopped = failed.is_some_and(|failed| limits.contains(&failed.reason.as_str()));
    match job.clean_pod_policy() {
        CleanPodPolicy::None if is_stopped => CleanPodPolicy::Running,
        policy => policy,
    }
}
