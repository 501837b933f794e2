//! One reconcile as rounds. A round that wrote something is followed by another one, for what the plugin said of the status was
//! about the past; what is reported is the answer to what is there.

use std::{ops::ControlFlow, time::Duration};

use pilothouse_engine::{
    Verb,
    contract::{Measurement, Response, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    apply::{self, Applied, Applier, Failure, FailureReason, Outlook},
    call::{
        self, Answered, Question, Unanswered,
        answer::LastAnswer,
        in_sync::{ChildrenInSync, Marks, WrittenStates},
        inputs::Inputs,
    },
    check::{self, Children, Desired, DesiredChild, Owner, Refusal},
    lifecycle::{
        expiry::{self, Lifetime},
        finalizer::{self, FinalizerStep},
        managed::is_managed_elsewhere,
    },
    observe::{Observed, Unobserved, observe},
    plan::{
        self, DeleteCause, Experience, Plan, Recreations, WriteCause,
        deletion_guard::{self, DeletionContext, DeletionDecision},
    },
    report::{
        self, Reported,
        result::{self, FAULT, ReconcileResult, failed},
        status::Health,
    },
    state::{Lasting, ObjectState, hot_loop::HotLoops},
    work_item::WorkItem,
};
use crate::{
    events::Event,
    object::{Object, describe},
    queue::{Action, delay_after},
};

/// Rounds of one reconcile. A plugin whose children depend on its children needs a few; one that never comes to rest
/// is a loop, and goes on with backoff.
const ROUNDS: usize = 5;

/// When deletes are decided about again that have to wait until all objects have been looked at.
const POSTPONED: Duration = Duration::from_millis(200);

/// How much of the delay of a retry a refused write waits, whatever wakes its object: a little less, for delays differ a little.
const REFUSED: f64 = 0.85;

/// How a reconcile ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The object is gone, and all that is remembered of it is for nothing.
    Gone,
    /// It was looked at; what becomes of its key.
    Looked(Action),
}

/// How a round ends.
enum Step {
    /// Something was written, or is not as it was known: look again.
    LookAgain,
    /// The reconcile is over.
    End(Ended),
}

impl Step {
    fn end(action: Action) -> Self {
        Self::End(Ended::Looked(action))
    }
}

/// What was decided and done in a round.
struct RoundWork {
    desired: Desired,
    decision: DeletionDecision,
    awaited: Vec<String>,
    applied: Applied,
}

/// One object's reconcile.
pub(super) struct Rounds<'a> {
    pub(super) item: WorkItem<'a>,
    pub(super) hot_loops: &'a HotLoops,
}

