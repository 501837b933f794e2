//! The kinds that the guest looks up, with as much of them as it needs.

use pilothouse_sdk::{Kind, Metadata};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A kind that the manifest declares.
#[derive(Debug, Deserialize)]
pub struct ConfigMap {
    pub metadata: Metadata,
    #[serde(default)]
    pub data: BTreeMap<String, String>,
}

impl Kind for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
}

/// A kind that the manifest does not declare.
#[derive(Debug, Deserialize)]
pub struct Secret {}

impl Kind for Secret {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Secret";
}

/// A kind that no cluster has.
#[derive(Debug, Deserialize)]
pub struct Absent {}

impl Kind for Absent {
    const API_VERSION: &'static str = "absent.pilothouse.dev/v1";
    const KIND: &'static str = "Absent";
}

/// Another object of the guest's own kind.
#[derive(Debug, Deserialize)]
pub struct Peer {
    #[serde(default)]
    status: PeerStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PeerStatus {
    conditions: Vec<PeerCondition>,
}

#[derive(Debug, Deserialize)]
struct PeerCondition {
    r#type: String,
    status: String,
}

impl Peer {
    /// Whether the host says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "True")
    }
}

impl Kind for Peer {
    const API_VERSION: &'static str = "test.pilothouse.dev/v1";
    const KIND: &'static str = "Misbehaver";
}
