//! One reconcile: observe, call, check, plan, apply, report. Start reading in `rounds/mod.rs`, whose function `stages` lists them.
//!
//! # Flow
//!
//! `trigger` turns changes into keys of the queue. [`Pipeline::reconcile`] takes one key, runs the stages in `rounds`, and returns
//! the [`Action`] that follows. Each stage is a function from one plain value to the next, and imports earlier stages only.
//!
//! # Guarantees
//!
//! - `check` and `plan` are pure: they take no client, so `pilothouse render` runs the same code without a cluster.
//! - A reconcile never fails as a whole. Errors of the plugin, of the API server and panics all become a report and an action.
//! - State between reconciles is in `state` only. The stages get references to the parts that they need; only this file and
//!   `rounds` know the whole.
//!
//! # Caveats
//!
//! The caches may be behind the API server. The stages rely on guarded writes, not on fresh caches.

mod applied_mark;
pub mod apply;
pub mod call;
mod catch_panic;
pub mod check;
pub mod conditions;
pub mod last_reconcile;
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

pub use self::last_reconcile::LastReconcile;
use self::{
    call::in_sync::SharedKeys,
    catch_panic::catch_panic,
    last_reconcile::{Ended, LastReconciles, Notes},
    lifecycle::expiry,
    rounds::{ReconcileEnd, Rounds},
    state::{
        ObjectStates,
        hot_loop::{HotLoops, Throttling},
    },
    work_item::{Context, WorkItem},
};
use crate::{
    events::Recorder,
    plugin::{ActivePlugin, Registry},
    queue::{Action, BACKOFF_FIRST, Key},
};

/// Reconciles objects by their keys.
pub struct Pipeline {
    context: Context,
    plugins: Arc<Registry>,
    /// Throttles objects that are reconciled again and again.
    hot_loops: Arc<HotLoops>,
    states: ObjectStates,
    shared_keys: SharedKeys,
    last: LastReconciles,
}

/// What follows the reconcile of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When the key is reconciled again.
    pub action: Action,
    /// The pause before that, if the object is throttled.
    pub pause: Option<Duration>,
}

impl Pipeline {
    /// A pipeline without any remembered state.
    pub fn new(context: Context, plugins: Arc<Registry>, hot_loops: Arc<HotLoops>) -> Self {
        let (states, shared_keys) = (ObjectStates::default(), SharedKeys::default());
        Self { context, plugins, hot_loops, states, shared_keys, last: LastReconciles::default() }
    }

    /// Reconciles one key that failed `failures` times in a row before.
    pub async fn reconcile(&self, key: &Key, failures: u32) -> Outcome {
        let Some(versions) = self.plugins.versions(&key.plugin) else {
            // The plugin was removed while the key waited in the queue.
            return Outcome { action: Action::AwaitChange, pause: None };
        };
        let object = versions.stable().objects.store().get(&key.object);
        let Some(plugin) = versions.answering(object.as_deref()) else {
            // It is pinned to a version that nobody has any more: it stays as it is, and the Plugin tells it.
            return Outcome { action: Action::AwaitChange, pause: None };
        };
        let version = &plugin.manifest().version;
        let span = tracing::info_span!("reconcile", plugin = %plugin.name, %version, object = %key.object);
        let (started, metrics) = (Instant::now(), &self.context.metrics);
        let active = metrics.reconciles.started(&key.plugin);
        let notes = Notes::default();
        let item = WorkItem { context: &self.context, plugin, key, failures, notes: &notes };
        // A panic that escapes from here would skip `Queue::done`. The key would stay in progress, and the object would never be
        // reconciled again.
        // Boxed, for it is large: each layer around it would move it as a whole.
        let run = Box::pin(self.run(item));
        let action = match catch_panic(run).instrument(span.clone()).await {
            Ok(action) => self.until_expiry(plugin, key, action),
            Err(panicked) => {
                span.in_scope(|| tracing::error!("{panicked}"));
                notes.failed(&panicked.to_string());
                metrics.reconciles.panicked(&key.plugin);
                // A retry makes sense: the remembered state, which may be the cause, is lost with the panic.
                Action::Backoff(BACKOFF_FIRST)
            }
        };
        // Whatever the result. An object that fails each time would otherwise postpone the deletes of all other objects until the
        // first minute of the version is over.
        versions.mark_seen(&key.object);
        drop(active);
        metrics.reconciles.ended(&key.plugin, action, started.elapsed());
        let ended = Ended {
            version,
            digest: plugin.reconciler.digest(),
            at: self.context.clock.now(),
            took: started.elapsed(),
            next: action.decision(failures),
        };
        // What is gone is forgotten already.
        if self.is_there(key) {
            self.last.ended(key, notes, ended);
        }
        Outcome { action, pause: self.hot_loops.end_reconcile(key, action) }
    }

    /// Takes the object's state, runs the rounds with it, and puts it back.
    async fn run(&self, item: WorkItem<'_>) -> Action {
        let mut state = self.states.take(item.key);
        if self.hot_loops.start_reconcile(item.key) == Throttling::Ended
            && let Some(answer) = &mut state.answer
        {
            // Without a new report the status would keep the condition `Throttled`.
            answer.mark_unreported();
        }
        match (Rounds { item, hot_loops: &self.hot_loops, shared_keys: &self.shared_keys }).run(&mut state).await {
            ReconcileEnd::Next(action) if self.is_there(item.key) => {
                if let Some(answer) = &mut state.answer {
                    answer.drop_response();
                }
                self.states.put(item.key, state);
                action
            }
            ReconcileEnd::ObjectGone | ReconcileEnd::Next(_) => {
                self.context.lookups.forget(item.key);
                self.context.contents.forget(item.key);
                self.hot_loops.forget(item.key);
                self.last.forget(item.key);
                Action::AwaitChange
            }
        }
    }

    /// Whether there is the object still, and its plugin. If the plugin was removed in the meantime, everything of it is forgotten already
    /// and must not come back; and if it was loaded again, nobody tells it of objects that went between.
    fn is_there(&self, key: &Key) -> bool {
        self.plugins.get(&key.plugin).is_some_and(|plugin| plugin.objects.store().get(&key.object).is_some())
    }

    /// The action, but at the object's expiry at the latest.
    fn until_expiry(&self, plugin: &ActivePlugin, key: &Key, action: Action) -> Action {
        // Read again: the field with the expiry may be in the status, which this reconcile may just have written.
        let Some(object) = plugin.objects.store().get(&key.object) else { return action };
        let lifetime = expiry::lifetime(&object, plugin.manifest(), self.context.clock.now());
        expiry::action_until(action, lifetime)
    }

    /// What the last reconcile of an object did that had something to do; none if that is not remembered.
    pub fn last_reconcile(&self, key: &Key) -> Option<LastReconcile> {
        self.last.of(key)
    }

    /// The recorder of Events.
    pub fn events(&self) -> &Recorder {
        &self.context.events
    }

    /// The number of objects of which anything is remembered.
    pub fn remembered_objects(&self) -> usize {
        self.states.len().max(self.hot_loops.len()).max(self.context.lookups.len())
    }

    /// Forgets the states of all objects of a plugin.
    pub fn forget_plugin(&self, plugin: &str) {
        self.states.forget_plugin(plugin);
        self.hot_loops.forget_plugin(plugin);
        self.last.forget_plugin(plugin);
        self.context.lookups.forget_plugin(plugin);
        self.context.contents.forget_plugin(plugin);
    }
}
