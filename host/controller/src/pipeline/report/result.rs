//! How a reconcile ends: what is reported of the object, what is told as Events, and when it is looked at again. One
//! function for each way to end. Pure.

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
        apply::{Failure, FailureReason, Outlook},
        check::{Desired, DesiredChildren},
        conditions::StatusReason,
    },
    queue::{Action, BACKOFF_FIRST},
};

/// First delay after a fault that needs somebody to change something; what they change asks sooner.
pub const FAULT: Duration = Duration::from_secs(1);

/// How often a taken name is looked at again: the object that has it is not watched.
const NAME_CONFLICT: Duration = Duration::from_secs(15);

/// Failures of one reconcile that are told as Events.
const TOLD_FAILURES: usize = 5;

/// How a reconcile ended, before it is reported.
#[derive(Clone, Debug)]
pub struct ReconcileResult {
    /// How the object is.
    pub health: Health,
    /// The plugin's own words; none where it has none: then what it said before stands.
    pub words: Option<PluginWords>,
    /// Faults, in the host's own words.
    pub faults: Vec<Event>,
    /// What becomes of the object's key.
    pub action: Action,
    /// Whether the plugin's answer to the object's generation was carried out.
    pub is_carried_out: bool,
    /// Whether the same inputs lead to the same again: then there is nothing to do until one changes.
    pub is_final: bool,
    /// Who has to do something, where writes failed.
    pub outlook: Option<Outlook>,
}

/// What the plugin says of the object.
#[derive(Clone, Debug)]
pub struct PluginWords {
    /// Its status fields; none leaves those that are there.
    pub status: Option<Map<String, Value>>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// Its Events. They count once the status that goes with them is written.
    pub events: Vec<Event>,
    /// Its measurements, which count once the status is taken.
    pub measurements: Vec<Measurement>,
}

impl PluginWords {
    fn of(desired: Desired) -> Self {
        let Desired { status, conditions, events, measurements, .. } = desired;
        Self { status, conditions, events: events.into_iter().map(Event::from).collect(), measurements }
    }
}

impl ReconcileResult {
    /// What is to be written into the status.
    pub fn report(&self, slowed: Option<StatusReason>) -> Report {
        let words = self.words.as_ref();
        Report {
            status: words.and_then(|words| words.status.clone()),
            conditions: words.map(|words| words.conditions.clone()),
            health: self.health.clone(),
            slowed,
        }
    }

    /// The plugin's measurements.
    pub fn measurements(&self) -> &[Measurement] {
        self.words.as_ref().map_or(&[], |words| &words.measurements)
    }

    fn new(health: Health, words: Option<PluginWords>, action: Action) -> Self {
        Self { health, words, faults: Vec::new(), action, is_carried_out: false, is_final: false, outlook: None }
    }
}

/// A call that has no answer.
pub fn unanswered(outcome: &Outcome) -> ReconcileResult {
    match outcome {
        // Answers have results of their own.
        Outcome::Response(_) => fault("PluginContractViolated", "the plugin broke the contract"),
        Outcome::Trap(why) => fault("PluginTrapped", &format!("the plugin trapped: {why}")),
        Outcome::Deadline(limit) => {
            fault("PluginDeadlineExceeded", &format!("the plugin did not answer within {limit:?}"))
        }
        Outcome::MemoryLimit(limit) => fault(
            "PluginMemoryLimitExceeded",
            &format!("the plugin needs more memory than its limit of {} MiB", limit >> 20),
        ),
        Outcome::OutputLimit(limit) => fault(
            "PluginOutputLimitExceeded",
            &format!("the plugin returned more than its limit of {} KiB", limit >> 10),
        ),
        Outcome::Contract(why) => fault("PluginContractViolated", &format!("the plugin broke the contract: {why}")),
    }
}

/// A fault that somebody must mend. What the plugin said before stands.
pub fn fault(reason: &str, message: &str) -> ReconcileResult {
    let health = Health::Stalled(StatusReason::new(reason, message));
    let faults = vec![Event::warning(reason, message)];
    ReconcileResult { faults, ..ReconcileResult::new(health, None, Action::Backoff(FAULT)) }
}

/// Writes failed, one at least. What the plugin said of the status, if it was asked, still counts. A failure that needs somebody
/// is told before one that passes.
pub fn failed(failures: &[Failure], desired: Option<Desired>) -> ReconcileResult {
    let needs_change = |failure: &&Failure| failure.reason.outlook() == Outlook::NeedsChange;
    let Some(first) = failures.iter().find(needs_change).or(failures.first()) else {
        return fault("ApiServerError", "a write failed");
    };
    let others = failures.len() - 1;
    let more = if others == 0 { String::new() } else { format!("; and {others} more") };
    let why = StatusReason::new(first.reason.as_str(), format!("{}{more}", first.message));
    let is_stalled = first.reason.outlook() == Outlook::NeedsChange;
    let health = if is_stalled { Health::Stalled(why) } else { Health::Progressing(why) };
    let told = failures.iter().filter(needs_change).take(TOLD_FAILURES);
    ReconcileResult {
        faults: told.map(|failure| Event::warning(failure.reason.as_str(), &failure.message)).collect(),
        outlook: Some(outlook_of_all(failures)),
        ..ReconcileResult::new(health, desired.map(PluginWords::of), retry(first.reason))
    }
}

