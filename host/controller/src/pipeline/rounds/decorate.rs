//! What a decorator does about the object itself: gives it labels and annotations, and takes all that it has made away from one that it no
//! longer works on. Never writes a status.

use std::ops::ControlFlow;

use pilothouse_engine::Fingerprint;

use super::{RoundEnd, Rounds, Stage};
use crate::{
    object::Object,
    pipeline::{
        apply::{self, Applier, Effect, Failure},
        check::{Decoration, Desired},
        observe::Observed,
        plan,
        report::result::writes_failed,
        state::ObjectState,
    },
    queue::Action,
};

impl Rounds<'_> {
    /// Gives the object the labels and annotations of an answer, before its children are written. A write is followed by another round, which
    /// observes the object with them.
    pub(super) async fn decorate(&self, state: &mut ObjectState, observed: &Observed, desired: &Desired) -> Stage<()> {
        state.decorated = None;
        let Some(wanted) = &desired.decoration else { return ControlFlow::Continue(()) };
        match self.write_decoration(&observed.object, wanted).await {
            Ok(false) => {
                state.decorated = Some(metadata(&observed.object));
                ControlFlow::Continue(())
            }
            Ok(true) => ControlFlow::Break(RoundEnd::AnotherRound),
            Err(failure) => ControlFlow::Break(self.fail(state, &observed.object, failure).await),
        }
    }

    /// Takes the children, labels and annotations of a decorator away from an object that it does not work on.
    pub(super) async fn undecorate(&self, state: &mut ObjectState, observed: &Observed) -> RoundEnd {
        let plan = plan::withdrawal(observed);
        if plan.is_empty() && !self.item.plugin.is_decorated(&observed.object) {
            return RoundEnd::finished(Action::AwaitChange);
        }
        tracing::info!("the plugin does not work on the object any more; what it has made is taken away");
        // When the selector takes the object in again, the same answer has to be carried out again.
        state.answer = None;
        match self.write_decoration(&observed.object, &Decoration::default()).await {
            Ok(false) => {}
            Ok(true) => return RoundEnd::AnotherRound,
            Err(failure) => return self.fail(state, &observed.object, failure).await,
        }
        let applied = self.apply(state, observed, plan).await;
        match applied.failures.is_empty() {
            true => RoundEnd::AnotherRound,
            false => self.conclude(state, &observed.object, writes_failed(&applied.failures, None)).await,
        }
    }

    /// Whether a decorator has to look at the labels and annotations of an object. The plugin need not read them, so they are no input of a
    /// call.
    pub(super) fn is_undecorated(&self, state: &ObjectState, object: &Object) -> bool {
        self.item.plugin.manifest().decorates.is_some() && state.decorated != Some(metadata(object))
    }

    async fn write_decoration(&self, object: &Object, wanted: &Decoration) -> Result<bool, Failure> {
        let item = &self.item;
        let (host_client, client) = (item.host_client(), item.client());
        let applier = Applier {
            host_client: &host_client,
            client: &client,
            plugin: item.plugin,
            object,
            effect: Effect::Lasting,
        };
        apply::decorate(&applier, wanted).await
    }
}

fn metadata(object: &Object) -> Fingerprint {
    Fingerprint::of(&(&object.labels, object.annotations()))
}
