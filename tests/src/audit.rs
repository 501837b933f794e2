//! Reads the writes of a user in a namespace from the API server's audit log.
//!
//! The effect of a write is visible before its answer is logged, so a test that saw the effect may read the log too early. The
//! arrival of a write is logged before anything else happens to it, so the reader knows which answers are still missing.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;

/// The writes of one user in one namespace.
#[derive(Debug, Default)]
pub struct Writes {
    /// The answered writes in order, with their times.
    pub answered: Vec<(Timestamp, String)>,
    /// The writes that have arrived but have no answer yet.
    pub under_way: Vec<String>,
}

impl Writes {
    /// Reads the log.
    ///
    /// # Errors
    /// If it cannot be read, or has a line that is no entry.
    pub fn read(log: &Path, user: &str, namespace: &str) -> Result<Self> {
        let log = fs::read_to_string(log).context("failed to read the audit log")?;
        // The last line may be incomplete, because the API server is still writing it.
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut writes = Self::default();
        let mut under_way = BTreeMap::new();
        for line in whole.lines().filter(|line| line.contains(namespace)) {
            let entry: Value = serde_json::from_str(line).context("a malformed line in the audit log")?;
            if entry["objectRef"]["namespace"] != namespace {
                continue;
            }
            // When a request arrives, only its user is known, and not yet in whose name it is made.
            let id = text(&entry["auditID"]).to_owned();
            if entry["stage"] == "RequestReceived" {
                under_way.insert(id, described(&entry));
                continue;
            }
            under_way.remove(&id);
            if actor(&entry) == user {
                writes.answered.push((text(&entry["stageTimestamp"]).parse()?, described(&entry)));
            }
        }
        writes.under_way = under_way.into_values().collect();
        Ok(writes)
    }
}

/// Who acts: the user of the request, or the one in whose name it is made.
fn actor(entry: &Value) -> &str {
    entry["impersonatedUser"]["username"].as_str().unwrap_or_else(|| text(&entry["user"]["username"]))
}

/// Verb, resource with subresource, name and, with an answer, its code.
fn described(entry: &Value) -> String {
    let target = &entry["objectRef"];
    let [verb, resource, subresource, name] =
        [&entry["verb"], &target["resource"], &target["subresource"], &target["name"]].map(text);
    let code = &entry["responseStatus"]["code"];
    format!("{verb} {resource}/{subresource} {name} {code}")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
