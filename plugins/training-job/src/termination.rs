//! Pods that are being deleted and do not go: their node is lost, or cannot end them. Pure.

use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_pods::time::Time;

/// How many seconds after its grace period a Pod is told of. Nodes and volumes take their time.
const SECONDS_UNTIL_TOLD: u32 = 60;

/// How many seconds the grace period of a Pod has been over; none if it is not, or if the Pod is not being deleted.
pub fn seconds_overdue(pod: &ObservedPod, now: Time) -> Option<u32> {
    end_of_grace(pod).filter(|end| now >= *end).map(|end| now.since(end))
}

/// Whether a Pod should have gone long ago.
pub fn is_stuck(pod: &ObservedPod, now: Time) -> bool {
    seconds_overdue(pod, now).is_some_and(|seconds| seconds >= SECONDS_UNTIL_TOLD)
}

/// After how many seconds a Pod that is being deleted has to be looked at again: when it is to be told of, and when `timeout` is over.
pub fn next_look(pod: &ObservedPod, timeout: Option<u32>, now: Time) -> Option<u32> {
    let end = end_of_grace(pod)?;
    let times = [Some(SECONDS_UNTIL_TOLD), timeout].into_iter().flatten().map(|seconds| end.plus(seconds));
    times.filter(|time| *time > now).map(|time| time.since(now)).min()
}

/// What is the matter, and what to do. It names the time and not the age, which would be another one in each call.
pub fn sentence(pod: &ObservedPod) -> String {
    let (name, node) = (pod.name(), pod.node_name());
    let since = pod.deletion().map(|deletion| deletion.ends_at).unwrap_or_default();
    let place = if node.is_empty() { String::new() } else { format!(" on node '{node}'") };
    format!(
        "Pod {name}{place} should have been gone at {since}; if the node is lost, delete the node, or \
         kubectl delete pod {name} --grace-period=0 --force"
    )
}

fn end_of_grace(pod: &ObservedPod) -> Option<Time> {
    pod.deletion().and_then(|deletion| Time::parse(deletion.ends_at))
}
