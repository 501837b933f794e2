//! One reconcile: runs the stages in order, in up to [`MAX_ROUNDS`] rounds. Start reading at `Rounds::stages`.
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

mod apply;
mod before_call;
mod conclude;
mod decorate;
mod object_end;
mod progress;

use std::{ops::ControlFlow, time::Duration};

use pilothouse_engine::{
    Manifest, Verb,
    contract::{Response, Verdict},
};
use serde_json::Value;

use self::progress::Progress;
use super::{
    apply::{Applied, Failure, FailureReason},
    call::{
        self, CallError, PluginAnswer, PluginCall,
        answer::LastAnswer,
        in_sync::{MetadataKeys, SharedKeys},
    },
    check::{self, Children, Desired, DesiredChild, MAX_CHILDREN, Owner, Refusal},
    lifecycle::finalizer,
    observe::{Observed, observe},
    plan::{
        self, Plan, PlanHistory,
        deletion_guard::{self, DeletionContext, DeletionDecision},
    },
    report::result::{self, Pending, writes_failed},
    state::{ObjectState, hot_loop::HotLoops},
    work_item::WorkItem,
};
use crate::queue::Action;

/// The most rounds of one reconcile. A plugin whose children depend on other children needs a few. One that needs more than
/// this is likely to loop for ever, so it continues with backoff.
const MAX_ROUNDS: usize = 5;

/// The delay until the next decision about deletes that wait for the first reconcile of the plugin's other objects.
const POSTPONED_DELETES_DELAY: Duration = Duration::from_millis(200);

/// The reason if nobody can work with the account of the plugin.
const ACCOUNT_UNAVAILABLE: &str = "AccountUnavailable";

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
    /// Many children were created: another round follows, and this one does not count.
    AnotherWave {
        /// How many there are now.
        children: usize,
    },
    /// The reconcile is complete.
    Finished(ReconcileEnd),
}

impl RoundEnd {
    fn finished(action: Action) -> Self {
        Self::Finished(ReconcileEnd::Next(action))
    }
}

/// What a stage gives to the next one, unless it ends the round.
type Stage<T> = ControlFlow<RoundEnd, T>;

/// A checked answer, and what to do about its children.
struct PlannedAnswer {
    desired: Desired,
    /// The keys of the metadata that the children set; none if they were not checked.
    keys: Option<MetadataKeys>,
    plan: Plan,
    decision: DeletionDecision,
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
    pub(super) shared_keys: &'a SharedKeys,
}

