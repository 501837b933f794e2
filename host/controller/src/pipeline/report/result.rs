//! The result of a reconcile: the object's health, the Events, and the action that follows. Has one function for each way in which
//! a reconcile can end. Pure.

use std::time::Duration;

use pilothouse_engine::{
    Outcome,
    contract::{Condition, Measurement, Verdict},
};
use serde_json::{Map, Value};

use super::status::{Health, Report};
use crate::{
    events::Event,
    pipeline::{
        apply::{Failure, FailureClass, FailureReason},
        check::{Desired, DesiredChildren},
        conditions::StatusReason,
    },
    queue::{Action, BACKOFF_FIRST},
};

/// The first delay after a fault that needs a change. The change itself usually triggers a reconcile earlier.
pub const FAULT_BACKOFF: Duration = Duration::from_secs(1);

/// The interval in which a name conflict is checked again. The conflicting object is not ours, so no watch reports its deletion.
const NAME_CONFLICT_RECHECK: Duration = Duration::from_secs(15);

/// The most failures of one reconcile that become Events.
const MAX_FAULT_EVENTS: usize = 5;

/// The result of a reconcile, to be reported.
#[derive(Clone, Debug)]
pub struct ReconcileResult {
    /// The object's health.
    pub health: Health,
    /// The plugin's report; none if there was no answer. The previous report then stays in the status.
    pub plugin_report: Option<PluginReport>,
    /// The host's own Events about faults.
    pub faults: Vec<Event>,
    /// The action that follows.
    pub action: Action,
    /// Whether the plugin's answer to the object's generation was carried out.
    pub is_carried_out: bool,
    /// Whether the next reconcile can be skipped as long as the inputs are the same.
    pub is_final: bool,
    /// The class of the failures, if writes failed.
    pub class: Option<FailureClass>,
}

/// The parts of an answer that are reported.
#[derive(Clone, Debug)]
pub struct PluginReport {
    /// The status fields; none leaves the existing ones.
    pub status: Option<Map<String, Value>>,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// The Events.
    pub events: Vec<Event>,
    /// The measurements.
    pub measurements: Vec<Measurement>,
}

impl PluginReport {
    fn of(desired: Desired) -> Self {
        let Desired { status, conditions, events, measurements, .. } = desired;
        Self { status, conditions, events: events.into_iter().map(Event::from).collect(), measurements }
    }
}

impl ReconcileResult {
    /// The content of the status.
    pub fn report(&self, throttled: Option<StatusReason>) -> Report {
        let plugin_report = self.plugin_report.as_ref();
        Report {
            status: plugin_report.and_then(|plugin_report| plugin_report.status.clone()),
            conditions: plugin_report.map(|plugin_report| plugin_report.conditions.clone()),
            health: self.health.clone(),
            throttled,
        }
    }

    /// Whether the plugin says anything of the status.
    pub fn has_plugin_report(&self) -> bool {
        self.plugin_report.is_some()
    }

    /// The plugin's measurements.
    pub fn measurements(&self) -> &[Measurement] {
        self.plugin_report.as_ref().map_or(&[], |plugin_report| &plugin_report.measurements)
    }

    fn new(health: Health, plugin_report: Option<PluginReport>, action: Action) -> Self {
        Self { health, plugin_report, faults: Vec::new(), action, is_carried_out: false, is_final: false, class: None }
    }
}

/// The plugin failed: no answer.
pub fn call_failed(outcome: &Outcome) -> ReconcileResult {
    match outcome {
        // Callers pass failed outcomes only. The variant is covered so that none can be forgotten.
        Outcome::Response(_) => fault("PluginContractViolated", "the plugin broke the contract"),
        Outcome::Trap(why) => fault("PluginTrapped", &format!("the plugin trapped: {why}")),
        Outcome::Deadline(limit) => fault(
            "PluginDeadlineExceeded",
            &format!(
                "the plugin did not answer within {limit:?}; look for a loop that does not end, or raise spec.limits of its Plugin"
            ),
        ),
        Outcome::MemoryLimit(limit) => fault(
            "PluginMemoryLimitExceeded",
            &format!("the plugin needs more memory than its limit of {} MiB; keep less in memory at once", limit >> 20),
        ),
        Outcome::HostMemory(limit) => fault(
            "HostMemoryUsed",
            &format!(
                "the plugin needs memory that other calls have; all calls together may have {} MiB. It is called again when it \
                 gets it; if that lasts, give the host more memory (--call-memory)",
                limit >> 20
            ),
        ),
        Outcome::OutputLimit(limit) => fault(
            "PluginOutputLimitExceeded",
            &format!(
                "the plugin returned more than its limit of {} KiB; return less, or raise spec.limits of its Plugin",
                limit >> 10
            ),
        ),
        Outcome::Contract(why) => fault("PluginContractViolated", &format!("the plugin broke the contract: {why}")),
    }
}

/// A fault that somebody must fix. The plugin's previous report stays.
pub fn fault(reason: &str, message: &str) -> ReconcileResult {
    let health = Health::Stalled(StatusReason::new(reason, message));
    let faults = vec![Event::warning(reason, message)];
    ReconcileResult { faults, ..ReconcileResult::new(health, None, Action::Backoff(FAULT_BACKOFF)) }
}

