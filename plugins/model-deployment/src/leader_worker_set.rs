//! The LeaderWorkerSet of servers that span several nodes: a group of Pods for each server, one Pod for each node. Clients talk to the
//! leader of a group; the other Pods have no probes and no port, and wait until they find the leader.

use crate::placement::groups_name;
use llm_serving::container::NAME;
use llm_serving::labels;
use llm_serving::server::Server;
use pilothouse_pods::security::{self, Capabilities};
use serde_json::{Value, json};

/// The init container that waits for the leader's name.
const WAIT: &str = "wait-for-leader";

/// What it does. The name is known once the leader has an address, and an engine that does not find it ends.
const WAIT_COMMAND: &str = "until getent hosts \"$0\"; do sleep 1; done";

/// The leader's name, as the kubelet fills it in.
const LEADER_ADDRESS: &str = "$(LWS_LEADER_ADDRESS)";

/// What clients and probes talk to, and a worker does not have.
const OF_LEADERS: [&str; 4] = ["ports", "startupProbe", "readinessProbe", "livenessProbe"];

/// The LeaderWorkerSet with so many groups of Pods of a template.
pub fn leader_worker_set(server: &Server<'_>, replicas: i32, template: Value) -> Value {
    let rollout = &server.rollout;
    json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": { "name": groups_name(server.workload()), "labels": labels::of(server) },
        "spec": {
            "replicas": replicas,
            // A leader is ready when its workers are there, so they do not wait for that.
            "startupPolicy": "LeaderCreated",
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": { "maxSurge": rollout.max_surge, "maxUnavailable": rollout.max_unavailable },
            },
            "networkConfig": { "subdomainPolicy": "Shared" },
            "leaderWorkerTemplate": {
                "size": server.gpus.parallelism.nodes,
                // A group that loses a Pod has lost its model; one whose Pods still start has lost nothing.
                "restartPolicy": "RecreateGroupAfterStart",
                "workerTemplate": worker(server, template.clone()),
                "leaderTemplate": template,
            },
        },
    })
}

/// The template of the workers, made of that of the leaders.
fn worker(server: &Server<'_>, mut template: Value) -> Value {
    let containers = template["spec"]["containers"].as_array_mut();
    if let Some(container) = containers.into_iter().flatten().find(|container| container["name"] == NAME) {
        if let Some(fields) = container.as_object_mut() {
            fields.retain(|name, _| !OF_LEADERS.contains(&name.as_str()));
        }
        append(container, "args", worker_arguments(server).iter().map(|argument| json!(argument)));
    }
    append(&mut template["spec"], "initContainers", [wait(server)]);
    template
}

/// The arguments of a worker beyond those of a leader. Who gives another command gives all its arguments.
fn worker_arguments<'s>(server: &'s Server<'_>) -> &'s [String] {
    if server.spec.model.command.is_empty() { &server.engine.arguments.worker } else { &[] }
}

fn append(object: &mut Value, field: &str, items: impl IntoIterator<Item = Value>) {
    let mut all = object[field].as_array().cloned().unwrap_or_default();
    all.extend(items);
    if !all.is_empty() {
        object[field] = Value::Array(all);
    }
}

fn wait(server: &Server<'_>) -> Value {
    let mut container = json!({
        "name": WAIT,
        "image": server.image,
        "command": ["sh", "-c", WAIT_COMMAND, LEADER_ADDRESS],
        "securityContext": security::of_container(Capabilities::Dropped),
    });
    if let Some(policy) = &server.spec.model.image_pull_policy {
        container["imagePullPolicy"] = json!(policy);
    }
    container
}