impl Rounds<'_> {
    /// Runs rounds until one finishes the reconcile.
    pub(super) async fn run(&self, state: &mut ObjectState) -> ReconcileEnd {
        let mut progress = Progress::begin();
        for _ in 0..MAX_ROUNDS + MAX_CHILDREN {
            let (ControlFlow::Continue(end) | ControlFlow::Break(end)) = self.stages(state, progress).await;
            match end {
                RoundEnd::AnotherRound => progress = progress.after_round(),
                RoundEnd::AnotherWave { children } => progress = progress.after_wave(children),
                RoundEnd::Finished(ended) => return ended,
            }
        }
        // Nothing leads here: a round after the last one creates children that waited for others or many, and there are not that many.
        ReconcileEnd::Next(Action::Requeue)
    }

    /// One round: the stages in their order.
    async fn stages(&self, state: &mut ObjectState, progress: Progress) -> Stage<RoundEnd> {
        let observed = self.observe(state).await?;
        let call = self.before_call(state, &observed).await?;
        let PluginAnswer { response, answer } = self.call(state, &call, progress.round).await?;
        let desired = self.check(state, &observed, &response, &answer).await?;
        self.decorate(state, &observed, &desired).await?;
        let planned = self.plan(state, &call, &answer, desired);
        let applied = self.apply_answer(state, &observed, planned, answer).await;
        ControlFlow::Continue(self.after_apply(state, &call, progress, applied).await)
    }

    /// Stage 2.
    async fn observe(&self, state: &mut ObjectState) -> Stage<Observed> {
        let item = &self.item;
        let observed = match observe(item.plugin, &item.key.object) {
            Ok(observed) => observed,
            Err(reason) => return ControlFlow::Break(self.unobserved(state, reason).await),
        };
        let object = &observed.object;
        item.notes.saw(object.generation, &object.resource_version, observed.children.len());
        if !item.plugin.answers(&observed.object) {
            // It was created anew, or its labels have changed, since the version was chosen.
            return ControlFlow::Break(RoundEnd::finished(Action::Requeue));
        }
        if item.plugin.account.as_ref().is_some_and(|account| account.is_missing_for(&observed.object.name.namespace)) {
            let why = "the object has no namespace, so there is no service account in it; set spec.serviceAccountNamespace of \
                       the Plugin to Host";
            let fault = result::fault(ACCOUNT_UNAVAILABLE, why);
            return ControlFlow::Break(self.conclude(state, &observed.object, fault).await);
        }
        ControlFlow::Continue(observed)
    }

    /// Stage 3.
    async fn call(&self, state: &mut ObjectState, call: &PluginCall<'_>, round: usize) -> Stage<PluginAnswer> {
        let (item, object) = (&self.item, &*call.observed.object);
        // Further rounds follow from the host's own writes. They count only if they do not converge (`count_extra_rounds`).
        if round == 1 {
            self.hot_loops.count_call(item.key, object.generation, call.observed.children.len());
        }
        let fault = match call::call_plugin(item, call, state.answer.take()).await {
            Ok(mut answered) => {
                // The answer may have inherited which children are in sync. They may have changed since they were compared.
                answered.answer.refresh(call.observed);
                item.notes.answered(&in_words(&answered.response));
                return ControlFlow::Continue(answered);
            }
            // The next reconcile of the key looks the plugin up again and finds the new version.
            Err(CallError::Superseded) => return ControlFlow::Break(RoundEnd::finished(Action::Requeue)),
            Err(CallError::PermissionsUnknown(why)) => result::fault(ACCOUNT_UNAVAILABLE, &why),
            Err(CallError::NotRead(why)) => {
                return ControlFlow::Break(self.fail(state, object, Failure::of(&why.error, "read", &why.what)).await);
            }
            Err(CallError::NotRemembered(no_room)) => result::fault("LookupMemoryUsed", &no_room.to_string()),
            Err(CallError::Failed(outcome)) => result::call_failed(&outcome),
        };
        ControlFlow::Break(self.conclude(state, object, fault).await)
    }

    /// Stage 4. The first answer with an order needs the finalizer for it.
    async fn check(
        &self,
        state: &mut ObjectState,
        observed: &Observed,
        response: &Response,
        answer: &LastAnswer,
    ) -> Stage<Desired> {
        let (item, object) = (&self.item, &observed.object);
        let desired = match check_answer(item.plugin.manifest(), observed, response, answer) {
            Ok(desired) => desired,
            Err(refusal) => {
                let fault = result::fault(refusal.reason(), &refusal.to_string());
                return ControlFlow::Break(self.conclude(state, object, fault).await);
            }
        };
        if has_order(response) && !object.deleting && !finalizer::has_order(object) {
            // Before the first of them is created: without it, they would all go at once.
            return ControlFlow::Break(match finalizer::add_order(&item.host_client(), item.plugin, object).await {
                Ok(()) => RoundEnd::AnotherRound,
                Err(failure) => self.fail(state, object, failure).await,
            });
        }
        ControlFlow::Continue(desired)
    }

    /// Stage 5. The guard against mass deletion decides whether the deletes of the plan may be carried out.
    fn plan(
        &self,
        state: &mut ObjectState,
        call: &PluginCall<'_>,
        answer: &LastAnswer,
        mut desired: Desired,
    ) -> PlannedAnswer {
        let observed = call.observed;
        let children = desired.children.take_checked();
        let keys = children.as_deref().map(|children| self.shared_keys.share(metadata_keys(children)));
        state.left =
            children.as_deref().map_or_else(|| std::mem::take(&mut state.left), |all| plan::left(all, observed));
        // The entries are keyed by UID, so each child that is created again would leave one behind.
        state.normalised.keep_only(&observed.children);
        let history = PlanHistory { normalised: &state.normalised, recreations: &state.recreations };
        let mut plan = children.map(|children| plan::plan(children, observed, history)).unwrap_or_default();
        let context = DeletionContext {
            version: self.item.plugin.short_digest(),
            is_decorator: self.item.plugin.manifest().decorates.is_some(),
            // Deletes during finalization are always on purpose.
            on_purpose: desired.removes_many || call.verb == Verb::Finalize,
            is_pending: state.pending_generation == Some(observed.object.generation),
            new_version: &self.item.plugin.new_version,
        };
        let decision = deletion_guard::decide(&plan, observed, context);
        // Only the deletes wait. The next answer can correct a wrong write, but not a wrong delete.
        match decision {
            DeletionDecision::Allow => plan.hold_deletes(),
            DeletionDecision::Postpone | DeletionDecision::HoldBack(_) => plan.deletes.clear(),
        }
        // No new deletes: somebody has begun with each of them.
        plan.deletes.extend(plan::forced(observed, answer.forced_deletions()));
        PlannedAnswer { desired, keys, plan, decision }
    }

    /// Starts another round if something changed, otherwise reports (stage 7).
    async fn after_apply(
        &self,
        state: &mut ObjectState,
        call: &PluginCall<'_>,
        progress: Progress,
        work: AppliedAnswer,
    ) -> RoundEnd {
        let AppliedAnswer { desired, decision, awaited, waiting, applied } = work;
        let round = progress.round;
        // Children in order take a round each, and need not converge sooner than there are children.
        let is_last = round >= MAX_ROUNDS && waiting.is_empty() && !applied.has_created_in_order();
        if let Some(children) = progress.wave(call.observed, &applied) {
            return RoundEnd::AnotherWave { children };
        }
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
                    pending.unready = call.observed.unready(&state.left);
                    state.answer.iter_mut().for_each(|answer| answer.depends_on_readiness(&pending.unready));
                }
                result::carried_out(desired, pending)
            }
        };
        self.conclude_answer(state, call.observed, result).await
    }
}

