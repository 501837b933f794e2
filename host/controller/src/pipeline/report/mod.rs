//! Stage 7: says what happened where the user looks: log, Events, status, measurements. Nothing is decided about children here.

pub mod result;
pub mod status;
mod throttle;
mod write;

use tokio::time::Instant;

pub use self::write::KnownStatus;
use self::{
    result::{FAULT, ReconcileResult},
    status::Health,
    write::{StatusWrite, Undeclared, WriteRules, write_status},
};
use super::{
    apply::{Outlook, delete::Precondition},
    call::inputs::ObjectState,
    check::measurement::counts,
    conditions::StatusReason,
    work_item::WorkItem,
};
use crate::{
    events::Event,
    object::Object,
    queue::{Action, BACKOFF_FIRST},
    schema::Schema,
};

/// What is known of the reports before.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// What is known of the status.
    known: KnownStatus,
    /// When a status was written last.
    written: Option<Instant>,
    /// What the kind's schema does not take.
    undeclared: Option<Undeclared>,
}

impl Reports {
    /// Whether the status has to be reported anew, for the kind's schema is another one and may take all of it now.
    pub fn are_outdated(&self, schema: Option<&Schema>) -> bool {
        self.undeclared.as_ref().is_some_and(|undeclared| undeclared.is_outdated(schema))
    }
}

/// What became of a report.
#[derive(Clone, Copy, Debug)]
pub struct Reported {
    /// What becomes of the object's key.
    pub action: Action,
    /// Whether the status says it now.
    pub is_told: bool,
    /// The object after its status was written, where nothing else of it changed. None: as it was observed, or not known.
    pub after: Option<ObjectState>,
    /// Whether the object was written, so that `after` is all that is known of it.
    pub is_written: bool,
}

/// Reports a result.
pub async fn report(
    item: &WorkItem<'_>,
    object: &Object,
    result: &ReconcileResult,
    reports: &mut Reports,
    slowed: Option<StatusReason>,
) -> Reported {
    let action = result.action;
    log(item, result);
    result.faults.iter().for_each(|fault| item.tell(object, fault));
    let rules = WriteRules {
        known: reports.known,
        // A plugin counts what its status does not say yet, so a count belongs to the one write that makes it say so.
        precondition: match counts(item.plugin.manifest(), result.measurements()) {
            true => Precondition::SameState,
            false => Precondition::SameObject,
        },
        // What failed is tried again later and later, and must not take its message along.
        hold_details: throttle::left(reports.written, Instant::now()).filter(|_| !matches!(action, Action::Backoff(_))),
    };
    let written = match write_status(item, object, &result.report(slowed), rules, &mut reports.undeclared).await {
        Ok(written) => written,
        Err(failure) => {
            let is_passing = failure.reason.outlook() != Outlook::NeedsChange;
            let action = Action::Backoff(if is_passing { BACKOFF_FIRST } else { FAULT });
            tracing::warn!(
                reason = failure.reason.as_str(),
                decision = action.decision(item.failures),
                "{}",
                failure.message
            );
            if !is_passing {
                item.tell(object, &Event::warning(failure.reason.as_str(), &failure.message));
            }
            return Reported { action, is_told: false, after: None, is_written: false };
        }
    };
    if !matches!(written, StatusWrite::Held(_)) {
        tell_words(item, object, result);
    }
    match written {
        StatusWrite::Held(left) => {
            let action = throttle::action_while_held(action, left);
            Reported { action, is_told: false, after: None, is_written: false }
        }
        StatusWrite::None(known) => {
            reports.known = known;
            Reported { action, is_told: true, after: None, is_written: false }
        }
        StatusWrite::Written { known, state, changed_meanwhile } => {
            (reports.known, reports.written) = (known, Some(Instant::now()));
            let action = if changed_meanwhile { Action::Requeue } else { action };
            Reported { action, is_told: state.is_some(), after: state, is_written: true }
        }
    }
}

/// The plugin's Events and measurements count once the status that goes with them is there.
fn tell_words(item: &WorkItem<'_>, object: &Object, result: &ReconcileResult) {
    item.context.metrics.measurements.record(&item.plugin.name, result.measurements());
    let events = result.words.iter().flat_map(|words| &words.events);
    events.for_each(|event| item.context.events.record(item.plugin.objects.kind(), object, event));
}

fn log(item: &WorkItem<'_>, result: &ReconcileResult) {
    let decision = result.action.decision(item.failures);
    match &result.health {
        Health::Applied | Health::ChildrenLeft => tracing::debug!("reconciled"),
        Health::Progressing(why) => tracing::info!(reason = why.reason, decision, "{}", why.message),
        Health::Stalled(why) => tracing::warn!(reason = why.reason, decision, "{}", why.message),
    }
}
