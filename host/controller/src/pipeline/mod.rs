//! The way of one reconcile: observe, call, check, plan, apply, report, in a straight line. A round that wrote something
//! is followed by another, for what the plugin said of the status was about the past; what is reported is the answer
//! to what is there.

pub mod apply;
mod cadence;
pub mod check;
pub mod compare;
mod conclusion;
mod displaced;
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
use pilothouse_engine::{
    CallContext, Recorded, Verb,
    contract::{KindRef, Measurement, Response, Verdict},
};
use tracing::Instrument;

use self::{
    apply::{Applied, Applier},
    check::{Desired, describe},
    conclusion::{Conclusion, FAULT, answer, answered, failed, fault, held_back, restless},
    expiry::Life,
    finalize::Turn,
    guard::{Circumstances, Judgement},
    inputs::Converged,
    memory::Memories,
    observe::{Observed, Unobserved, observe},
    pace::Pace,
    plan::{Cause, Plan},
    report::StatusWrite,
    settled::{Answer, Settled},
    status::{Health, Report},
    survive::survive,
    trigger::Trigger,
};
use crate::{
    cache::Object,
    events::{Note, Recorder},
    labels,
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
            if self.is_unchanged(plugin, key, &observed) {
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
            let conclusion = match self.round(plugin, key, &observed, verb, round).await {
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
    /// after some time.
    fn is_unchanged(&self, plugin: &ActivePlugin, key: &Key, observed: &Observed) -> bool {
        let Some(converged) = self.memory.read(key, |memory| memory.converged.clone()) else { return false };
        let holds = converged.still_holds(plugin.reconciler.digest(), observed, &self.answers(plugin, key));
        if holds {
            self.metrics.call_skipped(&plugin.name);
        }
        holds
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

    async fn round(&self, plugin: &ActivePlugin, key: &Key, observed: &Observed, verb: Verb, round: usize) -> Round {
        let (mut response, recorded) = match self.call(plugin, key, observed, verb).await {
            Ok(answer) => answer,
            Err(ended) => return ended,
        };
        if finalize::is_being_collected(&observed.object) {
            response.children = None;
        }
        let answer = Answer::of(plugin.reconciler.digest(), &observed.object, response.children.as_deref());
        let now = answer.map(|answer| Settled::now(&answer, observed));
        if now.is_some() && now == self.memory.read(key, |memory| memory.settled) {
            response.children = None;
        }
        let mut desired =
            match check::check(plugin.manifest(), &observed.kind, &observed.object, &observed.kinds, response) {
                Ok(desired) => desired,
                Err(refusal) => return Round::Concluded(fault(refusal.reason(), &refusal.to_string()).into()),
            };
        let children = desired.children.take();
        let compared = children.is_some();
        let mut plan = plan::plan(children, observed, &self.memory.read(key, |memory| memory.normalised.clone()));
        let judgement = self.judge(plugin, key, observed, verb, &desired, &plan);
        if judgement != Judgement::Pass {
            plan.deletes.clear();
        }
        let awaited = plan.awaited.clone();
        let applied = self.apply(plugin, key, observed, plan).await;
        if applied.is_outdated() && round < ROUNDS {
            return Round::Again;
        }
        if let Some(failure) = applied.failures.first() {
            return Round::Concluded(failed(failure, Some(&desired)).into());
        }
        if compared && judgement == Judgement::Pass && awaited.is_empty() && applied.deleted.is_empty() {
            let settled = answer.map(|answer| Settled::after(&answer, observed, &applied));
            self.memory.update(key, |memory| memory.settled = settled);
        }
        let events = std::mem::take(&mut desired.events).into_iter().map(Note::from).collect();
        let wrote = applied.written.iter().any(|written| written.changed) || !applied.deleted.is_empty();
        match (wrote, round < ROUNDS) {
            (true, true) => Round::Again,
            (true, false) => Round::Concluded(Conclusion { events, ..restless(desired) }.into()),
            (false, _) if judgement == Judgement::Wait => Round::Postponed,
            (false, _) if verb == Verb::Finalize && desired.verdict == Verdict::Done => {
                Round::Finalized(desired.measurements)
            }
            (false, _) => {
                let conclusion = match &judgement {
                    Judgement::Hold(why) => held_back(desired, why, &how_to_confirm(plugin, &observed.object)),
                    Judgement::Pass | Judgement::Wait => answered(desired, &awaited),
                };
                let converged = Converged::new(plugin.reconciler.digest(), observed, &recorded);
                // A plugin that asks for a retry is asked again, whatever it is asked.
                let converged = converged.filter(|_| !matches!(conclusion.next, Next::Backoff(_)));
                Round::Concluded(Conclusion { events, converged, ..conclusion }.into())
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
    ) -> Result<(Response, Recorded), Round> {
        let context = CallContext { lookups: Arc::new(self.answers(plugin, key)), now: Timestamp::now() };
        let call = plugin.reconciler.call(verb, observed.request("null"), context);
        // A call that is under way when another version comes is not waited for: that version is asked instead.
        let call = tokio::select! {
            biased;
            call = call => call,
            () = plugin.until_superseded() => return Err(Round::Superseded),
        };
        self.metrics.called(&plugin.name, &call.outcome, &call.usage);
        if !call.recorded.denied.is_empty() {
            self.tell_denials(plugin, key, &observed.object, &call.recorded.denied);
        }
        self.lookups.record(key, call.recorded.lookups.iter().map(|(query, _)| query.clone()).collect());
        answer(call.outcome).map(|response| (response, call.recorded)).map_err(Round::Concluded)
    }

    /// Tells of lookups that were denied, whatever the plugin made of that.
    fn tell_denials(&self, plugin: &ActivePlugin, key: &Key, object: &Object, denied: &[KindRef]) {
        for denial in self.answers(plugin, key).denials(denied) {
            tracing::warn!(reason = denial.reason, decision = "the plugin goes on without", "{}", denial.message);
            self.tell(plugin, object, &denial);
        }
    }

    /// Whether the plan's deletes may be carried out. What a plugin deletes as it finalizes is meant to go.
    fn judge(
        &self,
        plugin: &ActivePlugin,
        key: &Key,
        observed: &Observed,
        verb: Verb,
        desired: &Desired,
        plan: &Plan,
    ) -> Judgement {
        let unsettled = self.memory.read(key, |memory| memory.unsettled);
        let circumstances = Circumstances {
            version: plugin.short_digest(),
            on_purpose: desired.removes_many || verb == Verb::Finalize,
            unsettled: unsettled == Some(observed.object.generation),
            probation: &plugin.probation,
        };
        guard::judge(plan, observed, circumstances)
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
                let (child, differences) = (&written.write.child, written.write.cause.differences());
                self.memory.update(key, |memory| memory.normalised.remember(child, live, differences));
            }
        }
    }

    /// Reports a conclusion: log, Events, status.
    async fn conclude(&self, plugin: &ActivePlugin, key: &Key, object: &Object, conclusion: Conclusion) -> Next {
        let Conclusion { report, notes, events, next, measurements, carried_out, converged } = conclusion;
        if carried_out {
            self.memory.update(key, |memory| memory.unsettled = None);
        } else if !guard::is_unchanged(object) {
            self.memory.update(key, |memory| memory.unsettled = Some(object.generation));
        }
        match &report.health {
            Health::Applied => tracing::debug!("reconciled"),
            Health::Progressing(why) => tracing::info!(reason = why.reason, decision = %next, "{}", why.message),
            Health::Stalled(why) => tracing::warn!(reason = why.reason, decision = %next, "{}", why.message),
        }
        notes.iter().for_each(|note| self.tell(plugin, object, note));
        let report = Report { slowed: self.pace.slowed(key), ..report };
        let settled = self.memory.read(key, |memory| memory.status);
        // A plugin counts what its status does not say yet, so a count belongs to the one write that makes it say so.
        let exact = samples::counts(plugin.manifest(), &measurements);
        let left = self.memory.read(key, |memory| cadence::left(memory.reported, Instant::now()));
        // What failed is tried again later and later, and must not take its message along.
        let hold = left.is_some() && !matches!(next, Next::Backoff(_));
        match report::write_status(&self.client, plugin, object, &report, settled, exact, hold).await {
            Ok(StatusWrite::Held) => cadence::next(next, left.unwrap_or_default()),
            Ok(written) => {
                self.metrics.measured(&plugin.name, &measurements);
                events.iter().for_each(|event| self.events.record(plugin.objects.kind(), object, event));
                self.memory.update(key, |memory| match written {
                    StatusWrite::None | StatusWrite::Held => memory.converged = converged,
                    StatusWrite::Written { settled, .. } => {
                        (memory.status, memory.converged) = (settled, None);
                        memory.reported = Some(Instant::now());
                    }
                });
                if matches!(written, StatusWrite::Written { changed_meanwhile: true, .. }) { Next::Again } else { next }
            }
            Err(failure) => {
                let next = Next::Backoff(if failure.passing { BACKOFF_FIRST } else { FAULT });
                tracing::warn!(reason = failure.reason, decision = %next, "{}", failure.message);
                if !failure.passing {
                    self.tell(plugin, object, &Note::warning(failure.reason, &failure.message));
                }
                next
            }
        }
    }

    /// Tells of a fault, in the host's own words, where people look.
    fn tell(&self, plugin: &ActivePlugin, object: &Object, fault: &Note) {
        self.metrics.fault(&plugin.name, &fault.reason);
        self.events.record(plugin.objects.kind(), object, fault);
    }

    async fn unobserved(&self, plugin: &ActivePlugin, key: &Key, reason: Unobserved) -> Next {
        match reason {
            Unobserved::Gone => {
                tracing::debug!(
                    "{} resource not found. Ignoring since object must be deleted",
                    plugin.objects.kind().kind
                );
                self.lookups.forget(key);
                self.pace.forget(key);
                self.memory.forget(key);
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

    /// Forgets what is remembered of a plugin's objects.
    pub fn forget_plugin(&self, plugin: &str) {
        self.memory.forget_plugin(plugin);
        self.pace.forget_plugin(plugin);
    }
}

/// How a round ended.
enum Round {
    /// Something was written, or is not as it was known: look again.
    Again,
    /// The plugin has finalized the object, and measured that.
    Finalized(Vec<Measurement>),
    /// The version that was asked is no longer at work.
    Superseded,
    /// The deletes have to wait for a judgement: look again soon.
    Postponed,
    /// There is something to report.
    Concluded(Box<Conclusion>),
}

/// The command that confirms deletes which are held back.
fn how_to_confirm(plugin: &ActivePlugin, object: &Object) -> String {
    let kind = plugin.objects.kind();
    let plural = plugin.objects.installed().map_or_else(|| kind.kind.to_lowercase(), |found| found.resource.plural);
    let namespace =
        if object.name.namespace.is_empty() { String::new() } else { format!(" -n {}", object.name.namespace) };
    format!(
        "kubectl annotate{namespace} {plural}.{} {} {}={} --overwrite (or --all in the place of the name)",
        kind.group(),
        object.name.name,
        labels::ALLOW_REMOVAL,
        plugin.short_digest()
    )
}
