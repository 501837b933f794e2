//! One reconcile: runs the stages in order, in up to [`MAX_ROUNDS`] rounds. Start reading at `Rounds::round`.
//!
//! # Flow
//!
//! A round observes, calls, checks, plans and applies. If it wrote something, another round follows, because the plugin has not
//! seen the result of its own children yet. The first round that writes nothing reports.
//!
//! # Guarantees
//!
//! - The reported status always comes from an answer to the children that exist, never to those that existed before a write.
//! - A stage that fails ends the reconcile before any delete.
//!
//! # Caveats
//!
//! A plugin that returns other children in every round does not converge. The reconcile then ends with `NotConverging` and backoff.

use std::{ops::ControlFlow, time::Duration};

use pilothouse_engine::{
    Verb,
    contract::{Measurement, Response, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    apply::{self, Applied, Applier, Failure, FailureClass, FailureReason},
    call::{
        self, CallError, PluginAnswer, PluginCall,
        answer::LastAnswer,
        in_sync::{ChildrenInSync, MetadataKeys, WrittenStates},
        inputs::Inputs,
    },
    check::{self, Children, Desired, DesiredChild, MAX_CHILDREN, Owner, Refusal},
    lifecycle::{
        expiry::{self, Lifetime},
        finalizer::{self, FinalizerStep},
        managed::not_ours,
    },
    observe::{ObserveError, Observed, observe},
    plan::{
        self, DeleteCause, Plan, PlanHistory, Recreations, WriteCause,
        deletion_guard::{self, DeletionContext, DeletionDecision},
    },
    report::{
        self, Reported,
        result::{self, FAULT_BACKOFF, Pending, ReconcileResult, writes_failed},
        status::Health,
    },
    state::{
        ObjectState, OngoingFailure,
        hot_loop::{HotLoops, Throttling},
    },
    work_item::WorkItem,
};
use crate::{
    events::Event,
    object::{Object, describe},
    plugin::Presence,
    queue::{Action, delay_after},
};

/// The most rounds of one reconcile. A plugin whose children depend on other children needs a few. One that needs more than
/// this is likely to loop for ever, so it continues with backoff.
const MAX_ROUNDS: usize = 5;

/// The delay until the next decision about deletes that wait for the first reconcile of the plugin's other objects.
const POSTPONED_DELETES_DELAY: Duration = Duration::from_millis(200);

/// The part of the retry delay for which a refused write is not repeated, even if events trigger reconciles in the meantime. It
/// is less than one because of the queue's jitter: the retry itself must not come too early for the write.
const REFUSED_WRITE_PAUSE: f64 = 0.85;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReconcileEnd {
    /// The object no longer exists, so its remembered state is obsolete.
    ObjectGone,
    /// The object was reconciled, and this action follows.
    Next(Action),
}

/// How a round ended.
enum RoundEnd {
    /// The cluster changed, or the cache was outdated: another round follows.
    AnotherRound,
    /// The reconcile is complete.
    Finished(ReconcileEnd),
}

impl RoundEnd {
    fn finished(action: Action) -> Self {
        Self::Finished(ReconcileEnd::Next(action))
    }
}

/// An answer, and the result of applying it.
struct AppliedAnswer {
    desired: Desired,
    decision: DeletionDecision,
    awaited: Vec<String>,
    waiting: Vec<String>,
    applied: Applied,
}

/// The rounds of one object's reconcile.
pub(super) struct Rounds<'a> {
    pub(super) item: WorkItem<'a>,
    pub(super) hot_loops: &'a HotLoops,
}

