//! The way of one reconcile: observe, call, check, plan, apply, report, in a straight line. A round that wrote something
//! is followed by another, for what the plugin said of the status was about the past; what is reported is the answer
//! to what is there. Where the plugin would be shown the same again, that answer is known.

pub mod apply;
mod cadence;
pub mod check;
pub mod compare;
mod conclusion;
mod delete;
mod displaced;
mod ending;
pub mod excerpt;
mod expiry;
pub mod finalize;
pub mod guard;
mod guarded;
mod handover;
pub mod inputs;
mod managed;
pub mod memory;
pub mod observe;
pub mod pace;
pub mod plan;
mod pointer;
mod report;
mod round;
mod said;
mod samples;
pub mod settled;
pub mod status;
mod survive;
pub mod trigger;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kube::Client;
use pilothouse_engine::{Verb, contract::Measurement};
use tracing::Instrument;

use self::{
    conclusion::failed,
    expiry::Life,
    finalize::Turn,
    inputs::{Converged, Inputs},
    memory::Memories,
    observe::{Observed, observe},
    pace::Pace,
    round::Round,
    said::Said,
    survive::survive,
    trigger::Trigger,
};
use crate::{
    cache::Object,
    events::Recorder,
    lookups::{FromCaches, LookupIndex},
    metrics::Metrics,
    plugin::ActivePlugin,
    queue::{BACKOFF_FIRST, Key, Next},
};

/// Rounds of one reconcile. A plugin whose children depend on its children needs a few; one that never comes to rest
/// is a loop, and goes on with backoff.
const ROUNDS: usize = 5;

/// When deletes are judged again that have to wait until all objects have been looked at.
const POSTPONED: Duration = Duration::from_millis(200);

/// Reconciles keys.
pub struct Pipeline {
    /// The connection.
    pub client: Client,
    /// The plugins at work.
    pub trigger: Arc<Trigger>,
    /// Who looked up what.
    pub lookups: Arc<LookupIndex>,
    /// Takes Events.
    pub events: Recorder,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Slows hot objects down.
    pace: Arc<Pace>,
    memory: Memories,
}

impl Pipeline {
    /// A pipeline with nothing remembered.
    pub fn new(
        client: Client,
        trigger: Arc<Trigger>,
        lookups: Arc<LookupIndex>,
        events: Recorder,
        metrics: Arc<Metrics>,
        pace: Arc<Pace>,
    ) -> Self {
        Self { client, trigger, lookups, events, metrics, pace, memory: Memories::default() }
    }

    /// Reconciles one key: what becomes of it, and how long it has to pause if it is hot.
    pub async fn reconcile(&self, key: &Key) -> (Next, Option<Duration>) {
        let Some(plugin) = self.trigger.plugin(&key.plugin) else { return (Next::Rest, None) };
        if self.pace.begins(key) {
            // It is told that it has calmed down, also if nothing else changed.
            self.memory.update(key, |memory| memory.converged = None);
        }
        let version = &plugin.manifest().version;
        let span = tracing::info_span!("reconcile", plugin = %plugin.name, %version, object = %key.object);
        let started = Instant::now();
        self.metrics.began(&key.plugin);
        let next = match survive(self.rounds(&plugin, key)).instrument(span.clone()).await {
            Ok(next) => self.until_expiry(&plugin, key, next),
            Err(panic) => {
                span.in_scope(|| tracing::error!("the host panicked, which is a fault of its own: {panic}"));
                self.metrics.panicked(&key.plugin);
                Next::Backoff(BACKOFF_FIRST)
            }
        };
        plugin.probation.saw(&key.object);
        self.metrics.ended(&key.plugin, next, started.elapsed());
        (next, self.pace.ends(key, next))
    }

