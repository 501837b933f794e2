//! A kind that a plugin may look up, and where.

use serde::{Deserialize, Serialize};

use crate::KindRef;

/// A kind that a plugin may look up. In JSON the fields of the kind stand beside the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
pub struct Lookup {
    /// The kind.
    pub kind: KindRef,
    /// Whether it may be looked up in all namespaces at once.
    pub all_namespaces: bool,
}

impl From<KindRef> for Lookup {
    fn from(kind: KindRef) -> Self {
        Self { kind, all_namespaces: false }
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
}

impl From<Flat> for Lookup {
    fn from(flat: Flat) -> Self {
        Self { kind: KindRef::new(flat.api_version, flat.kind), all_namespaces: flat.all_namespaces }
    }
}

impl From<Lookup> for Flat {
    fn from(lookup: Lookup) -> Self {
        let KindRef { api_version, kind } = lookup.kind;
        Self { api_version, kind, all_namespaces: lookup.all_namespaces }
    }
}
