//! Whether the SLA is met, judged by what the autoscaler observed. What nobody measures is not met by silence: it is unverified. Pure.

use crate::autoscaler::MetricNames;
use crate::observed_hpa::ObservedHpa;
use crate::observed_scaled_object::Silence;
use crate::sla::Targets;
use pilothouse_pods::transition::Announced;
use pilothouse_sdk::{Condition, ConditionStatus};

/// Whether the latency is within the SLA.
pub const MET: &str = "SLAMet";

/// Whether nobody can tell.
pub const UNVERIFIED: &str = "SLAUnverified";

/// The Events about it.
pub const ANNOUNCED: [Announced<'_>; 1] =
    [Announced { condition_type: MET, on_true: Some("SLAMet"), on_false: Some("SLAMissed") }];

/// The reason where nobody knows what one replica takes, and what that means.
const CAPACITY_UNKNOWN: &str = "CapacityUnknown";
const NO_CAPACITY: &str =
    "spec.sla.throughputPerReplica is not given, so nobody knows how many replicas spec.sla.minThroughput needs";

/// The conditions about an SLA that has a latency or a throughput; none for one that has neither. Where no Pod is ready, nothing is served
/// within any latency, whatever was observed before. Where there is no autoscaler, `silence` may say why.
pub fn of(
    targets: &Targets,
    names: &MetricNames,
    hpa: Option<&ObservedHpa>,
    ready: i32,
    silence: Option<Silence>,
) -> Vec<Condition> {
    let Some(max) = targets.max_latency else {
        return if targets.has_unknown_capacity { unverified(CAPACITY_UNKNOWN, NO_CAPACITY) } else { Vec::new() };
    };
    if ready == 0 && hpa.is_some() && !names.latency.is_empty() {
        return unverified("NoPodsReady", "no Pod is ready, so no request is served within any latency");
    }
    match (observed(names, hpa, ready), hpa.and_then(ObservedHpa::inactive), hpa) {
        (Some(latency), _, _) => verified(latency, max, targets.has_unknown_capacity),
        (None, _, _) if names.latency.is_empty() => unverified(
            "NoLatencyMetric",
            "the engine measures no such latency, so nobody can tell whether the SLA is met",
        ),
        (None, Some(inactive), _) => unverified(&inactive.reason, &inactive.message),
        (None, None, Some(_)) => {
            unverified("NotObservedYet", &format!("the autoscaler has not read {} yet", names.latency))
        }
        (None, None, None) => match silence {
            Some(silence) => unverified(silence.reason(), &silence.message()),
            None => unverified("NotObserved", "no autoscaler of this object reads the latency"),
        },
    }
}

/// The milliseconds of latency that were observed last; none where no Pod is ready.
pub fn observed(names: &MetricNames, hpa: Option<&ObservedHpa>, ready: i32) -> Option<f64> {
    hpa.filter(|_| ready > 0 && !names.latency.is_empty())?.latency(&names.latency)
}

/// Milliseconds in words.
pub fn in_words(milliseconds: f64) -> String {
    format!("{}ms", milliseconds.round())
}

#[allow(clippy::cast_precision_loss, reason = "a latency of at most a day")]
fn verified(latency: f64, max: u64, has_unknown_capacity: bool) -> Vec<Condition> {
    let is_met = latency <= max as f64;
    let (reason, relation) = if is_met { ("WithinSLA", "at most") } else { ("LatencyAboveSLA", "more than") };
    let message =
        format!("95 of 100 requests take {}, {relation} the {max}ms of spec.sla.maxLatency", in_words(latency));
    let (of_rest, told) = if has_unknown_capacity { (CAPACITY_UNKNOWN, NO_CAPACITY) } else { ("Verified", "") };
    vec![
        Condition::when(MET, is_met, reason, &message),
        Condition::when(UNVERIFIED, has_unknown_capacity, of_rest, told),
    ]
}

fn unverified(reason: &str, message: &str) -> Vec<Condition> {
    vec![
        Condition::new(MET, ConditionStatus::Unknown, reason, message),
        Condition::when(UNVERIFIED, true, reason, message),
    ]
}
