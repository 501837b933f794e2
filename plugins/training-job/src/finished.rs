//! A job that has ended: its status stays as it is, and what is left of it goes when it shall. It makes no Pods.

use crate::answer::{Answer, Children};
use crate::api::{CleanPodPolicy, TrainingJobStatus};
use crate::children::config_maps::{self, ConfigMap};
use crate::children::{pod::Template, service};
use crate::fingerprint::Match;
use crate::job::{Job, Role};
use crate::live::{LivePod, PodPhase};
use crate::time::Time;
use pilothouse_sdk::Response;
use std::collections::BTreeMap;

/// Answers. When the job is deleted, the host reads in the status.
pub fn respond(job: &Job<'_>, memory: &TrainingJobStatus, pods: &[LivePod], config_maps: &[ConfigMap]) -> Response {
    let mut answer = Answer::new(job, memory);
    answer.status = TrainingJobStatus { expiration_time: expiration(job, memory), ..memory.clone() };
    answer.children = remaining(job, memory, pods, config_maps);
    answer.done()
}

/// When the time of the job is over, if it ever is.
pub fn expiration(job: &Job<'_>, status: &TrainingJobStatus) -> Option<String> {
    let end = status.completion_time.as_deref().and_then(Time::parse)?;
    job.time_to_live().map(|seconds| end.plus(seconds).text())
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
