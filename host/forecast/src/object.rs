//! What would become of one object: asks the plugin's version about it, and goes on from its answers where that is asked for. Carries
//! nothing out.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use pilothouse_controller::{
    lookups::CachedLookups,
    object::{Object, ObjectRef},
    pipeline::{
        apply::{Failure, decoration_of},
        call::read::{NotLearned, learn},
        check::{Decoration, Desired},
        conditions::{READY, within_limit},
        lifecycle::{
            expiry::{self, Lifetime},
            finalizer::{self, FinalizerStep},
            managed::not_ours,
        },
        observe::{ObserveError, Observed, observe},
        plan::{Delete, Write, WriteCause, deletion_guard::DeletionDecision, diff::Difference, withdrawal},
    },
    queue::Key,
    readiness::is_true,
};
use pilothouse_engine::{
    Lookups,
    contract::{ConditionStatus, Verdict},
};
use pilothouse_offline::{Answer, NoAnswer, Round, Situation, round};
use serde_json::Value;

use crate::{
    Cluster, Forecast, ForecastObject, Outcome,
    carried_out::carried_out,
    outcome::{Action, ChildChange, FirstWrites, Trouble},
};

/// The most steps of one object. Children in an order take one each.
const MAX_STEPS: usize = 200;

/// How far to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// To what the host would do first.
    First,
    /// To the end: each answer is taken as if it had been carried out, and the children as if they had got ready, until the object is at
    /// rest.
    Eventual,
}

/// Where to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most objects. Of more, some are taken that lie evenly among all.
    pub objects: usize,
    /// After how long no other object is asked about.
    pub time: Duration,
}

impl Bounds {
    /// All objects, however long it takes.
    pub const NONE: Self = Self { objects: usize::MAX, time: Duration::MAX };

    /// The objects to ask about.
    fn of(self, names: Vec<ObjectRef>) -> Vec<ObjectRef> {
        let step = names.len().div_ceil(self.objects.max(1)).max(1);
        names.into_iter().step_by(step).collect()
    }
}

/// A round, and what follows from its decision about deletes.
pub(crate) enum Asked {
    Round(Box<Round>),
    /// It is too early to decide about its deletes: other objects have to be looked at before.
    TooEarly,
    Failed(Trouble),
}

/// What came of asking, and the time that the version was told.
pub(crate) struct AskedWith {
    pub(crate) asked: Asked,
    pub(crate) now: Timestamp,
}

impl Cluster {
    /// Forecasts what would become of every object within the bounds, and says after each how many are done.
    pub async fn forecast(&self, depth: Depth, bounds: Bounds, progress: impl Fn(usize)) -> Forecast {
        let (begun, all) = (Instant::now(), self.names());
        let names = bounds.of(all.clone());
        // Nobody waits for those that are not asked about, nor for those that a decorator does not work on.
        let others = self.plugin.objects.store().names();
        all.iter()
            .chain(&others)
            .filter(|name| names.binary_search(name).is_err())
            .for_each(|name| self.plugin.new_version.mark_seen(name));
        let (mut objects, mut early) = (Vec::with_capacity(names.len()), Vec::new());
        for name in names {
            if begun.elapsed() > bounds.time {
                self.plugin.new_version.mark_seen(&name);
                continue;
            }
            match self.outcome(&name, depth).await {
                Some(object) => objects.push(object),
                None => early.push(name.clone()),
            }
            // As in the host: which deletes a new version is held back from depends on all objects that it has seen.
            self.plugin.new_version.mark_seen(&name);
            progress(objects.len() + early.len());
            // In a running host there is other work.
            tokio::task::yield_now().await;
        }
        for name in early {
            objects.extend(self.outcome(&name, depth).await);
        }
        objects.sort_by(|one, other| one.name.cmp(&other.name));
        let mut forecast = Forecast { kind: self.plugin.objects.kind().clone(), objects };
        self.find_taken_names(&mut forecast, begun, bounds).await;
        forecast
    }

    /// What would become of an object; none if it is too early to say. An object that is gone meanwhile counts as being deleted.
    async fn outcome(&self, name: &ObjectRef, depth: Depth) -> Option<ForecastObject> {
        let object = |outcome, first| Some(ForecastObject { name: name.clone(), outcome, first });
        let trouble = |trouble| Outcome::Answered {
            steps: Vec::new(),
            decoration: Vec::new(),
            adds_finalizer: false,
            trouble: Some(trouble),
        };
        let observed = match observe(&self.plugin, name) {
            Ok(observed) => observed,
            Err(ObserveError::Gone) => return object(Outcome::Deleting, None),
            Err(ObserveError::NotSynced) => {
                return object(trouble(new_trouble("ChildrenUnknown", "its children are not known yet")), None);
            }
            Err(ObserveError::Unknown { kind, why }) => {
                let why = format!("the children of kind {} are not known: {why}", kind.kind);
                return object(trouble(new_trouble("ChildrenUnknown", &why)), None);
            }
        };
        if let Some(outcome) = self.untouched(&observed.object) {
            return object(outcome, None);
        }
        if !self.plugin.selects(&observed.object) {
            let (outcome, first) = self.withdrawn(&observed);
            return object(outcome, first);
        }
        self.answered(observed, depth).await.and_then(|(outcome, first)| object(outcome, first))
    }

