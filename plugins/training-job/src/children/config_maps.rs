//! The ConfigMaps of a job: its hyperparameters as a file, and snapshots of the ConfigMaps that its spec refers to. Snapshots
//! are taken when the job starts, so that later edits do not affect it. It never changes a ConfigMap of the user.

use super::labels;
use crate::desired_child::DesiredChild;
use crate::job::Job;
use pilothouse_pods::name::object_name;
use pilothouse_pods::variable::{literal, variable};
use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The most bytes that all snapshots of a job may hold together. Every response carries them to the host.
pub const MAX_SNAPSHOT_BYTES: usize = 256 << 10;

/// The most bytes that the Pods of a job together spend on one text that is the same in all of them. In a big job it may be more; then one
/// ConfigMap holds it, and responses have room for many Pods.
const MAX_INLINE_BYTES: usize = 500_000;

/// The key with the hyperparameters.
const HYPERPARAMETERS_KEY: &str = "hyperparameters.json";

/// A ConfigMap: the fields that a snapshot copies.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMap {
    metadata: Metadata,
    data: Map<String, Value>,
    binary_data: Map<String, Value>,
}

impl Kind for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

impl ConfigMap {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// How many bytes its values have.
    pub fn size(&self) -> usize {
        let values = self.data.values().chain(self.binary_data.values());
        values.filter_map(Value::as_str).map(str::len).sum()
    }
}

/// A ConfigMap that a spec refers to.
pub struct Reference<'j> {
    /// Its name.
    pub name: &'j str,
    /// Whether the job can start without it.
    pub is_optional: bool,
}

/// The name of the ConfigMap with the hyperparameters.
pub fn hyperparameters_name(job: &Job<'_>) -> String {
    job.child_name("hyperparameters")
}

/// The hyperparameters as JSON.
pub fn hyperparameters_json(job: &Job<'_>) -> Option<String> {
    job.spec.hyperparameters.as_ref().map(|values| Value::Object(values.clone()).to_string())
}

/// Whether a text that all Pods of a job share is too long to be in each of them.
pub fn is_shared(job: &Job<'_>, text: &str) -> bool {
    let pods = usize::try_from(job.replica_count()).unwrap_or(usize::MAX);
    text.len().saturating_mul(pods) > MAX_INLINE_BYTES
}

/// The variable with the hyperparameters.
pub fn hyperparameters_variable(job: &Job<'_>, name: &str) -> Option<Value> {
    let json = hyperparameters_json(job)?;
    if is_shared(job, &json) {
        let key = json!({ "configMapKeyRef": { "name": hyperparameters_name(job), "key": HYPERPARAMETERS_KEY } });
        return Some(json!({ "name": name, "valueFrom": key }));
    }
    Some(variable(name, &literal(&json)))
}

/// The ConfigMap with the hyperparameters.
pub fn hyperparameters(job: &Job<'_>) -> Option<Value> {
    let json = hyperparameters_json(job)?;
    Some(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": hyperparameters_name(job), "labels": labels::of_job(job) },
        "data": { HYPERPARAMETERS_KEY: json },
    }))
}

/// The name of the snapshot of a ConfigMap. One that would be too long ends with a hash of the whole.
pub fn snapshot_name(job: &Job<'_>, name: &str) -> String {
    object_name(&job.child_name(&format!("snapshot-{name}")))
}

/// The ConfigMaps that the spec of a job refers to, in the order of their names.
pub fn references<'j>(job: &Job<'j>) -> Vec<Reference<'j>> {
    let spec = job.spec;
    let mounted = spec.config_maps.iter().map(|mount| (mount.name.as_str(), None));
    let env_from = spec.env_from.iter().filter_map(|from| from.config_map_ref.as_ref());
    let env = spec.env.iter().filter_map(|variable| variable.value_from.as_ref()?.config_map_key_ref.as_ref());
    let all = mounted
        .chain(env_from.map(|from| (from.name.as_str(), from.optional)))
        .chain(env.map(|key| (key.name.as_str(), key.optional)));
    // A ConfigMap is optional only if every reference to it is.
    let is_optional_by_name = all.fold(BTreeMap::new(), |mut by_name, (name, optional)| {
        *by_name.entry(name).or_insert(true) &= optional.unwrap_or_default();
        by_name
    });
    is_optional_by_name.into_iter().map(|(name, is_optional)| Reference { name, is_optional }).collect()
}

/// The desired snapshots: those that exist as they are, and missing ones with the present content of the user's ConfigMap.
///
/// # Errors
/// A lookup fails.
pub fn snapshots(job: &Job<'_>, existing: &[&str]) -> Result<Vec<DesiredChild>, Error> {
    let mut snapshots = Vec::new();
    for Reference { name, .. } in references(job) {
        let snapshot_name = snapshot_name(job, name);
        if existing.contains(&snapshot_name.as_str()) {
            snapshots.push(DesiredChild::kept("v1", "ConfigMap", &snapshot_name));
        } else if let Some(source) = lookup::get::<ConfigMap>(None, name)? {
            snapshots.push(DesiredChild::created(&snapshot(job, &snapshot_name, &source)));
        }
    }
    Ok(snapshots)
}

fn snapshot(job: &Job<'_>, name: &str, source: &ConfigMap) -> Value {
    let mut snapshot = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "labels": labels::of_job(job) },
        "immutable": true,
    });
    for (field, values) in [("data", &source.data), ("binaryData", &source.binary_data)] {
        if !values.is_empty() {
            snapshot[field] = json!(values);
        }
    }
    snapshot
}