/// At least one write failed. The plugin's report counts nevertheless, if there is one. The message has the first permanent
/// failure, because others may pass by themselves, and the number of the rest.
pub fn writes_failed(failures: &[Failure], desired: Option<Desired>) -> ReconcileResult {
    let needs_change = |failure: &&Failure| failure.reason.class() == FailureClass::Permanent;
    let Some(first) = failures.iter().find(needs_change).or(failures.first()) else {
        return fault("ApiServerError", "a write failed");
    };
    let others = failures.len() - 1;
    let more = if others == 0 { String::new() } else { format!("; and {others} more") };
    let why = StatusReason::new(first.reason.as_str(), format!("{}{more}", first.message));
    let is_stalled = first.reason.class() == FailureClass::Permanent;
    let health = if is_stalled { Health::Stalled(why) } else { Health::Progressing(why) };
    let reported = failures.iter().filter(needs_change).take(MAX_FAULT_EVENTS);
    let action = retry_action(first.reason, desired.as_ref().and_then(asked_delay));
    ReconcileResult {
        faults: reported.map(|failure| Event::warning(failure.reason.as_str(), &failure.message)).collect(),
        class: Some(worst_class(failures)),
        ..ReconcileResult::new(health, desired.map(PluginReport::of), action)
    }
}

fn worst_class(failures: &[Failure]) -> FailureClass {
    let has = |class| failures.iter().any(|failure| failure.reason.class() == class);
    let worst_first = [FailureClass::Permanent, FailureClass::Progressing];
    worst_first.into_iter().find(|class| has(*class)).unwrap_or(FailureClass::Transient)
}

/// The action after a failed write, for a plugin that asked to be called after this time: a deadline of its own ends in time, whatever is
/// refused. A server that is overloaded or away is left in peace all the same.
fn retry_action(reason: FailureReason, asked: Option<Duration>) -> Action {
    let asked = asked.map(|asked| asked.max(FAULT_BACKOFF));
    match (reason, reason.class()) {
        (FailureReason::NameConflict, _) => {
            Action::RequeueAfter(asked.map_or(NAME_CONFLICT_RECHECK, |asked| asked.min(NAME_CONFLICT_RECHECK)))
        }
        // A quota or a policy does not change within milliseconds, so the backoff begins at a second.
        (FailureReason::AdmissionDenied, _) | (_, FailureClass::Permanent) => match asked {
            Some(at_most) => Action::BackoffUntil { first: FAULT_BACKOFF, at_most },
            None => Action::Backoff(FAULT_BACKOFF),
        },
        _ => Action::Backoff(BACKOFF_FIRST),
    }
}

/// The reason of an object with deletes that the guard against mass deletion holds back.
pub const DELETES_HELD_BACK: &str = "DeletesHeldBack";

/// The guard against mass deletion holds deletes back. Everything else was applied.
pub fn deletes_held_back(desired: Desired, why: &str, how_to_confirm: &str) -> ReconcileResult {
    let message = format!("the plugin {why}; they are left alone. If that is right, confirm it: {how_to_confirm}");
    let held = fault(DELETES_HELD_BACK, &message);
    let is_retry = matches!(desired.verdict, Verdict::Retry(_));
    let action = if is_retry {
        held.action
    } else {
        // Without backoff: the annotation that confirms the deletes is a change of the object.
        requested_delay(&desired).map_or(Action::AwaitChange, Action::RequeueAfter)
    };
    ReconcileResult {
        action,
        plugin_report: Some(PluginReport::of(desired)),
        is_carried_out: true,
        is_final: !is_retry,
        ..held
    }
}

/// The object is being deleted, and its children go one after the other.
pub fn tearing_down(waiting: &[String]) -> ReconcileResult {
    let message = waiting.first().map_or_else(
        || "waiting until its last children in order are gone".to_owned(),
        |first| with_others(first, waiting),
    );
    let health = Health::Progressing(StatusReason::new("DeletingChildren", message));
    ReconcileResult::new(health, None, Action::AwaitChange)
}

/// The plugin returned other children in every round.
pub fn not_converging(desired: Desired, rounds: usize) -> ReconcileResult {
    let message = format!("the plugin returned other children in each of {rounds} rounds");
    let health = Health::Progressing(StatusReason::new("NotConverging", message));
    let plugin_report = Some(PluginReport::of(desired));
    ReconcileResult {
        is_carried_out: true,
        ..ReconcileResult::new(health, plugin_report, Action::Backoff(FAULT_BACKOFF))
    }
}

/// What an answer that was carried out still needs, each in words.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// Children that must be gone before they are created again.
    pub awaited: Vec<String>,
    /// Children that are not written yet, and what they wait for.
    pub waiting: Vec<String>,
    /// Children that are not as their specs say.
    pub unready: Vec<String>,
}

