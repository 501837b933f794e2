//! The fields that a plugin reads of its children of one kind.

use serde::{Deserialize, Serialize};

use crate::KindRef;

/// What a plugin reads of its children of one kind. In JSON the fields of the kind stand beside the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
pub struct ChildReads {
    /// The kind, one of the manifest's `children`.
    pub kind: KindRef,
    /// JSON pointers of the fields, such as `/status`, or `/metadata/uid` to see which children there are. None: it is not shown
    /// them.
    pub fields: Vec<String>,
}

/// The form in JSON. Flattening by serde would hide unknown fields.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Flat {
    api_version: String,
    kind: String,
    fields: Vec<String>,
}

impl From<Flat> for ChildReads {
    fn from(flat: Flat) -> Self {
        Self { kind: KindRef::new(flat.api_version, flat.kind), fields: flat.fields }
    }
}

impl From<ChildReads> for Flat {
    fn from(reads: ChildReads) -> Self {
        let KindRef { api_version, kind } = reads.kind;
        Self { api_version, kind, fields: reads.fields }
    }
}
