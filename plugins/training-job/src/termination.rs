//! Pods that are being deleted and do not go: their node is lost, or cannot end them. Pure.

use crate::api::TerminationTimeoutAction;
use crate::duration::duration;
use crate::job::Job;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_pods::time::Time;

/// How many seconds after its grace period a Pod is told of, nodes and volumes take their time, and after how many its age is told anew:
/// with each second in it, the status would be written each second.
const TOLD_AGES: [u32; 9] = [60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200];

/// From then on, its age is told in whole days.
const SECONDS_PER_DAY: u32 = 86_400;

/// How many seconds the grace period of a Pod has been over; none if it is not, or if the Pod is not being deleted.
pub fn seconds_overdue(pod: &ObservedPod, now: Time) -> Option<u32> {
    end_of_grace(pod).filter(|end| now >= *end).map(|end| now.since(end))
}

/// Whether a Pod has been there for longer than the job waits.
pub fn exceeds_timeout(job: &Job<'_>, pod: &ObservedPod, now: Time) -> bool {
    let overdue = seconds_overdue(pod, now).zip(job.termination_timeout_seconds());
    overdue.is_some_and(|(overdue, timeout)| overdue >= timeout)
}

/// What is told of a Pod that should have gone long ago, without what changes from second to second.
pub fn notice(pod: &ObservedPod, now: Time) -> Option<String> {
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
pub fn forced(pod: &ObservedPod) -> String {
    format!("{}; it is deleted without its node, on which its processes may go on", overdue_words(pod))
}

/// Whether a Pod is deleted without its node.
pub fn is_forced(job: &Job<'_>, pod: &ObservedPod, now: Time) -> bool {
    job.on_termination_timeout() == TerminationTimeoutAction::ForceDelete && exceeds_timeout(job, pod, now)
}

/// After how many seconds a Pod that is being deleted has to be looked at again: when it is to be told of, and when `timeout` is over.
pub fn next_look(pod: &ObservedPod, timeout: Option<u32>, now: Time) -> Option<u32> {
    let end = end_of_grace(pod)?;
    let days = now.since(end) / SECONDS_PER_DAY;
    let next_day = days.saturating_add(1).saturating_mul(SECONDS_PER_DAY);
    let times = TOLD_AGES.into_iter().chain([next_day]).chain(timeout).map(|seconds| end.plus(seconds));
    times.filter(|time| *time > now).map(|time| time.since(now)).min()
}

/// What is the matter, since when, and what to do.
fn sentence(pod: &ObservedPod, age: &str) -> String {
    let name = pod.name();
    format!(
        "{}, {age}; if the node is lost, delete the node, or kubectl delete pod {name} --grace-period=0 --force",
        overdue_words(pod)
    )
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