    /// What becomes of an object for which the plugin is not called.
    fn untouched(&self, object: &Object) -> Option<Outcome> {
        let manifest = self.plugin.manifest();
        if !self.plugin.answers(object) {
            return Some(Outcome::Pinned);
        }
        if let Some(why) = not_ours(object, manifest, self.plugin.serves(&object.name.namespace)) {
            return Some(Outcome::LeftAlone(why));
        }
        let is_over = expiry::lifetime(object, manifest, self.clock.now()) == Lifetime::Over;
        (object.deleting || is_over).then_some(Outcome::Deleting)
    }

    /// What becomes of an object that its decorator does not work on, or no longer.
    fn withdrawn(&self, observed: &Observed) -> (Outcome, Option<FirstWrites>) {
        let (plan, wanted) = (withdrawal(observed), Decoration::default());
        // Nobody else's keys are wanted, so none can be in the way.
        let decoration = decoration_of(&self.plugin, &observed.object, &wanted).unwrap_or_default();
        let deleted: Vec<_> = plan.deletes.iter().map(|delete| deleted(delete, None)).collect();
        let steps = if deleted.is_empty() { Vec::new() } else { vec![deleted] };
        let outcome = Outcome::Answered { steps, decoration, adds_finalizer: false, trouble: None };
        (outcome, Some(FirstWrites { decoration: Some(wanted), plan }))
    }

    async fn answered(&self, mut observed: Observed, depth: Depth) -> Option<(Outcome, Option<FirstWrites>)> {
        let present = observed.object.clone();
        let mut adds_finalizer =
            finalizer::next_step(&present, self.plugin.manifest(), &self.plugin.other_finalizers) == FinalizerStep::Add;
        let (mut steps, mut first, mut decoration, mut unready) = (Vec::new(), None, Vec::new(), None);
        let trouble = loop {
            let round = match self.ask(&observed).await {
                Asked::Round(round) => round,
                Asked::TooEarly => return None,
                Asked::Failed(trouble) => break Some(trouble),
            };
            let answer = match &round.answer {
                Ok(answer) => answer,
                Err(why) => break Some(of_no_answer(why)),
            };
            // Labels and annotations come first, and where they cannot be, no child is written either.
            let decorated =
                answer.desired.decoration.as_ref().map(|it| decoration_of(&self.plugin, &observed.object, it));
            match decorated.transpose() {
                Ok(differences) => then_differs(&mut decoration, differences.unwrap_or_default()),
                Err(failure) => break Some(new_trouble(failure.reason.as_str(), &failure.message)),
            }
            let changes = changes(answer);
            if first.is_none() {
                adds_finalizer |= adds_order(answer, &present);
                first = Some(first_writes(answer));
            }
            let is_held_back = answer.held_back().is_some();
            let trouble = of_verdict(&answer.desired.verdict);
            unready = of_waiting(&answer.desired);
            let is_changed = !changes.is_empty();
            if is_changed {
                steps.push(changes);
            }
            if depth == Depth::First {
                break trouble;
            }
            if steps.len() >= MAX_STEPS {
                let why =
                    format!("the object is not at rest after {MAX_STEPS} steps: each answer asks for another change");
                break Some(new_trouble("NotConverging", &why));
            }
            match carried_out(&self.plugin, &round, answer, self.clock.now()) {
                // What is held back stays planned for ever.
                Some(next) if !(is_held_back && is_same_but_status(&next, &observed)) => observed = next,
                _ => break trouble,
            }
        };
        // With other children, an object may well have to wait for them at first.
        let is_taken_out = steps.is_empty() && is_true(&Value::Object(present.status()), READY);
        let trouble = trouble.or_else(|| unready.filter(|_| is_taken_out));
        let trouble = trouble.map(|trouble| Trouble { is_present: says(&present, &trouble), ..trouble });
        Some((Outcome::Answered { steps, decoration, adds_finalizer, trouble }, first))
    }

    async fn ask(&self, observed: &Observed) -> Asked {
        self.ask_with(observed, |lookups| lookups).await.asked
    }

    /// Asks the version about an object, with lookups that may be more than those of the caches. What its account may look up is asked when
    /// a call needs it, as in the host.
    pub(crate) async fn ask_with(
        &self,
        observed: &Observed,
        with: impl Fn(Arc<CachedLookups>) -> Arc<dyn Lookups>,
    ) -> AskedWith {
        let now = self.clock.now();
        AskedWith { asked: self.ask_at(observed, with, now).await, now }
    }

