//! One round of a reconcile over plain values: call, check, plan. Applies nothing.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use pilothouse_controller::{
    object::Object,
    pipeline::{
        check::{self, Children, Desired, DesiredChild, Owner, Refusal},
        lifecycle::finalizer::is_being_collected,
        observe::{LiveChild, Observed},
        plan::{
            Normalised, Plan, PlanHistory, Recreations,
            deletion_guard::{self, DeletionContext, DeletionDecision},
            plan,
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
    CallContext, Manifest, Outcome, Reconciler, Recorded, Usage, Verb,
    contract::{KindRef, Request, Response},
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
    /// Why the host would hold the deletes of the plan back.
    pub held_back: Option<String>,
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
                let unready = if desired.asks_for_readiness() { self.observed.unready() } else { Vec::new() };
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
    round(plugin, inputs, observed).await
}

/// As [`reconcile`], with the children in the opposite order. For a plugin that is a function of its children, that is the same.
///
/// # Errors
/// As [`reconcile`].
pub(crate) async fn reconcile_reversed(plugin: &dyn Reconciler, inputs: &Inputs) -> Result<Round, InvalidObject> {
    let mut observed = observed(plugin.manifest(), inputs)?;
    observed.children.sort_by(|one, other| key(other).cmp(&key(one)));
    round(plugin, inputs, observed).await
}

async fn round(plugin: &dyn Reconciler, inputs: &Inputs, observed: Observed) -> Result<Round, InvalidObject> {
    let manifest = plugin.manifest();
    let verb = if observed.object.deleting && manifest.finalizes { Verb::Finalize } else { Verb::Reconcile };
    let request = request(manifest, &observed, &inputs.config);
    let lookups = GivenLookups {
        own_namespace: observed.object.name.namespace.clone(),
        declared: manifest.lookups.clone(),
        objects: inputs.lookups.clone(),
    };
    let context = CallContext { lookups: Arc::new(lookups), now: inputs.now };
    let call = plugin.call(verb, request, context).await;
    let output_bytes = match &call.outcome {
        Outcome::Response(response) => size_of(response),
        _ => 0,
    };
    let answer = match call.outcome {
        Outcome::Response(response) => answer(plugin, verb, &observed, &response),
        failed => Err(NoAnswer::Failed(Box::new(failed))),
    };
    Ok(Round { verb, observed, answer, usage: call.usage, output_bytes, recorded: call.recorded })
}

fn request(manifest: &Manifest, observed: &Observed, config: &Value) -> Request {
    observed.request(manifest.series(), Vec::new(), &config.to_string())
}

fn answer(plugin: &dyn Reconciler, verb: Verb, observed: &Observed, response: &Response) -> Result<Answer, NoAnswer> {
    let owner = Owner {
        manifest: plugin.manifest(),
        kind: &observed.kind,
        object: &observed.object,
        schema: None,
        namespaces: None,
        kinds: &AllKinds,
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
        on_purpose: desired.removes_many || verb == Verb::Finalize,
        // Without a cluster nothing is known of an earlier failure. The status of the object decides.
        is_pending: false,
        new_version: &NewVersionWindow::begin([]),
    };
    let held_back = match deletion_guard::decide(&plan, observed, context) {
        DeletionDecision::HoldBack(why) => Some(why),
        DeletionDecision::Allow | DeletionDecision::Postpone => None,
    };
    if held_back.is_none() {
        plan.hold_deletes();
    }
    Ok(Answer { desired, children, plan, held_back })
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
