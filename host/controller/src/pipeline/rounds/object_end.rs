//! The end of an object: its time is over, or it is being deleted. Deletes only an object that is over, and children of an object that
//! is being deleted.

use pilothouse_engine::contract::Measurement;

use super::{RoundEnd, Rounds};
use crate::{
    events::Event,
    object::Object,
    pipeline::{
        apply::Failure,
        lifecycle::{expiry, finalizer},
        observe::Observed,
        plan::{self, Plan},
        report::result::{self, writes_failed},
        state::ObjectState,
    },
    queue::Action,
};

/// The reason of the Event for a cleanup that the plugin could not do.
const CLEANUP_ABANDONED: &str = "CleanupAbandoned";

impl Rounds<'_> {
    /// Deletes an expired object. The requeue observes the deletion, which may need the plugin's finalizer.
    pub(super) async fn expire(&self, state: &mut ObjectState, object: &Object) -> RoundEnd {
        tracing::info!("its time is over; deleting it");
        match expiry::delete(&self.item.host_client(), self.item.plugin, object).await {
            Ok(()) => RoundEnd::finished(Action::Requeue),
            Err(failure) => self.fail(state, object, failure).await,
        }
    }

    /// Removes the finalizer of an object that is being deleted. Where it has the one for children in an order as well, another round
    /// follows: the host's own write wakes nobody.
    pub(super) async fn release(
        &self,
        state: &mut ObjectState,
        object: &Object,
        measurements: &[Measurement],
    ) -> RoundEnd {
        let item = &self.item;
        tracing::info!("finalized; the finalizer is taken off");
        match finalizer::remove(&item.host_client(), item.plugin, object).await {
            Ok(()) => {
                // Not before the finalizer is gone: if the removal fails, the plugin is called again and returns the same
                // measurements.
                item.context.metrics.measurements.record(&item.plugin.name, measurements);
                if finalizer::has_order(object) {
                    return RoundEnd::AnotherRound;
                }
                RoundEnd::finished(Action::AwaitChange)
            }
            Err(failure) => self.fail(state, object, failure).await,
        }
    }

    /// Deletes the children of a deleted object in their order. One that takes its time triggers the next reconcile when it is gone; one
    /// that is gone at once is no news to its watch, so another round follows. Needs no answer of the plugin.
    pub(super) async fn tear_down(&self, state: &mut ObjectState, observed: &Observed) -> RoundEnd {
        let (item, object) = (&self.item, &*observed.object);
        // Garbage collection deletes or releases all of them itself, in no order.
        let mut plan = match finalizer::is_being_collected(object) {
            true => Plan::default(),
            false => plan::teardown(observed),
        };
        if plan.last_to_go == 0 {
            tracing::info!("no child has to go before another; the finalizer is taken off");
            return match finalizer::remove_order(&item.host_client(), item.plugin, object).await {
                Ok(()) => RoundEnd::finished(Action::AwaitChange),
                Err(failure) => self.fail(state, object, failure).await,
            };
        }
        let waiting = std::mem::take(&mut plan.waiting);
        let applied = self.apply(state, observed, plan).await;
        match applied.failures.is_empty() {
            true if applied.has_changed_anything() => RoundEnd::AnotherRound,
            true => self.conclude(state, object, result::tearing_down(&waiting)).await,
            false => self.conclude(state, object, writes_failed(&applied.failures, None)).await,
        }
    }

    /// Removes the finalizer although the plugin could not clean up: the namespace is being deleted and accepts no new children.
    /// To keep the finalizer would block the deletion of the namespace for ever.
    pub(super) async fn abandon_cleanup(
        &self,
        state: &mut ObjectState,
        object: &Object,
        failures: &[Failure],
    ) -> RoundEnd {
        let why = failures.first().map(|failure| failure.message.as_str()).unwrap_or_default();
        let message =
            format!("the namespace is being deleted, so the plugin cannot clean up; the object is let go: {why}");
        tracing::warn!(reason = CLEANUP_ABANDONED, decision = "the finalizer is taken off", "{message}");
        self.item.record_fault(object, &Event::warning(CLEANUP_ABANDONED, &message));
        self.release(state, object, &[]).await
    }
}