    async fn ask_at(
        &self,
        observed: &Observed,
        with: impl Fn(Arc<CachedLookups>) -> Arc<dyn Lookups>,
        now: Timestamp,
    ) -> Asked {
        let name = &observed.object.name;
        if self.plugin.account.as_ref().is_some_and(|account| account.is_missing_for(&name.namespace)) {
            let why = "the object has no namespace, so there is no service account in it";
            return Asked::Failed(new_trouble("AccountUnavailable", why));
        }
        let key = Key { plugin: self.plugin.name.clone(), object: name.clone() };
        // As often as in the host, which ends as it does there.
        loop {
            let lookups = Arc::new(self.lookups(name));
            let situation = Situation {
                observed: observed.clone(),
                config: &self.plugin.config,
                lookups: with(lookups.clone()),
                now,
                kinds: &observed.kinds,
                new_version: &self.plugin.new_version,
            };
            let round = round(&*self.plugin.reconciler, situation).await;
            match learn(&lookups, &self.identities, &self.identities.client(None), &key).await {
                Ok(true) => {}
                Ok(false) => {
                    let is_too_early =
                        matches!(&round.answer, Ok(answer) if answer.deletion == DeletionDecision::Postpone);
                    return if is_too_early { Asked::TooEarly } else { Asked::Round(Box::new(round)) };
                }
                Err(NotLearned::Asked(error)) => {
                    let why = format!("{error}; you need the right to impersonate it");
                    return Asked::Failed(new_trouble("AccountUnavailable", &why));
                }
                Err(NotLearned::Read(error)) => {
                    let failure = Failure::of(&error.error, "read", &error.what);
                    return Asked::Failed(new_trouble(failure.reason.as_str(), &failure.message));
                }
            }
        }
    }
}

/// What the host would do with the children.
fn changes(answer: &Answer) -> Vec<ChildChange> {
    let written = answer.plan.writes.iter().map(|write| ChildChange {
        kind: write.child.kind.clone(),
        name: write.child.name.clone(),
        action: action(write),
        digest: Some(write.child.digest.clone()),
        refused: None,
    });
    let deleted = answer.plan.deletes.iter().map(|delete| deleted(delete, answer.held_back()));
    written.chain(deleted).collect()
}

fn deleted(delete: &Delete, held_back: Option<&str>) -> ChildChange {
    ChildChange {
        kind: delete.kind.clone(),
        name: delete.live.name.clone(),
        action: match held_back {
            Some(why) => Action::HoldBack(format!("the plugin {why}")),
            None => Action::Delete(delete.cause.to_string()),
        },
        digest: None,
        refused: None,
    }
}

fn action(write: &Write) -> Action {
    match &write.cause {
        WriteCause::Missing => Action::Create(Box::new(write.child.body.clone())),
        WriteCause::Changed(state) | WriteCause::Drifted(state) => Action::Update(state.differences.clone()),
    }
}

/// The writes as the host would carry them out.
fn first_writes(answer: &Answer) -> FirstWrites {
    let mut plan = answer.plan.clone();
    if answer.held_back().is_some() {
        plan.deletes.clear();
    }
    FirstWrites { decoration: answer.desired.decoration.clone(), plan }
}

/// Adds what differs in a later step: what there is today and what there is in the end count.
fn then_differs(all: &mut Vec<Difference>, later: Vec<Difference>) {
    for difference in later {
        match all.iter_mut().find(|known| known.path == difference.path) {
            Some(known) => known.desired = difference.desired,
            None => all.push(difference),
        }
    }
    all.retain(|difference| difference.live != difference.desired);
}

/// Whether the children go in an order, for which the host adds a finalizer of its own.
fn adds_order(answer: &Answer, object: &Object) -> bool {
    let has_order = answer.children.iter().flatten().any(|child| !child.after.is_empty());
    has_order && !finalizer::has_order(object)
}

fn of_no_answer(why: &NoAnswer) -> Trouble {
    new_trouble(&why.reason(), &why.to_string())
}

/// What a plugin itself says is wrong.
fn of_verdict(verdict: &Verdict) -> Option<Trouble> {
    match verdict {
        Verdict::Invalid(why) => Some(new_trouble("Invalid", why)),
        Verdict::Retry(why) => Some(new_trouble("Retry", why)),
        Verdict::Done | Verdict::Wait(_) => None,
    }
}

/// Why an object would not be ready although nothing about its children changes.
fn of_waiting(desired: &Desired) -> Option<Trouble> {
    let unready = |reason: &str, why: &str| new_trouble(reason, &format!("the object would be ready no longer: {why}"));
    if let Verdict::Wait(waiting) = &desired.verdict {
        return Some(unready(&waiting.reason, &waiting.message));
    }
    let own = desired.conditions.iter().find(|condition| condition.condition_type == READY)?;
    (own.status != ConditionStatus::IsTrue).then(|| unready(&own.reason, &own.message))
}

pub(crate) fn new_trouble(reason: &str, message: &str) -> Trouble {
    Trouble { reason: reason.to_owned(), message: message.to_owned(), is_present: false }
}

/// Whether the status of an object says the same already.
pub(crate) fn says(object: &Object, trouble: &Trouble) -> bool {
    let status = object.status();
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == READY && condition["status"] != "True");
    ready.any(|condition| condition["message"] == within_limit(&trouble.message))
}

fn is_same_but_status(one: &Observed, other: &Observed) -> bool {
    let text =
        |observed: &Observed| observed.children.iter().map(|child| child.object.text.clone()).collect::<Vec<_>>();
    text(one) == text(other)
}
