//! The workload of a `ModelDeployment` with its Services and its ConfigMap: a StatefulSet, whose Pods have stable names, or groups of Pods.

use crate::api::ModelDeployment;
use crate::autoscaler::Scaling;
use crate::leader_worker_set::leader_worker_set;
use crate::placement::Placement;
use crate::replicas;
use llm_serving::child::Child;
use llm_serving::container::PORT_NAME;
use llm_serving::labels;
use llm_serving::pod_template::pod_template;
use llm_serving::server::Server;
use llm_serving::service::service;
use llm_serving::spec_error::SpecError;
use pilothouse_pods::name::{MAX_LABEL, dns_label};
use pilothouse_pods::volumes::Volumes;
use serde_json::{Value, json};

/// Where the Pods find what they shall achieve.
const SETTINGS: &str = "/etc/model-deployment";

/// The workload, its Services and its ConfigMap. While a workload of the other kind is there, it has to go first, and is not among them, nor
/// does a new one come while somebody else has a name that it needs.
///
/// # Errors
/// No Pod template can be made.
pub fn children(
    object: &ModelDeployment,
    server: &Server<'_>,
    scaling: &Scaling,
    placement: &Placement,
) -> Result<Vec<Child>, SpecError> {
    let replicas = replicas::desired(scaling, &placement.live, server.spec.replicas);
    let workload = workload(server, replicas)?;
    let mut all = Vec::new();
    if placement.may_come() {
        all.push(Child { object: workload, options: replicas::options(scaling, &placement.live) });
    }
    // The controller of LeaderWorkerSets makes the Service by which their Pods have host names.
    if !server.is_multi_node() {
        all.push(Child::new(headless(server)));
    }
    all.extend([Child::new(service(server)), Child::new(config_map(object, server))]);
    Ok(all)
}

/// The workload with so many servers.
fn workload(server: &Server<'_>, replicas: i32) -> Result<Value, SpecError> {
    let template = pod_template(server, settings_volume(server))?;
    Ok(if server.is_multi_node() {
        leader_worker_set(server, replicas, template)
    } else {
        stateful_set(server, replicas, template)
    })
}

fn settings_volume(server: &Server<'_>) -> Volumes {
    let mut volumes = Volumes::default();
    let mount = json!({ "mountPath": SETTINGS, "readOnly": true });
    volumes.add("settings", "configMap", json!({ "name": config_map_name(server) }), mount);
    volumes
}

fn stateful_set(server: &Server<'_>, replicas: i32, template: Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": {
            "replicas": replicas,
            "serviceName": headless_name(server),
            // One after the other, a Pod that never becomes ready would keep its own successor from being made.
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": labels::selector(&server.spec.identity) },
            "updateStrategy": { "type": "RollingUpdate" },
            "template": template,
        },
    })
}

fn headless_name(server: &Server<'_>) -> String {
    dns_label(&format!("{}-headless", server.workload()), MAX_LABEL)
}

/// The Service by which the Pods have host names.
fn headless(server: &Server<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": headless_name(server), "labels": labels::of(server) },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": labels::selector(&server.spec.identity),
            "ports": [{ "name": PORT_NAME, "port": server.port, "targetPort": PORT_NAME, "protocol": "TCP" }],
        },
    })
}

fn config_map_name(server: &Server<'_>) -> String {
    dns_label(&format!("{}-settings", server.workload()), MAX_LABEL)
}

/// What the servers shall achieve, for programs beside them. It is mounted, and a change of it replaces no Pod.
fn config_map(object: &ModelDeployment, server: &Server<'_>) -> Value {
    let settings = json!({ "model": server.spec.model_name, "port": server.port, "sla": object.spec.sla });
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": config_map_name(server), "labels": labels::of(server) },
        "data": { "settings.json": settings.to_string() },
    })
}
