//! The Pod of a replica: the user's template, with what tells replicas apart.

use super::{environment, init_container::init_container, labels};
use crate::api::{CONTAINER, PORT_NAME, PyTorchJobSpec, ReplicaSpec};
use crate::config::Config;
use serde_json::{Map, Value, json};
use training_job::api::ReplicaType;
use training_job::{ANNOTATION, Job, ReplicaId, add_to_pod_group};

/// The desired Pod.
pub fn pod(job: &Job<'_>, given: &PyTorchJobSpec, config: &Config, replica: ReplicaId) -> Value {
    let empty = ReplicaSpec::default();
    let replica_spec = given.replica_spec(replica.replica_type).unwrap_or(&empty);
    let (template, name) = (&replica_spec.template, job.pod_name(replica));
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": merged(&template["metadata"]["labels"], labels::of_pod(job, replica)),
            "annotations": merged(&template["metadata"]["annotations"], json!({ ANNOTATION: job.fingerprint })),
        },
        "spec": template["spec"],
    });
    let (scheduler, spec) = (template["spec"]["schedulerName"].clone(), &mut pod["spec"]);
    spec["restartPolicy"] = json!(job.pod_restart_policy(replica.replica_type));
    let variables = environment::variables(job, given, replica);
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        set_variables(container, &variables);
        if container["name"] == CONTAINER {
            set_port(container, replica_spec.port());
        }
    }
    if replica.replica_type == ReplicaType::Worker && given.has_master() {
        let waits = init_container(config, &job.pod_name(job.chief()));
        let mut all = spec["initContainers"].as_array().cloned().unwrap_or_default();
        all.extend(waits);
        if !all.is_empty() {
            spec["initContainers"] = json!(all);
        }
    }
    add_to_pod_group(job, &mut pod);
    // The user's own scheduler is as good as the one of the configuration.
    if !scheduler.is_null() {
        pod["spec"]["schedulerName"] = scheduler;
    }
    pod
}

/// Labels or annotations of the user, with those of the job, which count.
fn merged(given: &Value, own: Value) -> Value {
    let mut all = given.as_object().cloned().unwrap_or_default();
    if let Value::Object(own) = own {
        all.extend(own);
    }
    Value::Object(all)
}

/// Adds variables after those of the user. A name that is set again counts as it was set last, and a list that holds it twice is refused.
fn set_variables(container: &mut Value, variables: &[Value]) {
    let given = container["env"].as_array().cloned().unwrap_or_default();
    let mut last = Map::new();
    let mut names = Vec::new();
    for variable in given.iter().chain(variables) {
        let name = variable["name"].as_str().unwrap_or_default();
        if last.insert(name.to_owned(), variable.clone()).is_some() {
            names.retain(|earlier| earlier != name);
        }
        names.push(name.to_owned());
    }
    container["env"] = names.iter().filter_map(|name| last.remove(name)).collect();
}

fn set_port(container: &mut Value, port: u32) {
    let mut ports = container["ports"].as_array().cloned().unwrap_or_default();
    if !ports.iter().any(|given| given["name"] == PORT_NAME) {
        ports.push(json!({ "name": PORT_NAME, "containerPort": port, "protocol": "TCP" }));
        container["ports"] = json!(ports);
    }
}
