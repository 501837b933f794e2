//! Stage 7: reports the result of a reconcile in the log, in Events, in the status, and in the plugin's measurements.
//!
//! # Flow
//!
//! `rounds` builds a [`result::ReconcileResult`]. [`report()`] logs it, records the host's own Events, writes the status, and then
//! records the plugin's Events and measurements.
//!
//! # Guarantees
//!
//! - The status is written only if it differs, and never for a decorator, which does not own the object.
//! - The plugin's Events and measurements are recorded only after a status that belongs to them is written or was there already. So
//!   a failed status write does not count a measurement twice.
//!
//! # Caveats
//!
//! Details of a status are written once a second at most (`throttle.rs`). Nothing is decided about children here.

pub mod result;
pub mod status;
mod throttle;
mod write;

use tokio::time::Instant;

pub use self::write::KnownStatus;
use self::{
    result::{FAULT_BACKOFF, ReconcileResult},
    status::Health,
    write::{StatusWrite, UndeclaredFields, WriteRules, write_status},
};
use super::{
    apply::{Failure, FailureClass, FailureReason, delete::Precondition},
    call::inputs::ObjectState,
    check::measurement::accumulates,
    conditions::StatusReason,
    work_item::WorkItem,
};
use crate::{
    events::Event,
    object::Object,
    queue::{Action, BACKOFF_FIRST},
    schema::Schema,
};

/// The number of failures in a row after which an internal error of the API server counts as a refusal of the status.
const FAILED_WRITES: u32 = 3;

/// The number of failures in a row after which even a passing fault of a status write is a Warning Event, because nothing else can tell
/// of it: with the backoff between them they have taken ten seconds, as other passing faults must before they are one.
const LASTING_FAILURES: u32 = 11;

/// The state that is kept of previous reports.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// What is known about the status.
    known: KnownStatus,
    /// The time of the last status write.
    written: Option<Instant>,
    /// The status fields that the kind's schema does not declare.
    undeclared: Option<UndeclaredFields>,
}

impl Reports {
    /// Whether status fields were dropped and the kind has a new schema since, which may declare them.
    pub fn are_outdated(&self, schema: Option<&Schema>) -> bool {
        self.undeclared.as_ref().is_some_and(|undeclared| undeclared.is_outdated(schema))
    }
}

/// The result of a report.
#[derive(Clone, Copy, Debug)]
pub struct Reported {
    /// The action that follows.
    pub action: Action,
    /// Whether the status shows the result now.
    pub is_reported: bool,
    /// The object after the status write; none if nothing was written, or if something else of the object changed as well.
    pub after: Option<ObjectState>,
}

/// Reports a result. `throttled` is the reason if the object is throttled.
pub async fn report(
    item: &WorkItem<'_>,
    object: &Object,
    result: &ReconcileResult,
    reports: &mut Reports,
    throttled: Option<StatusReason>,
) -> Reported {
    let action = result.action;
    log(item, result);
    if reports.are_outdated(item.plugin.objects.schema().as_ref()) {
        // The last status was written without the fields that the previous schema lacked. It must not count as complete.
        reports.known = KnownStatus::default();
    }
    // Before the status is written, because the API server may refuse it.
    for fault in &result.faults {
        item.record_fault(object, fault);
    }
    if item.plugin.manifest().decorates.is_some() {
        // The status is its owner's. Events say what happens.
        publish_plugin_report(item, object, result);
        return Reported { action, is_reported: true, after: None };
    }
    let rules = WriteRules {
        known: reports.known,
        // A plugin counts what its status does not show yet. If the object changed in the meantime, the status may already show
        // it, so a status with counts is written to exactly the observed state.
        precondition: match accumulates(item.plugin.manifest(), result.measurements()) {
            true => Precondition::SameState,
            false => Precondition::SameObject,
        },
        // A failure is written at once: its next retry may be far away.
        hold_details: throttle::remaining(reports.written, Instant::now()).filter(|_| !action.is_retry()),
    };
    let written = match write_status(item, object, &result.report(throttled), rules, &mut reports.undeclared).await {
        Ok(written) => written,
        Err(failure) => {
            let failure = report_refused_status(item, object, result, failure, reports).await;
            let is_passing = failure.reason.class() != FailureClass::Permanent;
            // Not the result's own action: the status has to be written even if nothing else is left to do.
            let action = Action::Backoff(if is_passing { BACKOFF_FIRST } else { FAULT_BACKOFF });
            tracing::warn!(
                reason = failure.reason.as_str(),
                decision = action.decision(item.failures),
                "{}",
                failure.message
            );
            if !is_passing || item.failures >= LASTING_FAILURES {
                item.record_fault(object, &Event::warning(failure.reason.as_str(), &failure.message));
            }
            return Reported { action, is_reported: false, after: None };
        }
    };
    if !matches!(written, StatusWrite::Held(_)) {
        publish_plugin_report(item, object, result);
    }
    match written {
        StatusWrite::Held(left) => {
            let action = throttle::action_while_held(action, left);
            Reported { action, is_reported: false, after: None }
        }
        StatusWrite::Unchanged(known) => {
            reports.known = known;
            Reported { action, is_reported: true, after: None }
        }
        StatusWrite::Written { known, state, changed_meanwhile } => {
            (reports.known, reports.written) = (known, Some(Instant::now()));
            let action = if changed_meanwhile { Action::Requeue } else { action };
            Reported { action, is_reported: state.is_some(), after: state }
        }
    }
}

/// Reports in the host's own conditions that the API server refuses the plugin's status. Without them, the object would keep conditions
/// that are not true any more. The API server answers 422 or 500 to a value of a wrong type; if it accepts the status without the
/// plugin's fields, these were the cause. Returns the failure with the reason that is known then.
async fn report_refused_status(
    item: &WorkItem<'_>,
    object: &Object,
    result: &ReconcileResult,
    failure: Failure,
    reports: &mut Reports,
) -> Failure {
    let may_be_invalid = match failure.reason {
        FailureReason::StatusInvalid => true,
        // A single one is probably a fault of the API server itself, and transient.
        FailureReason::ApiServerError => item.failures >= FAILED_WRITES,
        _ => false,
    };
    if !may_be_invalid || !result.has_plugin_report() {
        return failure;
    }
    let refused = Failure { reason: FailureReason::StatusInvalid, ..failure.clone() };
    let fault = result::fault(refused.reason.as_str(), &refused.message);
    let rules = WriteRules { known: reports.known, precondition: Precondition::SameObject, hold_details: None };
    match write_status(item, object, &fault.report(None), rules, &mut reports.undeclared).await {
        Ok(StatusWrite::Unchanged(known) | StatusWrite::Written { known, .. }) => {
            reports.known = known;
            refused
        }
        Ok(StatusWrite::Held(_)) | Err(_) => failure,
    }
}

/// Records the plugin's Events and measurements.
fn publish_plugin_report(item: &WorkItem<'_>, object: &Object, result: &ReconcileResult) {
    item.context.metrics.measurements.record(&item.plugin.name, result.measurements());
    for event in result.plugin_report.iter().flat_map(|report| &report.events) {
        item.record_plugin_event(object, event);
    }
}

fn log(item: &WorkItem<'_>, result: &ReconcileResult) {
    let decision = result.action.decision(item.failures);
    match &result.health {
        Health::Applied | Health::ChildrenUntouched => tracing::debug!("reconciled"),
        Health::ChildrenNotReady(why) | Health::Progressing(why) => {
            tracing::info!(reason = why.reason, decision, "{}", why.message)
        }
        Health::Stalled(why) => tracing::warn!(reason = why.reason, decision, "{}", why.message),
    }
}
