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