impl Pending {
    /// The health of an object whose children the answer leaves like this; none if nothing is pending.
    fn health(&self) -> Option<Health> {
        if !self.awaited.is_empty() {
            let message = format!("waiting until {} is deleted", self.awaited.join(", "));
            return Some(Health::Progressing(StatusReason::new("AwaitingDeletion", message)));
        }
        if let Some(first) = self.waiting.first() {
            return Some(Health::Progressing(StatusReason::new("AwaitingChildren", with_others(first, &self.waiting))));
        }
        let first = self.unready.first()?;
        Some(Health::ChildrenNotReady(StatusReason::new("ChildrenNotReady", with_others(first, &self.unready))))
    }
}

/// The first of several, and how many there are besides.
fn with_others(first: &str, all: &[String]) -> String {
    match all.len() {
        0 | 1 => first.to_owned(),
        several => format!("{first}; and {} more", several - 1),
    }
}

/// The answer was carried out, so its verdict decides.
pub fn carried_out(desired: Desired, pending: Pending) -> ReconcileResult {
    let requested = requested_delay(&desired);
    let calm = requested.map_or(Action::AwaitChange, Action::RequeueAfter);
    let mut faults = Vec::new();
    let (health, action) = match &desired.verdict {
        Verdict::Done => {
            let untouched = desired.children == DesiredChildren::Leave;
            let applied = if untouched { Health::ChildrenUntouched } else { Health::Applied };
            (pending.health().unwrap_or(applied), calm)
        }
        Verdict::Wait(waiting) => {
            let why = StatusReason::new(&waiting.reason, &waiting.message);
            (Health::Progressing(why), asked_delay(&desired).map_or(calm, Action::RequeueAfter))
        }
        Verdict::Retry(message) => {
            (Health::Progressing(StatusReason::new("Retrying", message)), Action::Backoff(BACKOFF_FIRST))
        }
        Verdict::Invalid(message) => {
            faults.push(Event::warning("Invalid", message));
            (
                Health::Stalled(StatusReason::new("Invalid", message)),
                requested.map_or(Action::Terminal, Action::RequeueAfter),
            )
        }
    };
    // A retry must call the plugin again, even with the same inputs.
    let is_final = !matches!(action, Action::Backoff(_));
    let plugin_report = Some(PluginReport::of(desired));
    ReconcileResult { faults, is_carried_out: true, is_final, ..ReconcileResult::new(health, plugin_report, action) }
}

/// When the plugin is to be called again at the latest.
fn asked_delay(desired: &Desired) -> Option<Duration> {
    let requested = requested_delay(desired);
    match &desired.verdict {
        Verdict::Wait(waiting) => {
            let delay = Duration::from_secs(waiting.seconds.into());
            Some(requested.map_or(delay, |requested| requested.min(delay)))
        }
        Verdict::Done | Verdict::Retry(_) | Verdict::Invalid(_) => requested,
    }
}

fn requested_delay(desired: &Desired) -> Option<Duration> {
    desired.requeue_after.map(|seconds| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_write_does_not_delay_what_the_plugin_asked_for() {
        let [second, five, minute] = [1, 5, 60].map(Duration::from_secs);
        let until = |at_most| Action::BackoffUntil { first: FAULT_BACKOFF, at_most };
        for (reason, asked, expected) in [
            (FailureReason::AdmissionDenied, None, Action::Backoff(FAULT_BACKOFF)),
            (FailureReason::AdmissionDenied, Some(five), until(five)),
            (FailureReason::ChildInvalid, Some(five), until(five)),
            (FailureReason::ChildInvalid, Some(Duration::ZERO), until(second)),
            (FailureReason::NameConflict, None, Action::RequeueAfter(NAME_CONFLICT_RECHECK)),
            (FailureReason::NameConflict, Some(five), Action::RequeueAfter(five)),
            (FailureReason::NameConflict, Some(minute), Action::RequeueAfter(NAME_CONFLICT_RECHECK)),
            (FailureReason::Conflict, Some(five), Action::Backoff(BACKOFF_FIRST)),
        ] {
            assert_eq!(retry_action(reason, asked), expected, "{reason} {asked:?}");
        }
    }

    #[test]
    fn the_first_permanent_failure_is_reported_with_the_number_of_others() {
        let failure = |reason: FailureReason| Failure::new(reason, format!("{reason}!"));
        let (conflict, invalid, forbidden) =
            (failure(FailureReason::Conflict), failure(FailureReason::ChildInvalid), failure(FailureReason::Forbidden));
        for (failures, expected, events, class) in [
            (vec![&conflict], "Conflict!", 0, FailureClass::Transient),
            (vec![&conflict, &conflict], "Conflict!; and 1 more", 0, FailureClass::Transient),
            (vec![&conflict, &invalid, &forbidden], "ChildInvalid!; and 2 more", 2, FailureClass::Permanent),
        ] {
            let failures: Vec<_> = failures.into_iter().cloned().collect();
            let result = writes_failed(&failures, None);
            let message = match &result.health {
                Health::Progressing(why) | Health::Stalled(why) => why.message.as_str(),
                Health::Applied | Health::ChildrenUntouched | Health::ChildrenNotReady(_) => "",
            };
            assert_eq!((message, result.faults.len(), result.class), (expected, events, Some(class)));
        }
    }
}
