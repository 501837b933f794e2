//! Pods that are being deleted and do not go: their node is lost, or cannot end them. Pure.

use crate::api::{StuckPod, TerminationTimeoutAction, TrainingJobStatus};
use crate::duration::duration;
use pilothouse_pods::observed_pod::{ObservedPod, PodPhase};
use pilothouse_pods::time::Time;
use std::collections::BTreeSet;

/// How many seconds after its grace period a Pod is told of, nodes and volumes take their time, and after how many its age is told anew:
/// with each second in it, the status would be written each second.
const TOLD_AGES: [u32; 9] = [60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200];

/// From then on, its age is told in whole days.
const SECONDS_PER_DAY: u32 = 86_400;

/// The reason of a Pod that does not go.
pub const FAILED_DELETE: &str = "FailedDeletePod";

/// The reason of a Pod that is deleted without its node.
pub const FORCE_DELETE: &str = "ForceDeletePod";

/// How long a Pod that is being deleted may still exist, and what happens then.
#[derive(Clone, Copy, Debug)]
pub struct TerminationPolicy {
    /// For how many seconds after its grace period; none for any time.
    pub timeout_seconds: Option<u32>,
    /// What happens then.
    pub on_timeout: TerminationTimeoutAction,
}

impl TerminationPolicy {
    /// Whether a Pod has been there for longer.
    pub fn is_exceeded_by(&self, pod: &ObservedPod, now: Time) -> bool {
        let overdue = seconds_overdue(pod, now).zip(self.timeout_seconds);
        overdue.is_some_and(|(overdue, timeout)| overdue >= timeout)
    }

    /// Whether a Pod is deleted without its node. One that its finalizers keep would stay all the same.
    pub fn forces(&self, pod: &ObservedPod, now: Time) -> bool {
        let is_forced = self.on_timeout == TerminationTimeoutAction::ForceDelete && self.is_exceeded_by(pod, now);
        is_forced && !is_kept_by_finalizers(pod)
    }

    /// What is told of a Pod that should have gone long ago: one word, and a sentence.
    pub fn notice(&self, pod: &ObservedPod, now: Time) -> Option<(&'static str, String)> {
        match self.forces(pod, now) {
            true => Some((FORCE_DELETE, forced(pod))),
            false => Some((FAILED_DELETE, notice(pod, now)?)),
        }
    }

    /// What is told of Pods that nobody has a place for in the status.
    pub fn stuck<'p>(&self, pods: impl IntoIterator<Item = &'p ObservedPod>, now: Time) -> Vec<StuckPod> {
        let stuck = pods.into_iter().filter_map(|pod| {
            let (reason, message) = self.notice(pod, now)?;
            Some(StuckPod { pod_name: pod.name().to_owned(), reason: reason.to_owned(), message })
        });
        stuck.collect()
    }

    /// The Pods to delete without their nodes, once a status says so: whatever goes because of a decision goes after it is known.
    pub fn forced_now<'p>(
        &self,
        pods: &'p [ObservedPod],
        old_status: &TrainingJobStatus,
        now: Time,
    ) -> BTreeSet<&'p str> {
        let told = forced_pods(old_status);
        let forced = pods.iter().filter(|pod| self.forces(pod, now) && told.contains(pod.name()));
        forced.map(ObservedPod::name).collect()
    }

    /// What is told of the Pods that are deleted without their nodes, and their names; none if there are none.
    pub fn forced<'p>(&self, pods: &'p [ObservedPod], now: Time) -> Option<(BTreeSet<&'p str>, String)> {
        let pods: Vec<_> = pods.iter().filter(|pod| self.forces(pod, now)).collect();
        let more = match pods.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(", and so are {more} more"),
        };
        let message = format!("{}{more}", forced(pods.first()?));
        Some((pods.into_iter().map(ObservedPod::name).collect(), message))
    }

    /// After how many seconds one of the Pods has to be looked at again.
    pub fn next_look(&self, pods: &[ObservedPod], now: Time) -> Option<u32> {
        pods.iter().filter_map(|pod| next_look(pod, self.timeout_seconds, now)).min()
    }
}

