//! Whether the cluster ended a Pod, which is no failure of the program in it. Pure.

use pilothouse_pods::observed_pod::ObservedPod;

/// The condition that the API server, the scheduler, the kubelet and the controllers of taints and of garbage give a Pod before they
/// end it.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Reasons of Pods that the cluster ended, or never let run, from components that set no condition.
const DISRUPTION_REASONS: [&str; 8] = [
    "Evicted",
    "NodeAffinity",
    "NodeLost",
    "NodeShutdown",
    "Preempting",
    "Shutdown",
    "Terminated",
    "UnexpectedAdmissionError",
];

/// Reasons of the kubelet for a Pod that another one left no room for: `OutOfcpu`, `OutOfnvidia.com/gpu`.
const OUT_OF: &str = "OutOf";

/// Whether the cluster ended a Pod: it was evicted or preempted, its node was tainted or shut down.
pub fn is_disrupted(pod: &ObservedPod) -> bool {
    let reason = pod.reason();
    pod.has_condition(DISRUPTION_TARGET, "True") || DISRUPTION_REASONS.contains(&reason) || reason.starts_with(OUT_OF)
}