impl Rounds<'_> {
    /// Runs rounds until one finishes the reconcile.
    pub(super) async fn run(&self, state: &mut ObjectState) -> ReconcileEnd {
        for round in 1..=MAX_ROUNDS + MAX_CHILDREN {
            match self.round(state, round).await {
                RoundEnd::AnotherRound => {}
                RoundEnd::Finished(ended) => return ended,
            }
        }
        // Nothing leads here: a round after the last one writes only children that waited for others, and there are not that many.
        ReconcileEnd::Next(Action::Requeue)
    }

    /// One round: the stages in their order.
    async fn round(&self, state: &mut ObjectState, round: usize) -> RoundEnd {
        let item = &self.item;
        let observed = match observe(item.plugin, &item.key.object) {
            Ok(observed) => observed,
            Err(reason) => return self.unobserved(state, reason).await,
        };
        if item.plugin.account.as_ref().is_some_and(|account| account.is_missing_for(&observed.object.name.namespace)) {
            let why = "the object has no namespace, so there is no service account in it; set spec.serviceAccountNamespace of \
                       the Plugin to Host";
            return self.conclude(state, &observed.object, result::fault(ACCOUNT_UNAVAILABLE, why)).await;
        }
        let refused = state.refused_children.told(observed.object.generation);
        let inputs = Inputs::of(item.plugin.called(), &observed, &refused);
        let verb = match self.before_call(state, &observed, inputs).await {
            ControlFlow::Continue(verb) => verb,
            ControlFlow::Break(step) => return step,
        };
        // Further rounds follow from the host's own writes. They count only if they do not converge (`count_extra_rounds`).
        if round == 1 {
            self.hot_loops.count_call(item.key, observed.object.generation);
        }
        let call = PluginCall { observed: &observed, refused, inputs, verb };
        let PluginAnswer { response, mut answer } = match call::call_plugin(item, &call, state.answer.take()).await {
            Ok(answered) => answered,
            // The next reconcile of the key looks the plugin up again and finds the new version.
            Err(CallError::Superseded) => return RoundEnd::finished(Action::Requeue),
            Err(CallError::PermissionsUnknown(why)) => {
                let fault = result::fault(ACCOUNT_UNAVAILABLE, &why);
                return self.conclude(state, &observed.object, fault).await;
            }
            Err(CallError::Failed(outcome)) => {
                return self.conclude(state, &observed.object, result::call_failed(&outcome)).await;
            }
        };
        // The answer may have inherited which children are in sync. They may have changed since they were compared.
        answer.refresh(&observed);
        let mut desired = match self.check(&response, &answer, &observed) {
            Ok(desired) => desired,
            Err(refusal) => {
                let fault = result::fault(refusal.reason(), &refusal.to_string());
                return self.conclude(state, &observed.object, fault).await;
            }
        };
        if has_order(&response) && !observed.object.deleting && !finalizer::has_order(&observed.object) {
            // Before the first of them is created: without it, they would all go at once.
            return match finalizer::add_order(&item.context.client, item.plugin, &observed.object).await {
                Ok(()) => RoundEnd::AnotherRound,
                Err(failure) => self.fail(state, &observed.object, failure).await,
            };
        }
        let children = desired.children.take_checked();
        let keys = children.as_deref().map(metadata_keys);
        // The entries are keyed by UID, so each child that is created again would leave one behind.
        state.normalised.keep_only(&observed.children);
        let history = PlanHistory { normalised: &state.normalised, recreations: &state.recreations };
        let mut plan = children.map(|children| plan::plan(children, &observed, history)).unwrap_or_default();
        let decision = self.decide(state, &call, &desired, &plan);
        // Only the deletes wait. The next answer can correct a wrong write, but not a wrong delete.
        match decision {
            DeletionDecision::Allow => plan.hold_deletes(),
            DeletionDecision::Postpone | DeletionDecision::HoldBack(_) => plan.deletes.clear(),
        }
        let (awaited, waiting) = (std::mem::take(&mut plan.awaited), std::mem::take(&mut plan.waiting));
        let applied = self.apply(state, &observed, plan).await;
        // While deletes are held back, or a child is still being deleted, the children are not as the answer wants them, and the
        // next reconcile must plan them again.
        if let Some(keys) = keys
            && decision == DeletionDecision::Allow
            && awaited.is_empty()
            && waiting.is_empty()
        {
            remember_in_sync(&mut answer, keys, &observed, &applied);
        }
        state.answer = Some(answer);
        self.after_apply(state, &call, round, AppliedAnswer { desired, decision, awaited, waiting, applied }).await
    }

    /// The steps before the call: skips objects of another manager and objects without changes, deletes expired ones, and adds or
    /// removes the finalizer.
    async fn before_call(
        &self,
        state: &mut ObjectState,
        observed: &Observed,
        inputs: Inputs,
    ) -> ControlFlow<RoundEnd, Verb> {
        let (item, object) = (&self.item, &*observed.object);
        let manifest = item.plugin.manifest();
        // This comes before all steps that write: such an object gets no status, no finalizer and no expiry.
        if let Some(why) = not_ours(object, manifest, item.plugin.serves(&object.name.namespace)) {
            tracing::debug!("{why}; left alone");
            return ControlFlow::Break(RoundEnd::finished(Action::AwaitChange));
        }
        if item.plugin.presence == Presence::Departed {
            return ControlFlow::Break(match finalizer::next_step(object, manifest) {
                FinalizerStep::TearDown => self.tear_down(state, observed).await,
                _ => RoundEnd::finished(Action::AwaitChange),
            });
        }
        // This comes before the check for changes, because an object expires without any change.
        if expiry::lifetime(object, manifest, item.context.clock.now()) == Lifetime::Over {
            return ControlFlow::Break(self.expire(state, object).await);
        }
        let is_status_outdated = state.reports.are_outdated(observed.schema.as_ref());
        if let Some(answer) = state.answer.as_mut().filter(|_| !is_status_outdated) {
            answer.refresh(observed);
            // An object that was throttled until now needs a new report, which removes its condition `Throttled`.
            if answer.is_settled(inputs, &item.lookups(), observed)
                && self.hot_loops.end_throttling(item.key) == Throttling::Inactive
            {
                item.context.metrics.plugins.call_skipped(&item.plugin.name);
                return ControlFlow::Break(RoundEnd::finished(Action::AwaitChange));
            }
        }
        // This comes after the check for changes: finalizers and the deletion timestamp are inputs, so a settled answer needs no step.
        match finalizer::next_step(object, manifest) {
            FinalizerStep::Reconcile => ControlFlow::Continue(Verb::Reconcile),
            FinalizerStep::Finalize => ControlFlow::Continue(Verb::Finalize),
            FinalizerStep::TearDown => ControlFlow::Break(self.tear_down(state, observed).await),
            FinalizerStep::Ignore => ControlFlow::Break(RoundEnd::finished(Action::AwaitChange)),
            FinalizerStep::Release => ControlFlow::Break(self.release(state, object, &[]).await),
            FinalizerStep::Add => {
                ControlFlow::Break(match finalizer::add(&item.context.client, item.plugin, object).await {
                    Ok(()) => RoundEnd::AnotherRound,
                    Err(failure) => self.fail(state, object, failure).await,
                })
            }
        }
    }

    /// Stage 4. The children are not checked while garbage collection deletes them, nor if they are known to be in sync.
    fn check(&self, response: &Response, answer: &LastAnswer, observed: &Observed) -> Result<Desired, Refusal> {
        let children = match response.children.as_deref() {
            // Garbage collection is deleting or releasing the children, and a write would undo that.
            Some(_) if finalizer::is_being_collected(&observed.object) => Children::Leave,
            Some(_) if answer.has_children_in_sync() => Children::InSync,
            Some(children) => Children::Check(children),
            None => Children::Leave,
        };
        let manifest = self.item.plugin.manifest();
        let owner = Owner {
            manifest,
            kind: &observed.kind,
            object: &observed.object,
            schema: observed.schema.as_ref(),
            kinds: &observed.kinds,
            namespaces: observed.namespaces.as_ref(),
        };
        check::check(&owner, response, children)
    }

    /// Asks the guard against mass deletion about the plan's deletes. Deletes during finalization are always on purpose.
    fn decide(&self, state: &ObjectState, call: &PluginCall<'_>, desired: &Desired, plan: &Plan) -> DeletionDecision {
        let PluginCall { observed, verb, .. } = call;
        let context = DeletionContext {
            version: self.item.plugin.short_digest(),
            on_purpose: desired.removes_many || *verb == Verb::Finalize,
            is_pending: state.pending_generation == Some(observed.object.generation),
            new_version: &self.item.plugin.new_version,
        };
        deletion_guard::decide(plan, observed, context)
    }

    /// Stage 6. Remembers refused writes, normalised values and children to recreate for later reconciles.
    async fn apply(&self, state: &mut ObjectState, observed: &Observed, mut plan: Plan) -> Applied {
        let item = &self.item;
        let held = state.refused_writes.hold(&mut plan, Instant::now());
        if !held.is_empty() {
            // A held write counts as a failure, and deletes need a plan without failures.
            plan.deletes.clear();
        }
        if plan.is_empty() {
            return Applied { failures: held, ..Applied::default() };
        }
        log_writes(&plan);
        // A generation that is not observed yet is a user's change, after which another answer is to be expected.
        if is_answer_changed(&plan) && observed.object.is_observed() {
            self.hot_loops.count_changed_answer(item.key);
        }
        let has_deletes = !plan.deletes.is_empty();
        let client = item.context.identities.client(item.account().as_ref());
        let (host_client, plugin, object) = (&item.context.client, item.plugin, &observed.object);
        let applier = Applier { host_client, client: &client, plugin, object };
        let mut applied = apply::apply(&applier, plan).await;
        // The queue counts this failure when the reconcile ends, hence one more. It then computes the same delay, except for
        // jitter.
        let pause = delay_after(FAULT_BACKOFF, item.failures.saturating_add(1)).mul_f64(REFUSED_WRITE_PAUSE);
        state.refused_writes.remember(std::mem::take(&mut applied.refused), pause, Instant::now());
        applied.failures.extend(held);
        for written in &applied.written {
            match (&written.write.cause, written.has_changed) {
                (WriteCause::Drifted(_), true) => item.context.metrics.plugins.drift_repaired(&item.plugin.name),
                // The apply left the resource version as it was, so it removed none of these differences.
                (WriteCause::Drifted(there) | WriteCause::Changed(there), false) => {
                    state.normalised.remember(&written.write.child, &there.live, &there.differences);
                }
                _ => {}
            }
        }
        // The deletes of a recreation may be missing in the plan, because the guard or a held write keeps them back. The
        // recreations are kept then: to find them anew costs an update that is refused.
        if has_deletes || !applied.recreations.is_empty() {
            state.recreations = Recreations::of(applied.recreations.iter().cloned());
        }
        applied
    }

    /// Starts another round if something changed, otherwise reports (stage 7).
    async fn after_apply(
        &self,
        state: &mut ObjectState,
        call: &PluginCall<'_>,
        round: usize,
        work: AppliedAnswer,
    ) -> RoundEnd {
        let AppliedAnswer { desired, decision, awaited, waiting, applied } = work;
        // Children in order take a round each, and need not converge sooner than there are children.
        let is_last = round >= MAX_ROUNDS && waiting.is_empty() && !applied.has_created_in_order();
        let (object, verb, tells) = (&*call.observed.object, call.verb, self.item.plugin.contract().has_readiness());
        let has_changed = applied.has_changed_anything() || !applied.recreations.is_empty();
        // An outdated cache has been refreshed from the API server, so the next round plans with the current state. Other failures
        // wait for their backoff.
        if !is_last && (applied.is_outdated() || (has_changed && applied.failures.is_empty())) {
            return RoundEnd::AnotherRound;
        }
        if state.refused_children.update(object.generation, &applied) && tells && round < MAX_ROUNDS {
            // The plugin learns at once what was refused, and may do without.
            return RoundEnd::AnotherRound;
        }
        if !applied.failures.is_empty() {
            if verb == Verb::Finalize && is_namespace_ending(&applied.failures) {
                return self.abandon_cleanup(state, object, &applied.failures).await;
            }
            return self.conclude(state, object, writes_failed(&applied.failures, Some(desired))).await;
        }
        if has_changed {
            self.hot_loops.count_extra_rounds(self.item.key, MAX_ROUNDS);
            return self.conclude(state, object, result::not_converging(desired, MAX_ROUNDS)).await;
        }
        let result = match decision {
            // Not reported: it is not known yet whether these deletes will be held back.
            DeletionDecision::Postpone => return RoundEnd::finished(Action::RequeueAfter(POSTPONED_DELETES_DELAY)),
            DeletionDecision::HoldBack(why) => {
                result::deletes_held_back(desired, &why, &deletion_guard::how_to_confirm(self.item.plugin, object))
            }
            DeletionDecision::Allow if verb == Verb::Finalize && desired.verdict == Verdict::Done => {
                return self.release(state, object, &desired.measurements).await;
            }
            DeletionDecision::Allow => {
                let mut pending = Pending { awaited, waiting, unready: Vec::new() };
                if tells && desired.asks_for_readiness() {
                    pending.unready = call.observed.unready();
                    state.answer.iter_mut().for_each(|answer| answer.depends_on_readiness(&pending.unready));
                }
                result::carried_out(desired, pending)
            }
        };
        self.conclude_answer(state, call.observed, result).await
    }

    /// Reports an answer that was carried out. If the status shows it, the next reconcile with the same inputs has nothing to do.
    async fn conclude_answer(&self, state: &mut ObjectState, observed: &Observed, result: ReconcileResult) -> RoundEnd {
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
    async fn conclude(&self, state: &mut ObjectState, object: &Object, result: ReconcileResult) -> RoundEnd {
        let action = result.action;
        if let Some(answer) = &mut state.answer {
            answer.mark_unreported();
        }
        RoundEnd::finished(self.report(state, object, result).await.map_or(action, |reported| reported.action))
    }

    /// Reports a result. Returns none for a transient failure that is too recent to report: most of them are over with the next
    /// try.
    async fn report(&self, state: &mut ObjectState, object: &Object, mut result: ReconcileResult) -> Option<Reported> {
        let item = &self.item;
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
        if result.is_carried_out {
            state.pending_generation = None;
        } else if !object.is_observed() {
            state.pending_generation = Some(object.generation);
        }
        let throttled = self.hot_loops.throttled_reason(item.key);
        Some(report::report(item, object, &result, &mut state.reports, throttled).await)
    }

    async fn fail(&self, state: &mut ObjectState, object: &Object, failure: Failure) -> RoundEnd {
        self.conclude(state, object, writes_failed(&[failure], None)).await
    }

    async fn unobserved(&self, state: &mut ObjectState, reason: ObserveError) -> RoundEnd {
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

    /// Deletes an expired object. The requeue observes the deletion, which may need the plugin's finalizer.
    async fn expire(&self, state: &mut ObjectState, object: &Object) -> RoundEnd {
        tracing::info!("its time is over; deleting it");
        match expiry::delete(&self.item.context.client, self.item.plugin, object).await {
            Ok(()) => RoundEnd::finished(Action::Requeue),
            Err(failure) => self.fail(state, object, failure).await,
        }
    }

    /// Removes the finalizer of an object that is being deleted. Where it has the one for children in an order as well, another round
    /// follows: the host's own write wakes nobody.
    async fn release(&self, state: &mut ObjectState, object: &Object, measurements: &[Measurement]) -> RoundEnd {
        let item = &self.item;
        tracing::info!("finalized; the finalizer is taken off");
        match finalizer::remove(&item.context.client, item.plugin, object).await {
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
    async fn tear_down(&self, state: &mut ObjectState, observed: &Observed) -> RoundEnd {
        let (item, object) = (&self.item, &*observed.object);
        // Garbage collection deletes or releases all of them itself, in no order.
        let mut plan = match finalizer::is_being_collected(object) {
            true => Plan::default(),
            false => plan::teardown(observed),
        };
        if plan.last_to_go == 0 {
            tracing::info!("no child has to go before another; the finalizer is taken off");
            return match finalizer::remove_order(&item.context.client, item.plugin, object).await {
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
    async fn abandon_cleanup(&self, state: &mut ObjectState, object: &Object, failures: &[Failure]) -> RoundEnd {
        let why = failures.first().map(|failure| failure.message.as_str()).unwrap_or_default();
        let message =
            format!("the namespace is being deleted, so the plugin cannot clean up; the object is let go: {why}");
        tracing::warn!(reason = CLEANUP_ABANDONED, decision = "the finalizer is taken off", "{message}");
        self.item.record_fault(object, &Event::warning(CLEANUP_ABANDONED, &message));
        self.release(state, object, &[]).await
    }
}

/// The reason if nobody can work with the account of the plugin.
const ACCOUNT_UNAVAILABLE: &str = "AccountUnavailable";

/// The reason of the Event for a cleanup that the plugin could not do.
const CLEANUP_ABANDONED: &str = "CleanupAbandoned";

fn is_namespace_ending(failures: &[Failure]) -> bool {
    failures.iter().any(|failure| failure.reason == FailureReason::NamespaceTerminating)
}

/// Whether any child of an answer waits for another.
fn has_order(response: &Response) -> bool {
    response.children.iter().flatten().any(|child| !child.after.is_empty())
}

/// Whether the plan follows from a changed answer, and not from somebody else's change of the children.
fn is_answer_changed(plan: &Plan) -> bool {
    let is_changed = plan.writes.iter().any(|write| matches!(write.cause, WriteCause::Changed(_)));
    is_changed || plan.deletes.iter().any(|delete| delete.cause == DeleteCause::NotReturned)
}

/// Remembers that the children are in sync with the answer. After a delete or a failure that is not known.
fn remember_in_sync(answer: &mut LastAnswer, keys: MetadataKeys, observed: &Observed, applied: &Applied) {
    let Some(id) = answer.children() else { return };
    if !applied.failures.is_empty() || !applied.deleted.is_empty() || !applied.recreations.is_empty() {
        return;
    }
    let in_sync = if applied.written.is_empty() {
        ChildrenInSync::compared(id, keys, observed)
    } else {
        let replaced = applied.written.iter().filter_map(|written| written.write.cause.live());
        let writes = WrittenStates {
            replaced: replaced.map(|live| live.fingerprint()).collect(),
            written: applied.written.iter().map(|written| written.state).collect(),
        };
        ChildrenInSync::applied(id, observed, &writes)
    };
    answer.set_in_sync(in_sync);
}

/// The keys of all labels and annotations that the answer sets on its children.
fn metadata_keys(children: &[DesiredChild]) -> MetadataKeys {
    let maps = children.iter().flat_map(|child| ["labels", "annotations"].map(|map| &child.body["metadata"][map]));
    MetadataKeys::of(maps.filter_map(Value::as_object).flat_map(|map| map.keys().map(String::as_str)))
}

fn log_writes(plan: &Plan) {
    for write in &plan.writes {
        let child = describe(&write.child.kind, &write.child.name);
        let (fields, cause) = (plan::diff::in_words(write.cause.differences()), write.cause.to_string());
        tracing::info!(child, cause, fields, "{}", write.cause.finding(&write.child.kind.kind));
    }
}