impl Rounds<'_> {
    /// Goes through as many rounds as it takes.
    pub(super) async fn run(&self, state: &mut ObjectState) -> Ended {
        for round in 1..=ROUNDS {
            match self.round(state, round).await {
                Step::LookAgain => {}
                Step::End(ended) => return ended,
            }
        }
        Ended::Looked(Action::Requeue)
    }

    /// One round: the stages in their order.
    async fn round(&self, state: &mut ObjectState, round: usize) -> Step {
        let item = &self.item;
        let observed = match observe(item.plugin, &item.key.object) {
            Ok(observed) => observed,
            Err(reason) => return self.unobserved(state, reason).await,
        };
        let inputs = Inputs::of(item.plugin.reconciler.digest(), &item.plugin.config, &observed);
        let verb = match self.before_call(state, &observed, inputs).await {
            ControlFlow::Continue(verb) => verb,
            ControlFlow::Break(step) => return step,
        };
        if round == 1 {
            self.hot_loops.called(item.key, observed.object.generation);
        }
        let question = Question { observed: &observed, inputs, verb };
        let Answered { response, mut answer } = match call::ask(item, &question, state.answer.take()).await {
            Ok(answered) => answered,
            Err(Unanswered::Superseded) => return Step::end(Action::Requeue),
            Err(Unanswered::Failed(outcome)) => {
                return self.conclude(state, &observed.object, result::unanswered(&outcome)).await;
            }
        };
        answer.refresh(&observed);
        let mut desired = match self.check(&response, &answer, &observed) {
            Ok(desired) => desired,
            Err(refusal) => {
                let fault = result::fault(refusal.reason(), &refusal.to_string());
                return self.conclude(state, &observed.object, fault).await;
            }
        };
        let children = desired.children.take_checked();
        let marks = children.as_deref().map(marks_of);
        let experience = Experience { normalised: &state.normalised, recreations: &state.recreations };
        let mut plan = children.map(|children| plan::plan(children, &observed, experience)).unwrap_or_default();
        let decision = self.decide(state, &question, &desired, &plan);
        if decision != DeletionDecision::Allow {
            plan.deletes.clear();
        }
        let awaited = std::mem::take(&mut plan.awaited);
        let applied = self.apply(state, &observed, plan).await;
        if let Some(marks) = marks
            && decision == DeletionDecision::Allow
            && awaited.is_empty()
        {
            put_in_sync(&mut answer, marks, &observed, &applied);
        }
        state.answer = Some(answer);
        self.after_apply(state, &question, round, RoundWork { desired, decision, awaited, applied }).await
    }

    /// What comes before the plugin is asked: whether the object is ours, whether there is anything to do, and its finalizer.
    async fn before_call(
        &self,
        state: &mut ObjectState,
        observed: &Observed,
        inputs: Inputs,
    ) -> ControlFlow<Step, Verb> {
        let (item, object) = (&self.item, &*observed.object);
        let manifest = item.plugin.manifest();
        if is_managed_elsewhere(object, manifest) {
            tracing::debug!("another manager is named; left alone");
            return ControlFlow::Break(Step::end(Action::AwaitChange));
        }
        if expiry::lifetime(object, manifest, item.context.clock.now()) == Lifetime::Over {
            return ControlFlow::Break(self.expire(state, object).await);
        }
        let is_status_outdated = state.reports.are_outdated(observed.schema.as_ref());
        if let Some(answer) = state.answer.as_mut().filter(|_| !is_status_outdated) {
            answer.refresh(observed);
            // That an object has calmed down is told, also if nothing else changed.
            if answer.is_settled(inputs, &item.lookups(), observed) && !self.hot_loops.calm_down(item.key) {
                item.context.metrics.plugins.call_skipped(&item.plugin.name);
                return ControlFlow::Break(Step::end(Action::AwaitChange));
            }
        }
        match finalizer::next_step(object, manifest) {
            FinalizerStep::Reconcile => ControlFlow::Continue(Verb::Reconcile),
            FinalizerStep::Finalize => ControlFlow::Continue(Verb::Finalize),
            FinalizerStep::Ignore => ControlFlow::Break(Step::end(Action::AwaitChange)),
            FinalizerStep::Release => ControlFlow::Break(self.release(state, object, &[]).await),
            FinalizerStep::Add => {
                ControlFlow::Break(match finalizer::add(&item.context.client, item.plugin, object).await {
                    Ok(()) => Step::LookAgain,
                    Err(failure) => self.fail(state, object, failure).await,
                })
            }
        }
    }

    /// Stage 4.
    fn check(&self, response: &Response, answer: &LastAnswer, observed: &Observed) -> Result<Desired, Refusal> {
        let children = match response.children.as_deref() {
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
        };
        check::check(&owner, response, children)
    }

    /// Whether the plan's deletes may be carried out. What a plugin deletes as it finalizes is meant to go.
    fn decide(&self, state: &ObjectState, question: &Question<'_>, desired: &Desired, plan: &Plan) -> DeletionDecision {
        let Question { observed, verb, .. } = question;
        let context = DeletionContext {
            version: self.item.plugin.short_digest(),
            on_purpose: desired.removes_many || *verb == Verb::Finalize,
            is_pending: state.pending_generation == Some(observed.object.generation),
            new_version: &self.item.plugin.new_version,
        };
        deletion_guard::decide(plan, observed, context)
    }

    /// Stage 6, and what is learned from it.
    async fn apply(&self, state: &mut ObjectState, observed: &Observed, mut plan: Plan) -> Applied {
        let item = &self.item;
        let held = state.refused_writes.hold(&mut plan, Instant::now());
        if !held.is_empty() {
            plan.deletes.clear();
        }
        if plan.is_empty() {
            return Applied { failures: held, ..Applied::default() };
        }
        log(&plan);
        if observed.object.is_observed() && wants_something_else(&plan) {
            self.hot_loops.answer_differs(item.key);
        }
        let has_deletes = !plan.deletes.is_empty();
        let applier = Applier { client: &item.context.client, plugin: item.plugin, object: &observed.object };
        let mut applied = apply::apply(&applier, plan).await;
        let pause = delay_after(FAULT, item.failures.saturating_add(1)).mul_f64(REFUSED);
        state.refused_writes.remember(std::mem::take(&mut applied.refused), pause, Instant::now());
        applied.failures.extend(held);
        for written in &applied.written {
            match (&written.write.cause, written.has_changed) {
                (WriteCause::Drifted(_), true) => item.context.metrics.plugins.drift_repaired(&item.plugin.name),
                (WriteCause::Drifted(there) | WriteCause::Changed(there), false) => {
                    state.normalised.remember(&written.write.child, &there.live, &there.differences);
                }
                _ => {}
            }
        }
        if has_deletes || !applied.recreations.is_empty() {
            state.recreations = Recreations::of(applied.recreations.iter().cloned());
        }
        applied
    }

    /// Stage 7, or another round.
    async fn after_apply(
        &self,
        state: &mut ObjectState,
        question: &Question<'_>,
        round: usize,
        work: RoundWork,
    ) -> Step {
        let RoundWork { desired, decision, awaited, applied } = work;
        let (object, verb, is_last) = (&*question.observed.object, question.verb, round == ROUNDS);
        let has_changed = applied.has_changed_anything() || !applied.recreations.is_empty();
        if !is_last && (applied.is_outdated() || (has_changed && applied.failures.is_empty())) {
            return Step::LookAgain;
        }
        if !applied.failures.is_empty() {
            if verb == Verb::Finalize && is_namespace_ending(&applied.failures) {
                return self.abandon_cleanup(state, object, &applied.failures).await;
            }
            return self.conclude(state, object, failed(&applied.failures, Some(desired))).await;
        }
        if has_changed {
            self.hot_loops.not_converging(self.item.key, ROUNDS);
            return self.conclude(state, object, result::not_converging(desired, ROUNDS)).await;
        }
        let result = match decision {
            DeletionDecision::Postpone => return Step::end(Action::RequeueAfter(POSTPONED)),
            DeletionDecision::HoldBack(why) => {
                result::held_back(desired, &why, &deletion_guard::how_to_confirm(self.item.plugin, object))
            }
            DeletionDecision::Allow if verb == Verb::Finalize && desired.verdict == Verdict::Done => {
                return self.release(state, object, &desired.measurements).await;
            }
            DeletionDecision::Allow => result::answered(desired, &awaited),
        };
        self.conclude_answer(state, question.observed, result).await
    }

    /// Reports an answer that was carried out, and remembers that.
    async fn conclude_answer(&self, state: &mut ObjectState, observed: &Observed, result: ReconcileResult) -> Step {
        let is_final = result.is_final;
        let action = result.action;
        let Some(reported) = self.tell(state, &observed.object, result).await else { return Step::end(action) };
        if let Some(answer) = &mut state.answer {
            match reported.is_told && is_final {
                true => answer.report(observed, reported.after),
                false => answer.leave_unreported(),
            }
        }
        Step::end(reported.action)
    }

    /// Reports how a reconcile ended that did not carry out an answer.
    async fn conclude(&self, state: &mut ObjectState, object: &Object, result: ReconcileResult) -> Step {
        let action = result.action;
        if let Some(answer) = &mut state.answer {
            answer.leave_unreported();
        }
        Step::end(self.tell(state, object, result).await.map_or(action, |reported| reported.action))
    }

    /// Reports a result; none where it is a fault that is not worth telling yet.
    async fn tell(&self, state: &mut ObjectState, object: &Object, mut result: ReconcileResult) -> Option<Reported> {
        let item = &self.item;
        let is_passing = matches!(result.outlook, Some(Outlook::Transient | Outlook::Progressing));
        state.lasting = is_passing.then(|| Lasting::goes_on(state.lasting, Instant::now()));
        if let Some(lasting) = state.lasting {
            let now = Instant::now();
            if result.outlook == Some(Outlook::Transient) && !lasting.is_for_status(now) {
                let decision = result.action.decision(item.failures);
                tracing::debug!(decision, health = ?result.health, "a fault that is not told before it lasts");
                return None;
            }
            if let (Health::Progressing(why), true) = (&result.health, lasting.is_for_event(now)) {
                result.faults.push(Event::warning(&why.reason, &why.message));
            }
        }
        if result.is_carried_out {
            state.pending_generation = None;
        } else if !object.is_observed() {
            state.pending_generation = Some(object.generation);
        }
        let slowed = self.hot_loops.slowed(item.key);
        Some(report::report(item, object, &result, &mut state.reports, slowed).await)
    }

    async fn fail(&self, state: &mut ObjectState, object: &Object, failure: Failure) -> Step {
        self.conclude(state, object, failed(&[failure], None)).await
    }

    async fn unobserved(&self, state: &mut ObjectState, reason: Unobserved) -> Step {
        let item = &self.item;
        match reason {
            Unobserved::Gone => {
                let kind = &item.plugin.objects.kind().kind;
                tracing::debug!("{kind} resource not found. Ignoring since object must be deleted");
                Step::End(Ended::Gone)
            }
            Unobserved::NotSynced => Step::end(Action::AwaitChange),
            Unobserved::Unknown { kind, why } => {
                let Some(object) = item.plugin.objects.store().get(&item.key.object) else {
                    return Step::end(Action::AwaitChange);
                };
                let message = format!("the children of kind {} are not known: {why}", kind.kind);
                self.conclude(state, &object, result::fault("ChildrenUnknown", &message)).await
            }
        }
    }

    /// Deletes an object whose time is over, and looks at what becomes of it.
    async fn expire(&self, state: &mut ObjectState, object: &Object) -> Step {
        tracing::info!("its time is over; deleting it");
        match expiry::delete(&self.item.context.client, self.item.plugin, object).await {
            Ok(()) => Step::end(Action::Requeue),
            Err(failure) => self.fail(state, object, failure).await,
        }
    }

    /// Lets an object go that is being deleted.
    async fn release(&self, state: &mut ObjectState, object: &Object, measurements: &[Measurement]) -> Step {
        let item = &self.item;
        tracing::info!("finalized; the finalizer is taken off");
        match finalizer::remove(&item.context.client, item.plugin, object).await {
            Ok(()) => {
                item.context.metrics.measurements.record(&item.plugin.name, measurements);
                Step::end(Action::AwaitChange)
            }
            Err(failure) => self.fail(state, object, failure).await,
        }
    }

    /// Lets an object go whose plugin cannot clean up: its namespace is being deleted and takes no child that would do it. To hold
    /// the object would hold the namespace for ever.
    async fn abandon_cleanup(&self, state: &mut ObjectState, object: &Object, failures: &[Failure]) -> Step {
        let why = failures.first().map(|failure| failure.message.as_str()).unwrap_or_default();
        let message =
            format!("the namespace is being deleted, so the plugin cannot clean up; the object is let go: {why}");
        tracing::warn!(reason = CLEANUP_ABANDONED, decision = "the finalizer is taken off", "{message}");
        self.item.tell(object, &Event::warning(CLEANUP_ABANDONED, &message));
        self.release(state, object, &[]).await
    }
}

