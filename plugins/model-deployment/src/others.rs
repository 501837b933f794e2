//! Autoscalers and workloads that are not of this object and meddle with it: those that an earlier object of its name has left, and
//! autoscalers of users where the spec alone decides. They are only told: whose they are, nobody knows.

use crate::api::ModelDeployment;
use crate::autoscaler::Scaling;
use crate::live::LiveGroups;
use crate::observed_scaled_object;
use crate::owned::{self, Owned, StatefulSet, get, select};
use crate::placement::WorkloadKind;
use llm_serving::conditions::AWAITING_REMOVAL;
use llm_serving::labels::COMPONENT;
use llm_serving::server::Server;
use pilothouse_pods::owner::OwnedMetadata;
use pilothouse_pods::transition::Announced;
use pilothouse_sdk::{Condition, ConditionStatus, Error, Kind, Request};
use serde::Deserialize;

/// Whether no other autoscaler scales the workload.
const ONLY_ONE_AUTOSCALER: &str = "OnlyOneAutoscaler";

/// Whether there is no other workload.
const ONLY_ONE_WORKLOAD: &str = "OnlyOneWorkload";

/// The Events about them.
pub const ANNOUNCED: [Announced<'_>; 2] = [
    Announced { condition_type: ONLY_ONE_AUTOSCALER, on_true: None, on_false: None },
    Announced { condition_type: ONLY_ONE_WORKLOAD, on_true: None, on_false: None },
];

/// A HorizontalPodAutoscaler: what it scales, and whose it is.
#[derive(Deserialize)]
#[serde(transparent)]
struct Hpa(Scaler);

impl Kind for Hpa {
    const API_VERSION: &'static str = "autoscaling/v2";
    const KIND: &'static str = "HorizontalPodAutoscaler";
    const FIELDS: &'static [&'static str] = SCALER_FIELDS;
}

/// A ScaledObject: what it scales, and whose it is.
#[derive(Deserialize)]
#[serde(transparent)]
struct ScaledObject(Scaler);

impl Kind for ScaledObject {
    const API_VERSION: &'static str = observed_scaled_object::ScaledObject::API_VERSION;
    const KIND: &'static str = observed_scaled_object::ScaledObject::KIND;
    const FIELDS: &'static [&'static str] = SCALER_FIELDS;
}

const SCALER_FIELDS: &[&str] =
    &["/metadata/name", "/metadata/uid", "/metadata/ownerReferences", "/spec/scaleTargetRef"];

#[derive(Deserialize)]
struct Scaler {
    metadata: OwnedMetadata,
    #[serde(default)]
    spec: ScalerSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScalerSpec {
    scale_target_ref: Target,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Target {
    kind: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct LeaderWorkerSet(Owned);

impl Kind for LeaderWorkerSet {
    const API_VERSION: &'static str = LiveGroups::API_VERSION;
    const KIND: &'static str = LiveGroups::KIND;
    const FIELDS: &'static [&'static str] = owned::FIELDS;
}

/// The conditions about others, and about an autoscaler of the object for which its present one waits; none if there are none.
///
/// # Errors
/// A lookup fails.
pub fn conditions(
    request: &Request<ModelDeployment>,
    server: &Server<'_>,
    scaling: &Scaling,
    waits: Option<String>,
) -> Result<Vec<Condition>, Error> {
    let uid = request.object.metadata.uid.as_str();
    let autoscaler = match (waits, scaling) {
        // It goes within a moment, as a rule, so that no Event tells it.
        (Some(waits), _) => {
            Some(Condition::new(ONLY_ONE_AUTOSCALER, ConditionStatus::Unknown, AWAITING_REMOVAL, waits))
        }
        // It is what the user asks for.
        (None, Scaling::External { .. }) => None,
        (None, _) => other_autoscaler(uid, server, scaling)?,
    };
    Ok(autoscaler.into_iter().chain(other_workload(uid, server)?).collect())
}

fn other_autoscaler(uid: &str, server: &Server<'_>, scaling: &Scaling) -> Result<Option<Condition>, Error> {
    let workload = WorkloadKind::of(server);
    let (_, kind) = workload.names();
    let name = workload.name(server.workload());
    let scalers = scalers(uid, server, scaling)?;
    let targets =
        |scaler: &Scaler| scaler.spec.scale_target_ref.kind == kind && scaler.spec.scale_target_ref.name == name;
    let Some((kind_of_scaler, scaler)) = scalers.iter().find(|(_, scaler)| targets(scaler)) else { return Ok(None) };
    let message = format!(
        "the {kind_of_scaler} '{}', which is not of this object, scales the {kind} '{name}' as well; remove it, or set \
         spec.autoscaling.autoscaler to external",
        scaler.metadata.name
    );
    Ok(Some(Condition::when(ONLY_ONE_AUTOSCALER, false, "OtherAutoscaler", message)))
}

/// The autoscalers that may scale the workload and are not of this object, each with its kind. Those under the names of ours are looked at
/// by name; those of users only where the spec alone decides, for each of them that changes asks all objects that look.
fn scalers(uid: &str, server: &Server<'_>, scaling: &Scaling) -> Result<Vec<(&'static str, Scaler)>, Error> {
    let name = server.workload();
    let mut all: Vec<_> =
        get::<ScaledObject>(name)?.into_iter().map(|ScaledObject(it)| (ScaledObject::KIND, it)).collect();
    all.extend(get::<Hpa>(name)?.into_iter().map(|Hpa(it)| (Hpa::KIND, it)));
    if matches!(scaling, Scaling::Fixed(_)) {
        let of_users = format!("{COMPONENT}!={}", server.spec.identity.component);
        all.extend(select::<ScaledObject>(&of_users)?.into_iter().map(|ScaledObject(it)| (ScaledObject::KIND, it)));
        all.extend(select::<Hpa>(&of_users)?.into_iter().map(|Hpa(it)| (Hpa::KIND, it)));
    }
    // What KEDA makes of a ScaledObject goes with it.
    let is_of_keda = |it: &Scaler| it.metadata.controller().is_some_and(|owner| owner.kind == ScaledObject::KIND);
    all.retain(|(_, scaler)| !scaler.metadata.is_controlled_by(uid) && !is_of_keda(scaler));
    Ok(all)
}

/// The workload of the other kind, which an earlier object has left under the name that ours would have.
fn other_workload(uid: &str, server: &Server<'_>) -> Result<Option<Condition>, Error> {
    let other = WorkloadKind::of(server).other();
    let name = other.name(server.workload());
    let found = match other {
        WorkloadKind::StatefulSet => get::<StatefulSet>(&name)?.map(|StatefulSet(it)| it),
        WorkloadKind::LeaderWorkerSet => get::<LeaderWorkerSet>(&name)?.map(|LeaderWorkerSet(it)| it),
    };
    let is_other = found.is_some_and(|it| !it.metadata.is_controlled_by(uid));
    let message = format!(
        "the {} '{name}' is not of this object, perhaps of an earlier one; its Pods may hold the GPUs, and the Service leads to those \
         that have the labels; remove it",
        other.names().1
    );
    Ok(is_other.then(|| Condition::when(ONLY_ONE_WORKLOAD, false, "OtherWorkload", message)))
}
