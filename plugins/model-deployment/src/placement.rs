//! Which kind of workload serves a model: a StatefulSet of Pods, or a LeaderWorkerSet of groups of Pods on several nodes. Only one of them
//! exists: where the other one is still there, it goes first, for both need the same GPUs.

use crate::api::ModelDeployment;
use crate::live::{Live, LiveGroups, LiveStatefulSet};
use llm_serving::server::Server;
use llm_serving::surroundings::MissingKind;
use pilothouse_pods::name::{MAX_STATEFUL_SET, dns_label};
use pilothouse_sdk::{Error, Kind, Request};
use serde_json::{Value, json};

/// The longest name of a LeaderWorkerSet: it makes a StatefulSet for each group, whose name has a dash and the group's number more.
const MAX_GROUPS: usize = MAX_STATEFUL_SET - 6;

/// The workload that serves, as the cluster has it.
#[derive(Debug)]
pub struct Placement {
    /// What is there of it.
    pub live: Live,
    /// What else there is, which has to go before it can come.
    pub other: Option<Live>,
    /// Its kind, if the cluster does not have it.
    pub missing: Option<MissingKind>,
}

/// The name of a server's LeaderWorkerSet. It is not that of the object: under its own name it makes a StatefulSet and a Service.
pub fn groups_name(server: &Server<'_>) -> String {
    dns_label(&format!("{}-mn", server.workload()), MAX_GROUPS)
}

/// What an autoscaler scales.
pub fn scale_target(server: &Server<'_>) -> Value {
    match server.is_multi_node() {
        true => json!({ "apiVersion": LiveGroups::API_VERSION, "kind": LiveGroups::KIND, "name": groups_name(server) }),
        false => json!({
            "apiVersion": LiveStatefulSet::API_VERSION, "kind": LiveStatefulSet::KIND, "name": server.workload(),
        }),
    }
}

/// The workload that serves.
///
/// # Errors
/// A lookup fails, or an object cannot be read.
pub fn look(request: &Request<ModelDeployment>, server: &Server<'_>) -> Result<Placement, Error> {
    let stateful_set = request.child::<LiveStatefulSet>(server.workload())?.map(Live::from);
    let groups = request.child::<LiveGroups>(&groups_name(server))?.map(Live::from);
    let (wanted, other) = if server.is_multi_node() { (groups, stateful_set) } else { (stateful_set, groups) };
    Ok(Placement { live: wanted.unwrap_or_default(), other, missing: missing(server)? })
}

/// The kind LeaderWorkerSet, if a server needs it and the cluster does not have it.
fn missing(server: &Server<'_>) -> Result<Option<MissingKind>, Error> {
    if !server.is_multi_node() {
        return Ok(None);
    }
    MissingKind::of::<LiveGroups>("tensorParallelSize", &groups_name(server))
}