    async fn rounds(&self, plugin: &ActivePlugin, key: &Key) -> Next {
        let mut said: Option<Said> = None;
        for round in 1..=ROUNDS {
            let observed = match observe(plugin, &key.object) {
                Ok(observed) => observed,
                Err(reason) => return self.unobserved(plugin, key, reason).await,
            };
            let object = &observed.object;
            if managed::elsewhere(object, plugin.manifest()) {
                tracing::debug!("another manager is named; left alone");
                return Next::Rest;
            }
            if expiry::life(object, plugin.manifest(), Timestamp::now()) == Life::Over {
                return self.expire(plugin, key, object).await;
            }
            let inputs = Inputs::of(plugin.reconciler.digest(), &observed);
            if self.is_unchanged(plugin, key, (&observed, inputs)) {
                return Next::Rest;
            }
            let verb = match finalize::turn(object, plugin.manifest()) {
                Turn::Reconcile => Verb::Reconcile,
                Turn::Finalize => Verb::Finalize,
                Turn::Ignore => return Next::Rest,
                Turn::Release => return self.release(plugin, key, object, &[]).await,
                Turn::Add => match finalize::add(&self.client, plugin, object).await {
                    Ok(()) => continue,
                    Err(failure) => return self.conclude(plugin, key, object, failed(&failure, None)).await,
                },
            };
            if round == 1 {
                self.pace.called(key, object.generation);
            }
            let ended = match self.ask(plugin, key, (&observed, inputs), verb, said.take()).await {
                Ok(now) => self.round(plugin, key, (&observed, inputs), said.insert(now), verb, round).await,
                Err(ended) => ended,
            };
            let conclusion = match ended {
                Round::Again => continue,
                Round::Finalized(samples) => return self.release(plugin, key, object, &samples).await,
                Round::Superseded => return Next::Again,
                Round::Postponed => return Next::After(POSTPONED),
                Round::Concluded(conclusion) => *conclusion,
            };
            return self.conclude(plugin, key, object, conclusion).await;
        }
        Next::Again
    }

    /// Whether the plugin would be asked the same again, and so would say the same: also if it wanted to be asked again
    /// after some time. An object that calms down is asked about, for that is to be told.
    fn is_unchanged(&self, plugin: &ActivePlugin, key: &Key, (observed, inputs): (&Observed, Inputs)) -> bool {
        let Some(converged) = self.memory.read(key, |memory| memory.converged.clone()) else { return false };
        let holds = converged.still_holds(inputs, &self.answers(plugin, key))
            && (converged.has_same_children(inputs) || self.are_children_settled(key, converged, (observed, inputs)))
            && !self.pace.rests(key);
        if holds {
            self.metrics.call_skipped(&plugin.name);
        }
        holds
    }

    /// Whether children that changed where the plugin does not look are still as it wants them.
    fn are_children_settled(&self, key: &Key, converged: Converged, (observed, inputs): (&Observed, Inputs)) -> bool {
        let before = self.memory.read(key, |memory| memory.settled.clone());
        let now = before.and_then(|before| before.still_there(observed));
        let settled = now.is_some();
        if settled {
            self.memory.update(key, |memory| {
                memory.settled = now;
                memory.converged = Some(converged.with_children(inputs));
            });
        }
        settled
    }

    fn answers(&self, plugin: &ActivePlugin, key: &Key) -> FromCaches {
        FromCaches { namespace: key.object.namespace.clone(), kinds: plugin.lookups.clone() }
    }

    /// Deletes an object whose time is over, and looks at what becomes of it.
    async fn expire(&self, plugin: &ActivePlugin, key: &Key, object: &Object) -> Next {
        tracing::info!("its time is over; deleting it");
        match expiry::delete(&self.client, plugin, object).await {
            Ok(()) => Next::Again,
            Err(failure) => self.conclude(plugin, key, object, failed(&failure, None)).await,
        }
    }

    /// When an object is looked at again, as it is after a reconcile.
    fn until_expiry(&self, plugin: &ActivePlugin, key: &Key, next: Next) -> Next {
        let object = plugin.objects.store().get(&key.object);
        object.map_or(next, |object| expiry::next(next, expiry::life(&object, plugin.manifest(), Timestamp::now())))
    }

    /// Lets an object go that is being deleted.
    async fn release(&self, plugin: &ActivePlugin, key: &Key, object: &Object, samples: &[Measurement]) -> Next {
        tracing::info!("finalized; the finalizer is taken off");
        match finalize::remove(&self.client, plugin, object).await {
            Ok(()) => {
                self.metrics.measured(&plugin.name, samples);
                Next::Rest
            }
            Err(failure) => self.conclude(plugin, key, object, failed(&failure, None)).await,
        }
    }

    /// Forgets what is remembered of a plugin's objects.
    pub fn forget_plugin(&self, plugin: &str) {
        self.memory.forget_plugin(plugin);
        self.pace.forget_plugin(plugin);
    }
}
