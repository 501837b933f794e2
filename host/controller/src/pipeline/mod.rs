//! The way of one reconcile: observe, call, check, plan, apply, report, in a straight line.
//!
//! Start reading in `rounds.rs`: its function `round` is the list of the stages. Each stage is a function from one plain value to
//! the next and imports earlier stages only; `check` and `plan` are pure, so `pilothouse render` runs the very same code without a
//! cluster. What is remembered between reconciles is in `state`, and only this file and `rounds.rs` know it: stages get of it what
//! they need, and give back what changed.

pub mod apply;
pub mod call;
mod catch_panic;
pub mod check;
pub mod conditions;
pub mod lifecycle;
pub mod observe;
pub mod plan;
pub mod report;
mod rounds;
pub mod state;
pub mod trigger;
pub mod work_item;

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tracing::Instrument;

use self::{
    catch_panic::catch_panic,
    lifecycle::expiry,
    rounds::{Ended, Rounds},
    state::{ObjectStates, hot_loop::HotLoops},
    work_item::{Context, WorkItem},
};
use crate::{
    plugin::{ActivePlugin, Registry},
    queue::{Action, BACKOFF_FIRST, Key},
};

/// Reconciles keys.
pub struct Pipeline {
    context: Context,
    plugins: Arc<Registry>,
    /// Slows hot objects down.
    hot_loops: Arc<HotLoops>,
    states: ObjectStates,
}

/// What becomes of a key that was reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When it is worked on again.
    pub action: Action,
    /// How long it has to pause before that, if its object is hot.
    pub pause: Option<Duration>,
}

impl Pipeline {
    /// A pipeline with nothing remembered.
    pub fn new(context: Context, plugins: Arc<Registry>, hot_loops: Arc<HotLoops>) -> Self {
        Self { context, plugins, hot_loops, states: ObjectStates::default() }
    }

    /// Reconciles one key, which failed so many times in a row.
    pub async fn reconcile(&self, key: &Key, failures: u32) -> Outcome {
        let Some(plugin) = self.plugins.get(&key.plugin) else {
            return Outcome { action: Action::AwaitChange, pause: None };
        };
        let version = &plugin.manifest().version;
        let span = tracing::info_span!("reconcile", plugin = %plugin.name, %version, object = %key.object);
        let (started, metrics) = (Instant::now(), &self.context.metrics);
        metrics.reconciles.started(&key.plugin);
        let item = WorkItem { context: &self.context, plugin: &plugin, key, failures };
        let action = match catch_panic(self.run(item)).instrument(span.clone()).await {
            Ok(action) => self.until_expiry(&plugin, key, action),
            Err(panic) => {
                span.in_scope(|| tracing::error!("the host panicked, which is a fault of its own: {panic}"));
                metrics.reconciles.panicked(&key.plugin);
                Action::Backoff(BACKOFF_FIRST)
            }
        };
        plugin.new_version.mark_seen(&key.object);
        metrics.reconciles.ended(&key.plugin, action, started.elapsed());
        Outcome { action, pause: self.hot_loops.ends(key, action) }
    }

    /// Takes what is remembered of the object, works on it, and puts it back.
    async fn run(&self, item: WorkItem<'_>) -> Action {
        let mut state = self.states.take(item.key);
        if self.hot_loops.begins(item.key)
            && let Some(answer) = &mut state.answer
        {
            // It is told that it has calmed down, also if nothing else changed.
            answer.leave_unreported();
        }
        match (Rounds { item, hot_loops: &self.hot_loops }).run(&mut state).await {
            Ended::Gone => {
                self.context.lookups.forget(item.key);
                self.hot_loops.forget(item.key);
                Action::AwaitChange
            }
            Ended::Looked(action) => {
                if let Some(answer) = &mut state.answer {
                    answer.drop_response();
                }
                // A plugin that went meanwhile has been forgotten.
                if self.plugins.get(&item.key.plugin).is_some() {
                    self.states.put(item.key, state);
                }
                action
            }
        }
    }

    /// When an object is looked at again whose time is limited.
    fn until_expiry(&self, plugin: &ActivePlugin, key: &Key, action: Action) -> Action {
        let Some(object) = plugin.objects.store().get(&key.object) else { return action };
        let lifetime = expiry::lifetime(&object, plugin.manifest(), self.context.clock.now());
        expiry::action_until(action, lifetime)
    }

    /// Writes the Events that wait.
    pub async fn flush_events(&self) {
        self.context.events.flush().await;
    }

    /// Forgets what is remembered of a plugin's objects.
    pub fn forget_plugin(&self, plugin: &str) {
        self.states.forget_plugin(plugin);
        self.hot_loops.forget_plugin(plugin);
        self.context.lookups.forget_plugin(plugin);
    }
}