/// An answer in words, for people.
fn in_words(response: &Response) -> String {
    let verdict = match &response.verdict {
        Verdict::Done => "done".to_owned(),
        Verdict::Wait(waiting) => format!("wait: {}: {}", waiting.reason, waiting.message),
        Verdict::Retry(why) => format!("retry: {why}"),
        Verdict::Invalid(why) => format!("invalid: {why}"),
    };
    match &response.children {
        Some(children) => format!("{} children; {verdict}", children.len()),
        None => format!("the children as they are; {verdict}"),
    }
}

/// Checks an answer. The children are not checked while garbage collection deletes them, nor if they are known to be in sync.
fn check_answer(
    manifest: &Manifest,
    observed: &Observed,
    response: &Response,
    answer: &LastAnswer,
) -> Result<Desired, Refusal> {
    let children = match response.children.as_deref() {
        // Garbage collection is deleting or releasing the children, and a write would undo that.
        Some(_) if finalizer::is_being_collected(&observed.object) => Children::Leave,
        // What a decorator wants on the object itself is among the children.
        Some(_) if answer.has_children_in_sync() && manifest.decorates.is_none() => Children::InSync,
        Some(children) => Children::Check(children),
        None => Children::Leave,
    };
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

fn is_namespace_ending(failures: &[Failure]) -> bool {
    failures.iter().any(|failure| failure.reason == FailureReason::NamespaceTerminating)
}

/// Whether any child of an answer waits for another.
fn has_order(response: &Response) -> bool {
    response.children.iter().flatten().any(|child| !child.after.is_empty())
}

/// The keys of all labels and annotations that the answer sets on its children.
fn metadata_keys(children: &[DesiredChild]) -> MetadataKeys {
    let maps = children.iter().flat_map(|child| ["labels", "annotations"].map(|map| &child.body["metadata"][map]));
    MetadataKeys::of(maps.filter_map(Value::as_object).flat_map(|map| map.keys().map(String::as_str)))
}
