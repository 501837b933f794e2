//! Test guest: counts the Pods of its object's namespace that have a label, and those of them that run. It reads one field of each, and
//! has no children.

use pilothouse_sdk::{Error, Kind, Object, Request, Response, lookup};
use serde::Deserialize;
use serde_json::json;

pilothouse_sdk::plugin! {
    name: "census",
    reconciles: "test.pilothouse.dev/v1" "Census",
    children: [],
    lookups: ["v1" "Pod"],
    reconcile: reconcile,
}

/// What the object says.
#[derive(Debug, Deserialize)]
pub struct CensusSpec {
    /// The label selector of the Pods.
    pub selector: String,
}

/// The phase of a Pod.
#[derive(Debug, Deserialize)]
struct Pod {
    status: Option<PodStatus>,
}

#[derive(Debug, Deserialize)]
struct PodStatus {
    phase: Option<String>,
}

impl Kind for Pod {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const FIELDS: &'static [&'static str] = &["/status/phase"];
}

/// Counts them.
///
/// # Errors
/// The lookup is refused.
pub fn reconcile(request: &Request<Object<CensusSpec>>) -> Result<Response, Error> {
    let pods = lookup::select::<Pod>(None, &request.object.spec.selector)?;
    let runs = |pod: &&Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    let running = pods.iter().filter(runs).count();
    Ok(Response::done().status(json!({"pods": pods.len(), "running": running})))
}
