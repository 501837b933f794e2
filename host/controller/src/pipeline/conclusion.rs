//! How a reconcile ends: what is reported of the object, what is told as Events, and when it is looked at again. One
//! function for each way to end. Pure.

use std::time::Duration;

use pilothouse_engine::{
    Outcome,
    contract::{Measurement, Response, Verdict},
};

use super::{
    ROUNDS,
    apply::Failure,
    check::Desired,
    inputs::Converged,
    status::{Health, Report, Why},
};
use crate::{
    events::Note,
    queue::{BACKOFF_FIRST, Next},
};

/// First delay after a fault that needs somebody to change something; what they change asks sooner.
pub(super) const FAULT: Duration = Duration::from_secs(1);

/// How often a taken name is looked at again: the object that has it is not watched.
const NAME_CONFLICT: Duration = Duration::from_secs(15);

/// How a reconcile ended, before it is reported.
pub(super) struct Conclusion {
    pub(super) report: Report,
    /// The host's own words on a fault.
    pub(super) notes: Vec<Note>,
    /// The plugin's events. They count once the status that goes with them is written.
    pub(super) events: Vec<Note>,
    pub(super) next: Next,
    /// Samples of the plugin's metrics, which count once the status is taken.
    pub(super) measurements: Vec<Measurement>,
    /// Whether the plugin's answer to the object's generation was carried out.
    pub(super) carried_out: bool,
    /// What it was based on, if the same inputs would lead to the same again.
    pub(super) converged: Option<Converged>,
}

/// The answer of a call, or how the reconcile ends for want of one.
pub(super) fn answer(outcome: Outcome) -> Result<Response, Box<Conclusion>> {
    let fault = match outcome {
        Outcome::Response(response) => return Ok(response),
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
    };
    Err(fault.into())
}

/// A fault that somebody must mend. What the plugin said before stands.
pub(super) fn fault(reason: &str, message: &str) -> Conclusion {
    Conclusion {
        report: Report {
            status: None,
            conditions: None,
            health: Health::Stalled(Why::new(reason, message)),
            slowed: None,
        },
        notes: vec![Note::warning(reason, message)],
        events: Vec::new(),
        next: Next::Backoff(FAULT),
        measurements: Vec::new(),
        carried_out: false,
        converged: None,
    }
}

/// A write failed: what the plugin said of the status, if it was asked, still counts.
pub(super) fn failed(failure: &Failure, desired: Option<&Desired>) -> Conclusion {
    let Failure { reason, message, passing } = failure;
    let why = Why::new(*reason, message);
    let next = match (*reason, passing) {
        ("NameConflict", _) => Next::After(NAME_CONFLICT),
        (_, true) => Next::Backoff(BACKOFF_FIRST),
        (_, false) => Next::Backoff(FAULT),
    };
    Conclusion {
        report: Report {
            status: desired.and_then(|desired| desired.status.clone()),
            conditions: desired.map(|desired| desired.conditions.clone()),
            health: if *passing { Health::Progressing(why) } else { Health::Stalled(why) },
            slowed: None,
        },
        notes: if *passing { Vec::new() } else { vec![Note::warning(reason, message)] },
        events: Vec::new(),
        next,
        measurements: desired.map(|desired| desired.measurements.clone()).unwrap_or_default(),
        carried_out: false,
        converged: None,
    }
}

/// The guard holds deletes back: everything else is done.
pub(super) fn held_back(desired: Desired, why: &str, how_to_confirm: &str) -> Conclusion {
    let message = format!("the plugin {why}; they are left alone. If that is right, confirm it: {how_to_confirm}");
    let Conclusion { report, notes, next, .. } = fault("DeletesHeldBack", &message);
    let report = Report { status: desired.status, conditions: Some(desired.conditions), ..report };
    let rest = desired.requeue_after.map_or(Next::Rest, |seconds| Next::After(Duration::from_secs(seconds.into())));
    let next = if matches!(desired.verdict, Verdict::Retry(_)) { next } else { rest };
    Conclusion {
        report,
        notes,
        events: Vec::new(),
        next,
        measurements: desired.measurements,
        carried_out: true,
        converged: None,
    }
}

/// The plugin returned other children every time it was shown what it had made.
pub(super) fn restless(desired: Desired) -> Conclusion {
    let message = format!("the plugin returned other children in each of {ROUNDS} rounds");
    let health = Health::Progressing(Why::new("NotConverging", message));
    Conclusion {
        report: Report { status: desired.status, conditions: Some(desired.conditions), health, slowed: None },
        notes: Vec::new(),
        events: Vec::new(),
        next: Next::Backoff(FAULT),
        measurements: desired.measurements,
        carried_out: true,
        converged: None,
    }
}

/// Everything is as the plugin wants it; its verdict says what that means.
pub(super) fn answered(desired: Desired, awaited: &[String]) -> Conclusion {
    let Desired { verdict, status, conditions, measurements, requeue_after, .. } = desired;
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let asked = requeue_after.map(seconds);
    let rest = asked.map_or(Next::Rest, Next::After);
    let (health, notes, next) = match verdict {
        Verdict::Done if !awaited.is_empty() => {
            let message = format!("waiting until {} is deleted", awaited.join(", "));
            (Health::Progressing(Why::new("AwaitingDeletion", message)), Vec::new(), rest)
        }
        Verdict::Done => (Health::Applied, Vec::new(), rest),
        Verdict::Wait(waiting) => {
            let delay = asked.map_or(seconds(waiting.seconds), |asked| asked.min(seconds(waiting.seconds)));
            (Health::Progressing(Why::new(waiting.reason, waiting.message)), Vec::new(), Next::After(delay))
        }
        Verdict::Retry(message) => {
            (Health::Progressing(Why::new("Retrying", message)), Vec::new(), Next::Backoff(BACKOFF_FIRST))
        }
        Verdict::Invalid(message) => {
            let note = Note::warning("Invalid", &message);
            (Health::Stalled(Why::new("Invalid", message)), vec![note], asked.map_or(Next::GiveUp, Next::After))
        }
    };
    let report = Report { status, conditions: Some(conditions), health, slowed: None };
    Conclusion { report, notes, events: Vec::new(), next, measurements, carried_out: true, converged: None }
}
