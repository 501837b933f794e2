//! The way of one reconcile: observe, call, check, plan, apply, report, in a straight line. A round that wrote something
//! is followed by another, for what the plugin said of the status was about the past; what is reported is the answer
//! to what is there.

pub mod apply;
pub mod check;
pub mod compare;
mod displaced;
pub mod finalize;
pub mod inputs;
pub mod observe;
pub mod plan;
mod pointer;
mod report;
pub mod status;
pub mod trigger;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kube::Client;
use pilothouse_engine::{
    CallContext, Outcome, Recorded, Verb,
    contract::{Response, Verdict},
};
use tracing::Instrument;

use self::{
    apply::{Applied, Applier, Failure},
    check::{Desired, describe},
    finalize::Turn,
    inputs::Converged,
    observe::{Observed, Unobserved, observe},
    plan::{Cause, Normalised, Plan},
    report::{SettledStatus, StatusWrite},
    status::{Health, Report, Why},
    trigger::Trigger,
};
use crate::{
    cache::Object,
    events::{Note, Recorder},
    lookups::{FromCaches, LookupIndex},
    metrics::Metrics,
    plugin::ActivePlugin,
    queue::{BACKOFF_FIRST, Key, Next},
};

/// Rounds of one reconcile. A plugin whose children depend on its children needs a few; one that never comes to rest
/// is a loop, and goes on with backoff.
const ROUNDS: usize = 5;

/// First delay after a fault that needs somebody to change something; what they change asks sooner.
const FAULT: Duration = Duration::from_secs(1);

/// How often a taken name is looked at again: the object that has it is not watched.
const NAME_CONFLICT: Duration = Duration::from_secs(15);

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
    memory: Mutex<HashMap<Key, Memory>>,
}

/// What is worth remembering of an object between reconciles. Forgetting it costs a request, never correctness.
#[derive(Clone, Debug, Default)]
struct Memory {
    normalised: Normalised,
    status: SettledStatus,
    converged: Option<Converged>,
}

/// How a reconcile ended, before it is reported.
struct Conclusion {
    report: Report,
    notes: Vec<Note>,
    next: Next,
    /// What it was based on, if the same inputs would lead to the same again.
    converged: Option<Converged>,
}

impl Pipeline {
    /// A pipeline with nothing remembered.
    pub fn new(
        client: Client,
        trigger: Arc<Trigger>,
        lookups: Arc<LookupIndex>,
        events: Recorder,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { client, trigger, lookups, events, metrics, memory: Mutex::default() }
    }

    /// Reconciles one key.
    pub async fn reconcile(&self, key: &Key) -> Next {
        let Some(plugin) = self.trigger.plugin(&key.plugin) else { return Next::Rest };
        let version = &plugin.manifest().version;
        let span = tracing::info_span!("reconcile", plugin = %plugin.name, %version, object = %key.object);
        let started = Instant::now();
        self.metrics.began(&key.plugin);
        let next = self.rounds(&plugin, key).instrument(span).await;
        self.metrics.ended(&key.plugin, next, started.elapsed());
        next
    }

    async fn rounds(&self, plugin: &ActivePlugin, key: &Key) -> Next {
        let mut notes = Vec::new();
        for round in 1..=ROUNDS {
            let observed = match observe(plugin, &key.object) {
                Ok(observed) => observed,
                Err(reason) => return self.unobserved(plugin, key, reason).await,
            };
            let object = &observed.object;
            if let Some(next) = self.unchanged(plugin, key, &observed) {
                return next;
            }
            let verb = match finalize::turn(object, &plugin.name, plugin.manifest().finalizes) {
                Turn::Reconcile => Verb::Reconcile,
                Turn::Finalize => Verb::Finalize,
                Turn::Ignore => return Next::Rest,
                Turn::Release => return self.release(plugin, key, object).await,
                Turn::Add => match finalize::add(&self.client, plugin, object).await {
                    Ok(()) => continue,
                    Err(failure) => return self.conclude(plugin, key, object, failed(&failure, None)).await,
                },
            };
            let conclusion = match self.round(plugin, key, &observed, verb, &mut notes, round).await {
                Round::Wrote => continue,
                Round::Finalized => return self.release(plugin, key, object).await,
                Round::Concluded(conclusion) => *conclusion,
            };
            let all = notes.into_iter().chain(conclusion.notes.clone()).collect();
            return self.conclude(plugin, key, object, Conclusion { notes: all, ..conclusion }).await;
        }
        Next::Again
    }

    /// What becomes of a key whose plugin would be asked the same again.
    fn unchanged(&self, plugin: &ActivePlugin, key: &Key, observed: &Observed) -> Option<Next> {
        let converged = self.remembered(key).converged?;
        let holds = converged.still_holds(plugin.reconciler.digest(), observed, &self.answers(plugin, key));
        holds.then(|| {
            self.metrics.call_skipped(&plugin.name);
            converged.next
        })
    }

