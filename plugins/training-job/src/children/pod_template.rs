//! The user's own fields of Pods: merged over what the plugin makes, and refused where they would break the names, addresses, ranks or
//! restarts of replicas.

use super::environment::RESERVED;
use crate::job::{Job, ReplicaId};
use pilothouse_pods::strategic_merge::merge;
use serde_json::{Map, Value, json};

/// Fields of a Pod's spec that the plugin decides.
const OWN_FIELDS: [&str; 4] = ["hostname", "restartPolicy", "setHostnameAsFQDN", "subdomain"];

/// Prefixes of labels and annotations by which replicas and their owner are found.
const OWN_PREFIXES: [&str; 3] = ["app.kubernetes.io/", "ml.example.com/", "pilothouse.dev/"];

/// Merges the user's fields over the Pod of a replica: those of all Pods, then those of its role.
pub fn apply(job: &Job<'_>, replica: ReplicaId, pod: &mut Value) {
    for template in templates_of(job, replica) {
        for field in ["metadata", "spec"] {
            if let Some(patch) = template.get(field) {
                merge(&mut pod[field], patch);
            }
        }
    }
    // In the network of the node, names of the cluster are not resolved by themselves.
    if pod["spec"]["hostNetwork"] == true && pod["spec"].get("dnsPolicy").is_none() {
        pod["spec"]["dnsPolicy"] = json!("ClusterFirstWithHostNet");
    }
}

/// The first field of the user's that would break the job: where it is.
pub fn forbidden_field(job: &Job<'_>) -> Option<String> {
    let of_roles = job.spec.roles.iter().filter_map(|role| {
        let template = role.pod_template.as_ref()?;
        Some((format!("roles[{}].podTemplate", role.name.as_str()), template))
    });
    let of_job = job.spec.pod_template.iter().map(|template| ("podTemplate".to_owned(), template));
    let container = job.spec.framework.as_str();
    of_job.chain(of_roles).find_map(|(place, template)| Some(format!("{place}.{}", forbidden_in(template, container)?)))
}

fn templates_of<'j>(job: &Job<'j>, replica: ReplicaId) -> impl Iterator<Item = &'j Map<String, Value>> + use<'j> {
    let of_role = job.role(replica.replica_type).and_then(|role| role.pod_template.as_ref());
    job.spec.pod_template.iter().chain(of_role)
}

fn forbidden_in(template: &Map<String, Value>, container: &str) -> Option<String> {
    let empty = Map::new();
    let unknown = template.keys().find(|field| !matches!(field.as_str(), "metadata" | "spec"));
    if let Some(field) = unknown {
        return Some(field.clone());
    }
    let metadata = template.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let spec = template.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    forbidden_in_metadata(metadata)
        .or_else(|| spec.keys().find(|field| OWN_FIELDS.contains(&field.as_str())).map(|field| format!("spec.{field}")))
        .or_else(|| forbidden_in_container(spec, container))
}

fn forbidden_in_metadata(metadata: &Map<String, Value>) -> Option<String> {
    metadata.iter().find_map(|(field, value)| {
        if !matches!(field.as_str(), "labels" | "annotations") {
            return Some(format!("metadata.{field}"));
        }
        let mut names = value.as_object()?.keys();
        let own = names.find(|name| OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))?;
        Some(format!("metadata.{field}.{own}"))
    })
}

/// The variables that tell replicas apart, in the container that trains.
fn forbidden_in_container(spec: &Map<String, Value>, container: &str) -> Option<String> {
    let containers = spec.get("containers").and_then(Value::as_array)?;
    let trains = containers.iter().find(|entry| entry["name"] == container)?;
    let names = trains.get("env")?.as_array()?.iter().filter_map(|variable| variable["name"].as_str());
    let reserved = names.into_iter().find(|name| RESERVED.contains(name))?;
    Some(format!("spec.containers[{container}].env[{reserved}]"))
}
