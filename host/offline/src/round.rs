//! One round of a reconcile over plain values: call, check, plan. Applies nothing.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use pilothouse_controller::{
    object::Object,
    pipeline::{
        check::{self, Children, Desired, DesiredChild, KnownKinds, Owner, Refusal},
        lifecycle::finalizer::is_being_collected,
        observe::{LiveChild, Observed},
        plan::{
            Normalised, Plan, PlanHistory, Recreations,
            deletion_guard::{self, DeletionContext, DeletionDecision},
            left, plan,
        },
        report::{
            result::{self, Pending, ReconcileResult},
            status::{Health, desired_status},
        },
    },
    plugin::NewVersionWindow,
    projection::Projections,
    readiness::ReadinessRules,
};
use pilothouse_engine::{
    CallContext, Lookups, Manifest, Outcome, Reconciler, Recorded, Usage, Verb,
    contract::{KindRef, Response},
};
use serde_json::{Map, Value};

use crate::{
    lookups::GivenLookups,
    scopes::AllKinds,
    served::{InvalidObject, as_served, kind_of},
};

/// What a plugin is called with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// The object.
    pub object: Value,
    /// Its live children.
    pub children: Vec<Value>,
    /// The objects that the plugin can look up.
    pub lookups: Vec<Value>,
    /// The plugin's configuration.
    pub config: Value,
    /// The time on the plugin's clock.
    pub now: Timestamp,
}

/// Why there is no answer that the host would carry out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoAnswer {
    /// The plugin failed.
    #[error("{}", failure_in_words(.0))]
    Failed(Box<Outcome>),
    /// The host refuses its answer.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl NoAnswer {
    /// The CamelCase word that the conditions of the object would have.
    pub fn reason(&self) -> String {
        match self {
            Self::Failed(outcome) => reason_of(&result::call_failed(outcome)).0,
            Self::Refused(refusal) => refusal.reason().to_owned(),
        }
    }
}

/// A checked answer, and what the host would do about it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer without its children.
    pub desired: Desired,
    /// Its children; none leaves the live ones as they are.
    pub children: Option<Vec<DesiredChild>>,
    /// What the host would do with the live children.
    pub plan: Plan,
    /// What the guard against mass deletion says of the deletes of the plan.
    pub deletion: DeletionDecision,
}

impl Answer {
    /// Why the host would hold the deletes of the plan back.
    pub fn held_back(&self) -> Option<&str> {
        match &self.deletion {
            DeletionDecision::HoldBack(why) => Some(why),
            DeletionDecision::Allow | DeletionDecision::Postpone => None,
        }
    }
}

/// What a round works with.
pub struct Situation<'a> {
    /// The object and its children.
    pub observed: Observed,
    /// The plugin's configuration, as JSON text.
    pub config: &'a str,
    /// What answers the plugin's lookups.
    pub lookups: Arc<dyn Lookups>,
    /// The time on the plugin's clock.
    pub now: Timestamp,
    /// Where the scopes and schemas of kinds come from.
    pub kinds: &'a (dyn KnownKinds + Sync),
    /// The first minute of the plugin's version.
    pub new_version: &'a NewVersionWindow,
}

/// One round.
#[derive(Debug)]
pub struct Round {
    /// Which function was called.
    pub verb: Verb,
    /// The object and its children, as the caches would hold them.
    pub observed: Observed,
    /// The answer.
    pub answer: Result<Answer, NoAnswer>,
    /// What the call needed.
    pub usage: Usage,
    /// The bytes of the answer.
    pub output_bytes: usize,
    /// What the plugin read besides its request.
    pub recorded: Recorded,
}

impl Round {
    /// The status that the host would write.
    pub fn reported_status(&self, now: Timestamp) -> Map<String, Value> {
        let object = &*self.observed.object;
        let result = match &self.answer {
            Ok(answer) => {
                let mut desired = answer.desired.clone();
                if answer.children.is_none() {
                    desired.children = check::DesiredChildren::Leave;
                }
                let left =
                    answer.children.as_deref().map(|children| left(children, &self.observed)).unwrap_or_default();
                let unready = if desired.asks_for_readiness() { self.observed.unready(&left) } else { Vec::new() };
                let Plan { awaited, waiting, .. } = answer.plan.clone();
                result::carried_out(desired, Pending { awaited, waiting, unready })
            }
            Err(NoAnswer::Failed(outcome)) => result::call_failed(outcome),
            Err(NoAnswer::Refused(refusal)) => result::fault(refusal.reason(), &refusal.to_string()),
        };
        desired_status(object, &object.status(), &result.report(None), now)
    }
}

/// Runs one round of a plugin: `finalize` for an object that is being deleted, if the plugin has it, and `reconcile` otherwise.
///
/// # Errors
/// [`InvalidObject`]: an input is nothing that a plugin could be called with. What the plugin does is never an error.
pub async fn reconcile(plugin: &dyn Reconciler, inputs: &Inputs) -> Result<Round, InvalidObject> {
    let manifest = plugin.manifest();
    let mut observed = observed(manifest, inputs)?;
    observed.children.sort_by(|one, other| key(one).cmp(&key(other)));
    Ok(given_round(plugin, inputs, observed).await)
}

/// As [`reconcile`], with the children in the opposite order. For a plugin that is a function of its children, that is the same.
///
/// # Errors
/// As [`reconcile`].
pub(crate) async fn reconcile_reversed(plugin: &dyn Reconciler, inputs: &Inputs) -> Result<Round, InvalidObject> {
    let mut observed = observed(plugin.manifest(), inputs)?;
    observed.children.sort_by(|one, other| key(other).cmp(&key(one)));
    Ok(given_round(plugin, inputs, observed).await)
}