    fn answers(&self, plugin: &ActivePlugin, key: &Key) -> FromCaches {
        FromCaches { namespace: key.object.namespace.clone(), kinds: plugin.lookups.clone() }
    }

    /// Lets an object go that is being deleted.
    async fn release(&self, plugin: &ActivePlugin, key: &Key, object: &Object) -> Next {
        tracing::info!("finalized; the finalizer is taken off");
        match finalize::remove(&self.client, plugin, object).await {
            Ok(()) => Next::Rest,
            Err(failure) => self.conclude(plugin, key, object, failed(&failure, None)).await,
        }
    }

    async fn round(
        &self,
        plugin: &ActivePlugin,
        key: &Key,
        observed: &Observed,
        verb: Verb,
        notes: &mut Vec<Note>,
        round: usize,
    ) -> Round {
        let (response, recorded) = match self.call(plugin, key, observed, verb).await {
            Ok(answer) => answer,
            Err(fault) => return Round::Concluded(fault.into()),
        };
        let desired = match check::check(plugin.manifest(), &observed.kind, &observed.object, &observed.kinds, response)
        {
            Ok(desired) => desired,
            Err(refusal) => return Round::Concluded(fault(refusal.reason(), &refusal.to_string()).into()),
        };
        let plan = plan::plan(&desired, observed, &self.remembered(key).normalised);
        let awaited = plan.awaited.clone();
        let applied = self.apply(plugin, key, observed, plan).await;
        if let Some(failure) = applied.failures.first() {
            return Round::Concluded(failed(failure, Some(&desired)).into());
        }
        notes.extend(desired.events.iter().cloned().map(Note::from));
        let wrote = applied.written.iter().any(|written| written.changed) || !applied.deleted.is_empty();
        match (wrote, round < ROUNDS) {
            (true, true) => Round::Wrote,
            (true, false) => Round::Concluded(restless(desired).into()),
            (false, _) if verb == Verb::Finalize && desired.verdict == Verdict::Done => Round::Finalized,
            (false, _) => {
                let conclusion = answered(desired, &awaited);
                let (digest, lookups) = (plugin.reconciler.digest(), self.answers(plugin, key));
                let converged = Converged::new(digest, observed, &recorded, &lookups, conclusion.next);
                // A plugin that asks for a retry is asked again, whatever it is asked.
                let converged = converged.filter(|_| !matches!(conclusion.next, Next::Backoff(_)));
                Round::Concluded(Conclusion { converged, ..conclusion }.into())
            }
        }
    }

    /// Stage 3: calls the plugin and records what it read.
    async fn call(
        &self,
        plugin: &ActivePlugin,
        key: &Key,
        observed: &Observed,
        verb: Verb,
    ) -> Result<(Response, Recorded), Conclusion> {
        let context = CallContext { lookups: Arc::new(self.answers(plugin, key)), now: Timestamp::now() };
        let call = plugin.reconciler.call(verb, observed.request("null"), context).await;
        self.metrics.called(&plugin.name, &call.outcome, call.usage.duration);
        self.lookups.record(key, call.recorded.lookups.clone());
        match call.outcome {
            Outcome::Response(response) => Ok((response, call.recorded)),
            Outcome::Trap(why) => Err(fault("PluginTrapped", &format!("the plugin trapped: {why}"))),
            Outcome::Deadline(limit) => {
                Err(fault("PluginDeadlineExceeded", &format!("the plugin did not answer within {limit:?}")))
            }
            Outcome::MemoryLimit(limit) => Err(fault(
                "PluginMemoryLimitExceeded",
                &format!("the plugin needs more memory than its limit of {} MiB", limit >> 20),
            )),
            Outcome::OutputLimit(limit) => Err(fault(
                "PluginOutputLimitExceeded",
                &format!("the plugin returned more than its limit of {} KiB", limit >> 10),
            )),
            Outcome::Contract(why) => {
                Err(fault("PluginContractViolated", &format!("the plugin broke the contract: {why}")))
            }
        }
    }

    async fn apply(&self, plugin: &ActivePlugin, key: &Key, observed: &Observed, plan: Plan) -> Applied {
        if plan.is_empty() {
            return Applied::default();
        }
        for write in &plan.writes {
            let fields: Vec<_> = write.cause.differences().iter().map(ToString::to_string).collect();
            let child = describe(&write.child.kind, &write.child.name);
            tracing::info!(child, fields = fields.join("; "), "{}", write.cause.finding(&write.child.kind.kind));
            if matches!(write.cause, Cause::Drifted { .. }) {
                self.metrics.drift_repaired(&plugin.name);
            }
        }
        for delete in &plan.deletes {
            tracing::info!(
                child = describe(&delete.kind, &delete.live.name.name),
                "Deleting {}: no longer wanted.",
                delete.kind.kind
            );
        }
        let applied = Applier { client: &self.client, plugin, object: &observed.object }.apply(plan).await;
        self.remember_normalised(key, &applied);
        applied
    }

