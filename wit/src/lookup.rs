//! A kind that a plugin may look up, and where.

use serde::{Deserialize, Serialize};

use crate::{KindRef, Selector};

/// A kind that a plugin may look up. In JSON the fields of the kind stand beside the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
pub struct Lookup {
    /// The kind.
    pub kind: KindRef,
    /// Whether it may be looked up in all namespaces at once.
    pub all_namespaces: bool,
    /// The label selector of those that may be looked up, as `kubectl -l` has it; empty for all. The host does not even keep the others,
    /// and to the plugin they do not exist.
    pub label_selector: String,
    /// Whether only the metadata of objects may be looked up. The host keeps no more of them.
    pub metadata_only: bool,
}

impl Lookup {
    /// What is wrong with its label selector, in words; none if nothing is.
    pub fn fault(&self) -> Option<String> {
        let fault = Selector::parse(&self.label_selector).err()?;
        Some(format!("of `{}`: {fault}", self.kind))
    }
}

impl From<KindRef> for Lookup {
    fn from(kind: KindRef) -> Self {
        Self { kind, all_namespaces: false, label_selector: String::new(), metadata_only: false }
    }
}

/// The form in JSON. Flattening by serde would hide unknown fields.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Flat {
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    all_namespaces: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    label_selector: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    metadata_only: bool,
}

impl From<Flat> for Lookup {
    fn from(flat: Flat) -> Self {
        let Flat { api_version, kind, all_namespaces, label_selector, metadata_only } = flat;
        Self { kind: KindRef::new(api_version, kind), all_namespaces, label_selector, metadata_only }
    }
}

impl From<Lookup> for Flat {
    fn from(lookup: Lookup) -> Self {
        let Lookup { kind: KindRef { api_version, kind }, all_namespaces, label_selector, metadata_only } = lookup;
        Self { api_version, kind, all_namespaces, label_selector, metadata_only }
    }
}
