//! The steps between looking at an object and calling its plugin: many objects need no call, and some may not be touched.

use std::ops::ControlFlow;

use pilothouse_engine::Verb;

use super::{RoundEnd, Rounds, Stage};
use crate::{
    pipeline::{
        call::{PluginCall, inputs::Inputs},
        lifecycle::{
            expiry::{self, Lifetime},
            finalizer::{self, FinalizerStep},
            managed::not_ours,
        },
        observe::Observed,
        state::{ObjectState, hot_loop::Throttling},
    },
    plugin::Presence,
    queue::Action,
};

impl Rounds<'_> {
    /// The call that is to be made, if one is.
    pub(super) async fn before_call<'o>(
        &self,
        state: &mut ObjectState,
        observed: &'o Observed,
    ) -> Stage<PluginCall<'o>> {
        let refused = state.refused_children.told(observed.object.generation);
        let inputs = Inputs::of(self.item.plugin.called(), observed, &refused);
        let verb = self.verb(state, observed, inputs).await?;
        ControlFlow::Continue(PluginCall { observed, refused, inputs, verb })
    }

    /// The function to call. Skips objects of another manager and objects without changes, deletes expired ones, and adds or removes the
    /// finalizer.
    async fn verb(&self, state: &mut ObjectState, observed: &Observed, inputs: Inputs) -> Stage<Verb> {
        let (item, object) = (&self.item, &*observed.object);
        let manifest = item.plugin.manifest();
        // This comes before all steps that write: such an object gets no status, no finalizer and no expiry.
        if let Some(why) = not_ours(object, manifest, item.plugin.serves(&object.name.namespace)) {
            tracing::debug!("{why}; left alone");
            return ControlFlow::Break(RoundEnd::finished(Action::AwaitChange));
        }
        if !object.deleting && !item.plugin.selects(object) {
            return ControlFlow::Break(self.undecorate(state, observed).await);
        }
        if item.plugin.presence == Presence::Departed {
            return ControlFlow::Break(match finalizer::next_step(object, manifest, &item.plugin.other_finalizers) {
                FinalizerStep::TearDown => self.tear_down(state, observed).await,
                _ => RoundEnd::finished(Action::AwaitChange),
            });
        }
        // This comes before the check for changes, because an object expires without any change.
        if expiry::lifetime(object, manifest, item.context.clock.now()) == Lifetime::Over {
            return ControlFlow::Break(self.expire(state, object).await);
        }
        let is_status_outdated = state.reports.are_outdated(observed.schema.as_ref());
        let is_undecorated = self.is_undecorated(state, object);
        if let Some(answer) = state.answer.as_mut().filter(|_| !is_status_outdated && !is_undecorated) {
            answer.refresh(observed);
            // An object that was throttled until now needs a new report, which removes its condition `Throttled`.
            if answer.is_settled(inputs, &item.lookups(), observed, &state.left)
                && self.hot_loops.end_throttling(item.key) == Throttling::Inactive
            {
                item.context.metrics.plugins.call_skipped(&item.plugin.name);
                return ControlFlow::Break(RoundEnd::finished(Action::AwaitChange));
            }
        }
        // This comes after the check for changes: finalizers and the deletion timestamp are inputs, so a settled answer needs no step.
        match finalizer::next_step(object, manifest, &item.plugin.other_finalizers) {
            FinalizerStep::Reconcile => ControlFlow::Continue(Verb::Reconcile),
            FinalizerStep::Finalize => ControlFlow::Continue(Verb::Finalize),
            FinalizerStep::TearDown => ControlFlow::Break(self.tear_down(state, observed).await),
            FinalizerStep::Ignore => ControlFlow::Break(RoundEnd::finished(Action::AwaitChange)),
            FinalizerStep::Release => ControlFlow::Break(self.release(state, object, &[]).await),
            FinalizerStep::Shed => {
                tracing::info!("finalizers that another version of the plugin has left are taken off");
                ControlFlow::Break(match finalizer::shed(&item.host_client(), item.plugin, object).await {
                    Ok(()) => RoundEnd::AnotherRound,
                    Err(failure) => self.fail(state, object, failure).await,
                })
            }
            FinalizerStep::Add => {
                ControlFlow::Break(match finalizer::add(&item.host_client(), item.plugin, object).await {
                    Ok(()) => RoundEnd::AnotherRound,
                    Err(failure) => self.fail(state, object, failure).await,
                })
            }
        }
    }
}