    fn remember_normalised(&self, key: &Key, applied: &Applied) {
        for written in applied.written.iter().filter(|written| !written.changed) {
            if let Some(live) = written.write.cause.live() {
                let mut memory = self.memory();
                let normalised = &mut memory.entry(key.clone()).or_default().normalised;
                normalised.remember(&written.write.child, live, written.write.cause.differences());
            }
        }
    }

    /// Reports a conclusion: log, Events, status.
    async fn conclude(&self, plugin: &ActivePlugin, key: &Key, object: &Object, conclusion: Conclusion) -> Next {
        let Conclusion { report, notes, next, converged } = conclusion;
        match &report.health {
            Health::Applied => tracing::debug!("reconciled"),
            Health::Progressing(why) => tracing::info!(reason = why.reason, "{}", why.message),
            Health::Stalled(why) => tracing::warn!(reason = why.reason, "{}", why.message),
        }
        for note in &notes {
            self.events.record(plugin.objects.kind(), object, note);
        }
        let settled = self.remembered(key).status;
        match report::write_status(&self.client, plugin, object, &report, settled).await {
            Ok(StatusWrite::None) => {
                self.memory().entry(key.clone()).or_default().converged = converged;
                next
            }
            Ok(StatusWrite::Written(status)) => {
                let mut memory = self.memory();
                let memory = memory.entry(key.clone()).or_default();
                (memory.status, memory.converged) = (status, None);
                next
            }
            Err(failure) => {
                tracing::warn!(reason = failure.reason, "{}", failure.message);
                if !failure.passing {
                    self.events.record(plugin.objects.kind(), object, &Note::warning(failure.reason, &failure.message));
                }
                Next::Backoff(if failure.passing { BACKOFF_FIRST } else { FAULT })
            }
        }
    }

    async fn unobserved(&self, plugin: &ActivePlugin, key: &Key, reason: Unobserved) -> Next {
        match reason {
            Unobserved::Gone => {
                tracing::debug!(
                    "{} resource not found. Ignoring since object must be deleted",
                    plugin.objects.kind().kind
                );
                self.lookups.forget(key);
                self.memory().remove(key);
                Next::Rest
            }
            // The cache's own sync asks for the object again.
            Unobserved::NotSynced(_, None) => Next::Rest,
            Unobserved::NotSynced(kind, Some(why)) => {
                let Some(object) = plugin.objects.store().get(&key.object) else { return Next::Rest };
                let message = format!("the children of kind {} are not known: {why}", kind.kind);
                self.conclude(plugin, key, &object, fault("ChildrenUnknown", &message)).await
            }
        }
    }

    fn remembered(&self, key: &Key) -> Memory {
        self.memory().get(key).cloned().unwrap_or_default()
    }

    fn memory(&self) -> MutexGuard<'_, HashMap<Key, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a round ended.
enum Round {
    /// Something was written: look again.
    Wrote,
    /// The plugin has finalized the object.
    Finalized,
    /// There is something to report.
    Concluded(Box<Conclusion>),
}

/// A fault that somebody must mend. What the plugin said before stands.
fn fault(reason: &str, message: &str) -> Conclusion {
    Conclusion {
        report: Report { status: None, conditions: None, health: Health::Stalled(Why::new(reason, message)) },
        notes: vec![Note::warning(reason, message)],
        next: Next::Backoff(FAULT),
        converged: None,
    }
}

/// A write failed: what the plugin said of the status, if it was asked, still counts.
fn failed(failure: &Failure, desired: Option<&Desired>) -> Conclusion {
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
        },
        notes: if *passing { Vec::new() } else { vec![Note::warning(reason, message)] },
        next,
        converged: None,
    }
}

/// The plugin returned other children every time it was shown what it had made.
fn restless(desired: Desired) -> Conclusion {
    let message = format!("the plugin returned other children in each of {ROUNDS} rounds");
    let health = Health::Progressing(Why::new("NotConverging", message));
    Conclusion {
        report: Report { status: desired.status, conditions: Some(desired.conditions), health },
        notes: Vec::new(),
        next: Next::Backoff(FAULT),
        converged: None,
    }
}

/// Everything is as the plugin wants it; its verdict says what that means.
fn answered(desired: Desired, awaited: &[String]) -> Conclusion {
    let Desired { verdict, status, conditions, requeue_after, .. } = desired;
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
            (Health::Stalled(Why::new("Invalid", message)), vec![note], rest)
        }
    };
    Conclusion { report: Report { status, conditions: Some(conditions), health }, notes, next, converged: None }
}
