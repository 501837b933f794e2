//! ConfigMaps of a job: its hyperparameters as a file, and copies of the ConfigMaps that it refers to, made when it starts
//! so that later edits do not disturb it. It never changes a ConfigMap that it refers to.

use super::labels;
use crate::job::Job;
use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The most bytes that the copies of one job hold together: they cross to the host with every answer.
pub const LARGEST: usize = 256 << 10;

/// A ConfigMap, read as far as it is copied.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMap {
    metadata: Name,
    data: Map<String, Value>,
    binary_data: Map<String, Value>,
}

impl Kind for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Name {
    name: String,
}

impl ConfigMap {
    /// How many bytes its values are.
    pub fn size(&self) -> usize {
        let values = self.data.values().chain(self.binary_data.values());
        values.filter_map(Value::as_str).map(str::len).sum()
    }
}

/// The name of the ConfigMap with the hyperparameters.
pub fn hyperparameters_name(job: &Job<'_>) -> String {
    job.child_name("hyperparameters")
}

/// The hyperparameters as JSON.
pub fn hyperparameters_text(job: &Job<'_>) -> Option<String> {
    job.spec.hyperparameters.as_ref().map(|values| Value::Object(values.clone()).to_string())
}

/// The ConfigMap with the hyperparameters.
pub fn hyperparameters(job: &Job<'_>) -> Option<Value> {
    let text = hyperparameters_text(job)?;
    Some(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": hyperparameters_name(job), "labels": labels::of_job(job) },
        "data": { "hyperparameters.json": text },
    }))
}

/// The name of the copy of a ConfigMap.
pub fn snapshot_name(job: &Job<'_>, name: &str) -> String {
    job.child_name(&format!("snapshot-{name}"))
}

/// The ConfigMaps that a job refers to, and whether it can do without.
pub fn references<'j>(job: &Job<'j>) -> BTreeMap<&'j str, bool> {
    let spec = job.spec;
    let mounted = spec.config_maps.iter().map(|mounted| (mounted.name.as_str(), None));
    let whole = spec.env_from.iter().filter_map(|from| from.config_map_ref.as_ref());
    let keys = spec.env.iter().filter_map(|variable| variable.value_from.as_ref()?.config_map_key_ref.as_ref());
    let all = mounted
        .chain(whole.map(|from| (from.name.as_str(), from.optional)))
        .chain(keys.map(|key| (key.name.as_str(), key.optional)));
    all.fold(BTreeMap::new(), |mut references, (name, optional)| {
        *references.entry(name).or_insert(true) &= optional.unwrap_or_default();
        references
    })
}

/// The copies that there are, as they are.
pub fn taken(job: &Job<'_>, live: &[ConfigMap]) -> Vec<Value> {
    let snapshots = references(job).into_keys().map(|name| snapshot_name(job, name));
    let found = snapshots.filter_map(|snapshot| Some((find(live, &snapshot)?, snapshot)));
    found.map(|(found, snapshot)| copy(job, &snapshot, found)).collect()
}

/// The copies that shall exist: those that are live as they are, and missing ones of what the cluster has now.
///
/// # Errors
/// A ConfigMap cannot be looked up.
pub fn snapshots(job: &Job<'_>, live: &[ConfigMap]) -> Result<Vec<Value>, Error> {
    let mut snapshots = Vec::new();
    for name in references(job).into_keys() {
        let snapshot = snapshot_name(job, name);
        let found = match find(live, &snapshot) {
            Some(live) => Some(live.clone()),
            None => lookup::get::<ConfigMap>(None, name)?,
        };
        snapshots.extend(found.map(|found| copy(job, &snapshot, &found)));
    }
    Ok(snapshots)
}

fn find<'m>(live: &'m [ConfigMap], name: &str) -> Option<&'m ConfigMap> {
    live.iter().find(|live| live.metadata.name == name)
}

fn copy(job: &Job<'_>, name: &str, of: &ConfigMap) -> Value {
    let mut copy = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "labels": labels::of_job(job) },
        "immutable": true,
    });
    for (field, values) in [("data", &of.data), ("binaryData", &of.binary_data)] {
        if !values.is_empty() {
            copy[field] = json!(values);
        }
    }
    copy
}
