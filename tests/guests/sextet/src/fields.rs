//! What the object says and what is reported. Nothing in here makes a child.

use pilothouse_sdk::{Error, Kind, Metadata, Object, Request};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The object.
pub type Sextet = Object<SextetSpec>;

/// Each field ends up in one or two children.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SextetSpec {
    /// Data of the ConfigMaps.
    pub data: BTreeMap<String, String>,
    /// Data of the Secrets, in base64.
    pub secret: String,
    /// Port of the Service.
    pub port: u16,
    /// Whether Pods mount the ServiceAccount's token.
    pub mount: bool,
    /// Children that shall not be, each by its kind and what its name has after the object's: `Secret/b`.
    pub without: Vec<String>,
}

/// What the plugin sees of its children.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SextetStatus {
    /// Names of the live ConfigMaps and of what is in them.
    pub seen: BTreeMap<String, BTreeMap<String, String>>,
}

impl SextetStatus {
    /// What is there.
    ///
    /// # Errors
    /// A live ConfigMap cannot be read.
    pub fn of(request: &Request<Sextet>) -> Result<Self, Error> {
        let live = request.children::<ConfigMap>()?;
        Ok(Self { seen: live.into_iter().map(|map| (map.metadata.name, map.data)).collect() })
    }
}

/// As much of a ConfigMap as the status tells.
#[derive(Debug, Deserialize)]
struct ConfigMap {
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl Kind for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
}
