//! The StatefulSet of a `ModelDeployment`, whose Pods have stable names, with its Services and its ConfigMap.

use crate::api::ModelDeployment;
use crate::autoscaler::{Bounds, Scaling};
use crate::live::LiveStatefulSet;
use llm_serving::child::Child;
use llm_serving::container::PORT_NAME;
use llm_serving::labels;
use llm_serving::pod_template::pod_template;
use llm_serving::server::Server;
use llm_serving::service::service;
use llm_serving::spec_error::SpecError;
use pilothouse_pods::name::{MAX_LABEL, dns_label};
use pilothouse_pods::volumes::Volumes;
use pilothouse_sdk::{ImmutablePolicy, Options};
use serde_json::{Value, json};

/// Where the Pods find what they shall achieve.
const SETTINGS: &str = "/etc/model-deployment";

/// The field that an autoscaler sets.
const REPLICAS: &str = "/spec/replicas";

/// The StatefulSet, its Services and its ConfigMap.
///
/// # Errors
/// No Pod template can be made.
pub fn children(
    object: &ModelDeployment,
    server: &Server<'_>,
    scaling: &Scaling,
    live: &LiveStatefulSet,
) -> Result<Vec<Child>, SpecError> {
    let stateful_set = stateful_set(server, scaling, live)?;
    Ok(vec![
        stateful_set,
        Child::new(headless(server)),
        Child::new(service(server)),
        Child::new(config_map(object, server)),
    ])
}

/// How many Pods there shall be now: what the spec says, or what an autoscaler has made of it.
pub fn desired(scaling: &Scaling, live: &LiveStatefulSet, needed: i32) -> i32 {
    match scaling {
        Scaling::Fixed(replicas) => *replicas,
        Scaling::Keda(Bounds { min: 0, .. }) => live.replicas().unwrap_or(needed),
        Scaling::Hpa(_) | Scaling::Keda(_) | Scaling::External => {
            live.replicas().filter(|live| *live > 0).unwrap_or(needed)
        }
    }
}

/// Whether the number of Pods is left to an autoscaler. It is given up only when that one has a number to begin with: a StatefulSet that
/// is created without it has one Pod, and only KEDA scales one that has none. The host keeps the live number until the autoscaler sets
/// it.
fn is_given_up(scaling: &Scaling, live: &LiveStatefulSet) -> bool {
    match scaling {
        Scaling::Fixed(_) => false,
        Scaling::Keda(Bounds { min: 0, .. }) => live.replicas().is_some(),
        Scaling::Hpa(_) | Scaling::Keda(_) | Scaling::External => live.replicas().is_some_and(|replicas| replicas > 0),
    }
}

fn stateful_set(server: &Server<'_>, scaling: &Scaling, live: &LiveStatefulSet) -> Result<Child, SpecError> {
    let unmanaged = if is_given_up(scaling, live) { vec![REPLICAS.to_owned()] } else { Vec::new() };
    let options = Options { on_immutable: ImmutablePolicy::Recreate, unmanaged, ..Options::default() };
    let replicas = desired(scaling, live, server.spec.replicas);
    let mut volumes = Volumes::default();
    let mount = json!({ "mountPath": SETTINGS, "readOnly": true });
    volumes.add("settings", "configMap", json!({ "name": config_map_name(server) }), mount);
    let object = json!({
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
            "template": pod_template(server, volumes)?,
        },
    });
    Ok(Child { object, options })
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