async fn given_round(plugin: &dyn Reconciler, inputs: &Inputs, observed: Observed) -> Round {
    let lookups = GivenLookups {
        own_namespace: observed.object.name.namespace.clone(),
        declared: plugin.manifest().lookups.clone(),
        objects: inputs.lookups.clone(),
    };
    let situation = Situation {
        observed,
        config: &inputs.config.to_string(),
        lookups: Arc::new(lookups),
        now: inputs.now,
        kinds: &AllKinds,
        new_version: &NewVersionWindow::begin([]),
    };
    round(plugin, situation).await
}

/// Runs one round of a plugin over what a cache holds: `finalize` for an object that is being deleted, if the plugin has it, and
/// `reconcile` otherwise.
pub async fn round(plugin: &dyn Reconciler, situation: Situation<'_>) -> Round {
    let manifest = plugin.manifest();
    let observed = &situation.observed;
    let verb = if observed.object.deleting && manifest.finalizes { Verb::Finalize } else { Verb::Reconcile };
    let request = observed.request(manifest.series(), Vec::new(), situation.config);
    let context = CallContext { lookups: situation.lookups.clone(), now: situation.now };
    let call = plugin.call(verb, request, context).await;
    let output_bytes = match &call.outcome {
        Outcome::Response(response) => size_of(response),
        _ => 0,
    };
    let answer = match call.outcome {
        Outcome::Response(response) => answer(plugin, verb, &situation, &response),
        failed => Err(NoAnswer::Failed(Box::new(failed))),
    };
    let Situation { observed, .. } = situation;
    Round { verb, observed, answer, usage: call.usage, output_bytes, recorded: call.recorded }
}

fn answer(
    plugin: &dyn Reconciler,
    verb: Verb,
    situation: &Situation<'_>,
    response: &Response,
) -> Result<Answer, NoAnswer> {
    let observed = &situation.observed;
    let owner = Owner {
        manifest: plugin.manifest(),
        kind: &observed.kind,
        object: &observed.object,
        schema: observed.schema.as_ref(),
        namespaces: observed.namespaces.as_ref(),
        kinds: situation.kinds,
    };
    let children = match response.children.as_deref() {
        Some(children) if !is_being_collected(&observed.object) => Children::Check(children),
        _ => Children::Leave,
    };
    let mut desired = check::check(&owner, response, children)?;
    let children = desired.children.take_checked();
    let history = PlanHistory { normalised: &Normalised::default(), recreations: &Recreations::default() };
    let mut plan = children.clone().map(|children| plan(children, observed, history)).unwrap_or_default();
    let digest = plugin.digest();
    let context = DeletionContext {
        version: &digest[..digest.floor_char_boundary(12)],
        is_decorator: plugin.manifest().decorates.is_some(),
        on_purpose: desired.removes_many || verb == Verb::Finalize,
        // Only a running host knows of an earlier failure. The status of the object decides.
        is_pending: false,
        new_version: situation.new_version,
    };
    let deletion = deletion_guard::decide(&plan, observed, context);
    if deletion == DeletionDecision::Allow {
        plan.hold_deletes();
    }
    Ok(Answer { desired, children, plan, deletion })
}

/// The object and its children as the caches would hold them.
fn observed(manifest: &Manifest, inputs: &Inputs) -> Result<Observed, InvalidObject> {
    let kind = manifest.reconciles.clone();
    let found = kind_of(&inputs.object);
    if found != kind {
        return Err(InvalidObject::OtherKind { found, reconciled: kind });
    }
    manifest.check_config(Some(&inputs.config.to_string()))?;
    let (object, projections) = (as_served(inputs.object.clone())?, Projections::declared(manifest));
    let mut children = Vec::new();
    for child in &inputs.children {
        let (kind, object): (_, Arc<Object>) = (kind_of(child), Arc::new(as_served(child.clone())?));
        let projection = projections.of_child(&kind, &object);
        children.push(LiveChild { kind, object, projection });
    }
    Ok(Observed {
        kind,
        projection: projections.of_object(&object),
        object: Arc::new(object),
        children,
        former: Vec::new(),
        kinds: BTreeMap::new(),
        schema: None,
        namespaces: None,
        readiness: ReadinessRules::declared(manifest),
    })
}

/// The order of the contract: kind, namespace and name.
fn key(child: &LiveChild) -> (&KindRef, &pilothouse_controller::object::ObjectRef) {
    (&child.kind, &child.object.name)
}

fn size_of(response: &Response) -> usize {
    let children = response.children.iter().flatten().map(|child| child.object.len()).sum::<usize>();
    let conditions = response.conditions.iter().map(|one| one.reason.len() + one.message.len()).sum::<usize>();
    let events = response.events.iter().map(|event| event.reason.len() + event.message.len()).sum::<usize>();
    children + conditions + events + response.status.as_ref().map_or(0, String::len)
}

fn failure_in_words(outcome: &Outcome) -> String {
    reason_of(&result::call_failed(outcome)).1
}

fn reason_of(result: &ReconcileResult) -> (String, String) {
    match &result.health {
        Health::Stalled(why) | Health::Progressing(why) | Health::ChildrenNotReady(why) => {
            (why.reason.clone(), why.message.clone())
        }
        Health::Applied | Health::ChildrenUntouched => (String::new(), String::new()),
    }
}
