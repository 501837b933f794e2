//! The part of an object's metadata that plugins ask for. It leaves out what only the API server and the host need, and keeps
//! times as text: reading everything would make a plugin twice as big.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An object's metadata. For the rest, put `k8s_openapi`'s `ObjectMeta` into a type of your own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The name, unique for the kind within a namespace.
    pub name: String,
    /// The namespace; empty for a cluster-scoped kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Tells this object from an earlier one of the same name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// How often the spec has changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When it was created: RFC 3339 in UTC with seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// When its deletion was requested; `None` unless it is being deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// The labels, which selectors match.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}