/// The Pods of which a status says that they are deleted without their nodes.
pub fn forced_pods(status: &TrainingJobStatus) -> BTreeSet<&str> {
    let forced = status.problems().filter(|problem| problem.reason == FORCE_DELETE);
    forced.map(|problem| problem.pod_name).collect()
}

/// Whether a status says for the first time of a Pod that it is deleted without its node: then the next call does it.
pub fn tells_of_new_forced_pods(new: &TrainingJobStatus, old: &TrainingJobStatus) -> bool {
    !forced_pods(new).is_subset(&forced_pods(old))
}

/// How many seconds the grace period of a Pod has been over; none if it is not, or if the Pod is not being deleted.
fn seconds_overdue(pod: &ObservedPod, now: Time) -> Option<u32> {
    end_of_grace(pod).filter(|end| now >= *end).map(|end| now.since(end))
}

/// What is told of a Pod that should have gone long ago, without what changes from second to second.
fn notice(pod: &ObservedPod, now: Time) -> Option<String> {
    let overdue = seconds_overdue(pod, now)?;
    let told = TOLD_AGES.into_iter().rfind(|age| *age <= overdue)?;
    let age = if overdue < SECONDS_PER_DAY { told } else { overdue - overdue % SECONDS_PER_DAY };
    Some(sentence(pod, &format!("more than {} ago", duration(age.into()))))
}

/// What is told of a Pod that the job does not wait for any longer.
pub fn last_notice(pod: &ObservedPod, now: Time) -> String {
    let overdue = seconds_overdue(pod, now).unwrap_or_default();
    sentence(pod, &format!("{} ago", duration(overdue.into())))
}

/// What is told of a Pod that is deleted without its node.
fn forced(pod: &ObservedPod) -> String {
    format!("{}; it is deleted without its node, on which its processes may go on", overdue_words(pod))
}

/// After how many seconds a Pod that is being deleted has to be looked at again: when it is to be told of, and when `timeout` is over.
fn next_look(pod: &ObservedPod, timeout: Option<u32>, now: Time) -> Option<u32> {
    let end = end_of_grace(pod)?;
    let days = now.since(end) / SECONDS_PER_DAY;
    let next_day = days.saturating_add(1).saturating_mul(SECONDS_PER_DAY);
    let times = TOLD_AGES.into_iter().chain([next_day]).chain(timeout).map(|seconds| end.plus(seconds));
    times.filter(|time| *time > now).map(|time| time.since(now)).min()
}

/// What is the matter, since when, and what to do.
fn sentence(pod: &ObservedPod, age: &str) -> String {
    let (overdue, name) = (overdue_words(pod), pod.name());
    if is_kept_by_finalizers(pod) {
        let finalizers = pod.finalizers().join(", ");
        return format!("{overdue}, {age}; finalizers keep it until whoever set them takes them off: {finalizers}");
    }
    format!(
        "{overdue}, {age}; if the node is lost, delete the node, or kubectl delete pod {name} --grace-period=0 --force"
    )
}

/// Whether nothing but its finalizers keeps a Pod that is being deleted: its node has ended it, or nobody waits for the node any more.
fn is_kept_by_finalizers(pod: &ObservedPod) -> bool {
    let has_ended = matches!(pod.phase(), PodPhase::Succeeded | PodPhase::Failed);
    let waits_for_node = pod.deletion().is_some_and(|deletion| deletion.grace_period_seconds > 0) && !has_ended;
    !pod.finalizers().is_empty() && !waits_for_node
}

fn overdue_words(pod: &ObservedPod) -> String {
    let (name, node) = (pod.name(), pod.node_name());
    let since = pod.deletion().map(|deletion| deletion.ends_at).unwrap_or_default();
    let place = if node.is_empty() { String::new() } else { format!(" on node '{node}'") };
    format!("Pod {name}{place} should have been gone at {since}")
}

/// When the grace period of a Pod that is being deleted ends.
pub fn end_of_grace(pod: &ObservedPod) -> Option<Time> {
    pod.deletion().and_then(|deletion| Time::parse(deletion.ends_at))
}