/// The reason under which it is told that a plugin could not clean up.
const CLEANUP_ABANDONED: &str = "CleanupAbandoned";

fn is_namespace_ending(failures: &[Failure]) -> bool {
    failures.iter().any(|failure| failure.reason == FailureReason::NamespaceTerminating)
}

/// Whether a plan is made because the plugin's answer is another one, and not because somebody changed its children.
fn wants_something_else(plan: &Plan) -> bool {
    let is_changed = plan.writes.iter().any(|write| matches!(write.cause, WriteCause::Changed(_)));
    is_changed || plan.deletes.iter().any(|delete| delete.cause == DeleteCause::NotReturned)
}

/// Remembers that the children are as the answer wants them, where that is known.
fn put_in_sync(answer: &mut LastAnswer, marks: Marks, observed: &Observed, applied: &Applied) {
    let Some(id) = answer.children() else { return };
    if !applied.failures.is_empty() || !applied.deleted.is_empty() || !applied.recreations.is_empty() {
        return;
    }
    let in_sync = if applied.written.is_empty() {
        ChildrenInSync::compared(id, marks, observed)
    } else {
        let replaced = applied.written.iter().filter_map(|written| written.write.cause.live());
        let writes = WrittenStates {
            replaced: replaced.map(|live| live.fingerprint()).collect(),
            written: applied.written.iter().map(|written| written.state).collect(),
        };
        ChildrenInSync::applied(id, observed, &writes)
    };
    answer.put_in_sync(in_sync);
}

/// The labels and annotations of an answer's children.
fn marks_of(children: &[DesiredChild]) -> Marks {
    let maps = children.iter().flat_map(|child| ["labels", "annotations"].map(|map| &child.body["metadata"][map]));
    Marks::of(maps.filter_map(Value::as_object).flat_map(|map| map.keys().map(String::as_str)))
}

fn log(plan: &Plan) {
    for write in &plan.writes {
        let child = describe(&write.child.kind, &write.child.name);
        let (fields, cause) = (plan::diff::in_words(write.cause.differences()), write.cause.to_string());
        tracing::info!(child, cause, fields, "{}", write.cause.finding(&write.child.kind.kind));
    }
    for delete in &plan.deletes {
        let (child, cause) = (describe(&delete.kind, &delete.live.name), delete.cause.to_string());
        tracing::info!(child, cause, "Deleting {}: no longer wanted.", delete.kind.kind);
    }
}
