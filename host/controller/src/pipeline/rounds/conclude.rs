//! The ends of a round that are reported. Decides nothing about what the status says (`report/result.rs`).

use tokio::time::Instant;

use super::{ReconcileEnd, RoundEnd, Rounds};
use crate::{
    events::Event,
    object::Object,
    pipeline::{
        apply::{Failure, FailureClass},
        observe::{ObserveError, Observed},
        report::{
            self, Reported,
            result::{self, ReconcileResult, writes_failed},
            status::Health,
        },
        state::{ObjectState, OngoingFailure},
    },
    queue::Action,
};

impl Rounds<'_> {
    /// Reports an answer that was carried out. If the status shows it, the next reconcile with the same inputs has nothing to do.
    pub(super) async fn conclude_answer(
        &self,
        state: &mut ObjectState,
        observed: &Observed,
        result: ReconcileResult,
    ) -> RoundEnd {
        let is_final = result.is_final;
        let action = result.action;
        let Some(reported) = self.report(state, &observed.object, result).await else {
            return RoundEnd::finished(action);
        };
        if let Some(answer) = &mut state.answer {
            match reported.is_reported && is_final {
                true => answer.mark_reported(observed, reported.after),
                false => answer.mark_unreported(),
            }
        }
        RoundEnd::finished(reported.action)
    }

    /// Reports a reconcile that did not carry out an answer.
    pub(super) async fn conclude(&self, state: &mut ObjectState, object: &Object, result: ReconcileResult) -> RoundEnd {
        let action = result.action;
        if let Some(answer) = &mut state.answer {
            answer.mark_unreported();
        }
        RoundEnd::finished(self.report(state, object, result).await.map_or(action, |reported| reported.action))
    }

    /// Reports that one write failed.
    pub(super) async fn fail(&self, state: &mut ObjectState, object: &Object, failure: Failure) -> RoundEnd {
        self.conclude(state, object, writes_failed(&[failure], None)).await
    }

    /// Ends a round in which the object or its children are not known.
    pub(super) async fn unobserved(&self, state: &mut ObjectState, reason: ObserveError) -> RoundEnd {
        let item = &self.item;
        match reason {
            ObserveError::Gone => {
                let kind = &item.plugin.objects.kind().kind;
                tracing::debug!("{kind} resource not found. Ignoring since object must be deleted");
                RoundEnd::Finished(ReconcileEnd::ObjectGone)
            }
            ObserveError::NotSynced => RoundEnd::finished(Action::AwaitChange),
            ObserveError::Unknown { kind, why } => {
                let Some(object) = item.plugin.objects.store().get(&item.key.object) else {
                    return RoundEnd::finished(Action::AwaitChange);
                };
                let message = format!("the children of kind {} are not known: {why}", kind.kind);
                self.conclude(state, &object, result::fault("ChildrenUnknown", &message)).await
            }
        }
    }

    /// Reports a result. Returns none for a transient failure that is too recent to report: most of them are over with the next
    /// try.
    async fn report(&self, state: &mut ObjectState, object: &Object, mut result: ReconcileResult) -> Option<Reported> {
        let item = &self.item;
        item.notes.concluded(&result.health.to_string());
        let is_passing = matches!(result.class, Some(FailureClass::Transient | FailureClass::Progressing));
        // Any other result ends the failure, so that two conflicts with a success in between are not reported as one that lasts.
        state.ongoing_failure =
            is_passing.then(|| OngoingFailure::continued_or_new(state.ongoing_failure, Instant::now()));
        if let Some(lasting) = state.ongoing_failure {
            let now = Instant::now();
            if result.class == Some(FailureClass::Transient) && !lasting.is_due_for_status(now) {
                let decision = result.action.decision(item.failures);
                tracing::debug!(decision, health = ?result.health, "a fault that is not reported before it lasts");
                return None;
            }
            if let (Health::Progressing(why), true) = (&result.health, lasting.is_due_for_event(now)) {
                result.faults.push(Event::warning(&why.reason, &why.message));
            }
        }
        // The report below marks this generation as observed in the status. Without this note, the deletion guard would take it for
        // carried out and hold back the deletes that the user's change asks for.
        if result.is_carried_out || item.plugin.manifest().decorates.is_some() {
            state.pending_generation = None;
        } else if !object.is_observed() {
            state.pending_generation = Some(object.generation);
        }
        let throttled = self.hot_loops.throttled_reason(item.key);
        Some(report::report(item, object, &result, &mut state.reports, throttled).await)
    }
}
