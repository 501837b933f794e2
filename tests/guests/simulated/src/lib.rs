//! Test guest: the plugin of the simulated cluster (`tests/simulation`), which answers what the spec of its object says. The simulation
//! links it natively, and in a slower mode runs it as WebAssembly. Its configuration says which version of it the host runs.

pub mod decide;
pub mod scope;
pub mod spec;
pub mod version;

use decide::Inputs;
use pilothouse_sdk::{Error, Kind, Request, Response, lookup};
use serde::Deserialize;
use serde_json::Value;
use version::Version;

pilothouse_sdk::plugin! {
    name: "simulated",
    reconciles: "simulation.pilothouse.dev/v1" "Simulated",
    children: [
        "v1" "ConfigMap", "v1" "Secret", "v1" "Service", "apps/v1" "Deployment", "batch/v1" "Job",
        "simulation.pilothouse.dev/v1" "Widget", "simulation.pilothouse.dev/v1" "ClusterWidget",
    ],
    lookups: ["v1" "ConfigMap"],
    reconcile: reconcile,
    finalize: finalize,
}

/// A Deployment, with all its fields.
#[derive(Deserialize)]
#[serde(transparent)]
struct Deployment(Value);

impl Kind for Deployment {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "Deployment";
}

/// A Job, with all its fields.
#[derive(Deserialize)]
#[serde(transparent)]
struct Job(Value);

impl Kind for Job {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "Job";
}

/// A ConfigMap, with all its fields.
#[derive(Deserialize)]
#[serde(transparent)]
struct ConfigMap(Value);

impl Kind for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
}

/// Returns what the object's spec says.
fn reconcile(request: &Request<Value>) -> Result<Response, Error> {
    let followed = match decide::followed(&request.object) {
        Some((namespace, name)) => lookup::get::<ConfigMap>(namespace, &name)?,
        None => None,
    };
    let (deployments, jobs) = (request.children::<Deployment>()?, request.children::<Job>()?);
    let deployments = deployments.iter().map(|deployment| &deployment.0);
    let inputs = Inputs {
        version: request.config::<Version>()?,
        object: &request.object,
        children: &deployments.chain(jobs.iter().map(|job| &job.0)).collect::<Vec<_>>(),
        followed: followed.as_ref().map(|followed| decide::value_of(&followed.0)),
    };
    Ok(decide::decide(inputs).into())
}

/// The object may go, and its children as well.
fn finalize(_: &Request<Value>) -> Response {
    decide::finalize().into()
}