fn outlook_of_all(failures: &[Failure]) -> Outlook {
    let has = |outlook| failures.iter().any(|failure| failure.reason.outlook() == outlook);
    let worst_first = [Outlook::NeedsChange, Outlook::Progressing];
    worst_first.into_iter().find(|outlook| has(*outlook)).unwrap_or(Outlook::Transient)
}

/// When a write that failed is tried again.
fn retry(reason: FailureReason) -> Action {
    match (reason, reason.outlook()) {
        (FailureReason::NameConflict, _) => Action::RequeueAfter(NAME_CONFLICT),
        (FailureReason::AdmissionDenied, _) | (_, Outlook::NeedsChange) => Action::Backoff(FAULT),
        _ => Action::Backoff(BACKOFF_FIRST),
    }
}

/// The guard holds deletes back: everything else is done.
pub fn held_back(desired: Desired, why: &str, how_to_confirm: &str) -> ReconcileResult {
    let message = format!("the plugin {why}; they are left alone. If that is right, confirm it: {how_to_confirm}");
    let held = fault("DeletesHeldBack", &message);
    let is_retry = matches!(desired.verdict, Verdict::Retry(_));
    let action = if is_retry { held.action } else { asked(&desired).map_or(Action::AwaitChange, Action::RequeueAfter) };
    ReconcileResult { action, words: Some(PluginWords::of(desired)), is_carried_out: true, is_final: !is_retry, ..held }
}

/// The plugin returned other children every time it was shown what it had made.
pub fn not_converging(desired: Desired, rounds: usize) -> ReconcileResult {
    let message = format!("the plugin returned other children in each of {rounds} rounds");
    let health = Health::Progressing(StatusReason::new("NotConverging", message));
    let words = Some(PluginWords::of(desired));
    ReconcileResult { is_carried_out: true, ..ReconcileResult::new(health, words, Action::Backoff(FAULT)) }
}

/// Everything is as the plugin wants it; its verdict says what that means. `awaited` are children that have to go first.
pub fn answered(desired: Desired, awaited: &[String]) -> ReconcileResult {
    let asked = asked(&desired);
    let calm = asked.map_or(Action::AwaitChange, Action::RequeueAfter);
    let mut faults = Vec::new();
    let (health, action) = match &desired.verdict {
        Verdict::Done if !awaited.is_empty() => {
            let message = format!("waiting until {} is deleted", awaited.join(", "));
            (Health::Progressing(StatusReason::new("AwaitingDeletion", message)), calm)
        }
        Verdict::Done if desired.children == DesiredChildren::Leave => (Health::ChildrenLeft, calm),
        Verdict::Done => (Health::Applied, calm),
        Verdict::Wait(waiting) => {
            let delay = Duration::from_secs(waiting.seconds.into());
            let delay = asked.map_or(delay, |asked| asked.min(delay));
            let why = StatusReason::new(&waiting.reason, &waiting.message);
            (Health::Progressing(why), Action::RequeueAfter(delay))
        }
        Verdict::Retry(message) => {
            (Health::Progressing(StatusReason::new("Retrying", message)), Action::Backoff(BACKOFF_FIRST))
        }
        Verdict::Invalid(message) => {
            faults.push(Event::warning("Invalid", message));
            (
                Health::Stalled(StatusReason::new("Invalid", message)),
                asked.map_or(Action::Terminal, Action::RequeueAfter),
            )
        }
    };
    // A plugin that asks for a retry is asked again, whatever it is asked.
    let is_final = !matches!(action, Action::Backoff(_));
    let words = Some(PluginWords::of(desired));
    ReconcileResult { faults, is_carried_out: true, is_final, ..ReconcileResult::new(health, words, action) }
}

fn asked(desired: &Desired) -> Option<Duration> {
    desired.requeue_after.map(|seconds| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_somebody_is_told_before_what_passes_and_how_many_there_are() {
        let failure = |reason: FailureReason| Failure::new(reason, format!("{reason}!"));
        let (conflict, invalid, forbidden) =
            (failure(FailureReason::Conflict), failure(FailureReason::ChildInvalid), failure(FailureReason::Forbidden));
        for (failures, expected, events, outlook) in [
            (vec![&conflict], "Conflict!", 0, Outlook::Transient),
            (vec![&conflict, &conflict], "Conflict!; and 1 more", 0, Outlook::Transient),
            (vec![&conflict, &invalid, &forbidden], "ChildInvalid!; and 2 more", 2, Outlook::NeedsChange),
        ] {
            let failures: Vec<_> = failures.into_iter().cloned().collect();
            let result = failed(&failures, None);
            let message = match &result.health {
                Health::Progressing(why) | Health::Stalled(why) => why.message.as_str(),
                Health::Applied | Health::ChildrenLeft => "",
            };
            assert_eq!((message, result.faults.len(), result.outlook), (expected, events, Some(outlook)));
        }
    }
}
