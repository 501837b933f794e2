//! The user's own fields of Pods: merged over what the plugin makes, and refused where they would break the names, addresses, ranks or
//! restarts of replicas.

use super::environment::RESERVED;
use super::labels::COMPLETION_INDEX;
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
    let container = job.spec.framework.as_str();
    templates(job).find_map(|(place, template)| Some(format!("{place}.{}", forbidden_in(template, container)?)))
}

/// The first label or annotation of the user's that is not a text, and so no Pod can have: where it is.
pub fn value_that_is_no_text(job: &Job<'_>) -> Option<String> {
    templates(job).find_map(|(place, template)| {
        let metadata = template.get("metadata")?;
        ["labels", "annotations"].into_iter().find_map(|field| {
            let wrong =
                metadata[field].as_object()?.iter().find(|(_, value)| !(value.is_string() || value.is_null()))?;
            Some(format!("{place}.metadata.{field}.{}", wrong.0))
        })
    })
}

/// All templates of a job, and where they are.
fn templates<'j>(job: &Job<'j>) -> impl Iterator<Item = (String, &'j Map<String, Value>)> + use<'j> {
    let of_roles = job.spec.roles.iter().filter_map(|role| {
        let template = role.pod_template.as_ref()?;
        Some((format!("roles[{}].podTemplate", role.name.as_str()), template))
    });
    job.spec.pod_template.iter().map(|template| ("podTemplate".to_owned(), template)).chain(of_roles)
}

fn templates_of<'j>(job: &Job<'j>, replica: ReplicaId) -> impl Iterator<Item = &'j Map<String, Value>> + use<'j> {
    let of_role = job.role(replica.replica_type).and_then(|role| role.pod_template.as_ref());
    job.spec.pod_template.iter().chain(of_role)
}

fn forbidden_in(template: &Map<String, Value>, container: &str) -> Option<String> {
    let unknown = template.keys().find(|field| !matches!(field.as_str(), "metadata" | "spec"));
    // Merged over the Pod, anything but an object would take the place of all that the job needs.
    let no_object = template.iter().find(|(_, value)| !value.is_object()).map(|(field, _)| field);
    if let Some(field) = unknown.or(no_object) {
        return Some(field.clone());
    }
    let fields = |field: &str| template.get(field).and_then(Value::as_object);
    let in_metadata = fields("metadata").and_then(forbidden_in_metadata);
    in_metadata.or_else(|| forbidden_in_spec(fields("spec")?, container))
}

fn forbidden_in_metadata(metadata: &Map<String, Value>) -> Option<String> {
    metadata.iter().find_map(|(field, value)| {
        let names = value.as_object().filter(|_| matches!(field.as_str(), "labels" | "annotations"));
        let Some(names) = names else { return Some(format!("metadata.{field}")) };
        let is_own =
            |name: &&String| *name == COMPLETION_INDEX || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        names.keys().find(is_own).map(|own| format!("metadata.{field}.{own}"))
    })
}

fn forbidden_in_spec(spec: &Map<String, Value>, container: &str) -> Option<String> {
    if let Some(field) = spec.keys().find(|field| OWN_FIELDS.contains(&field.as_str())) {
        return Some(format!("spec.{field}"));
    }
    let Some(containers) = spec.get("containers")?.as_array() else { return Some("spec.containers".to_owned()) };
    let in_container = |entry: &Value| forbidden_in_variables(entry.get("env")?);
    let mut trains = containers.iter().filter(|entry| entry["name"] == container);
    trains.find_map(in_container).map(|place| format!("spec.containers[{container}].env{place}"))
}

/// The variables that tell replicas apart, in the container that trains.
fn forbidden_in_variables(variables: &Value) -> Option<String> {
    let Some(variables) = variables.as_array() else { return Some(String::new()) };
    let mut names = variables.iter().filter_map(|variable| variable["name"].as_str());
    names.find(|name| RESERVED.contains(name)).map(|reserved| format!("[{reserved}]"))
}
