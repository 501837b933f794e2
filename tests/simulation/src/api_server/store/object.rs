//! One state of one object, with its JSON text once somebody asked for it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};

use super::Revision;
use crate::api_server::{
    kinds::Kind,
    managed::{Entry, Managed},
};

/// What an owner reference says of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRef<'o> {
    /// Group and version.
    pub api_version: &'o str,
    /// The kind.
    pub kind: &'o str,
    /// The name.
    pub name: &'o str,
    /// The UID.
    pub uid: &'o str,
    /// Whether a foreground deletion of the owner waits for this object.
    pub blocks: bool,
}

/// One state of one object.
#[derive(Clone, Debug)]
pub struct Object {
    /// The kind, in the version in which the object is kept.
    pub kind: Arc<Kind>,
    /// Its place among the objects of its kind.
    pub key: Arc<str>,
    /// The object, without the resource version and the owners of its fields.
    pub value: Value,
    /// The owners of its fields.
    pub managed: Managed,
    /// The resource version.
    pub revision: Revision,
    /// Whether a real server keeps less of it than what is shown, so that its next write is kept although it changes nothing.
    pub is_completed_by_reads: bool,
    text: OnceLock<Bytes>,
}

impl Object {
    /// A state that is not kept yet.
    pub fn new(kind: Arc<Kind>, key: Arc<str>, value: Value, managed: Managed) -> Self {
        Self { kind, key, value, managed, revision: 0, is_completed_by_reads: false, text: OnceLock::new() }
    }

    /// The same state with a resource version.
    #[must_use]
    pub fn at(self, revision: Revision) -> Self {
        Self { revision, text: OnceLock::new(), ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.metadata("name").as_str().unwrap_or_default()
    }

    /// The namespace; empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        self.metadata("namespace").as_str().unwrap_or_default()
    }

    /// The UID.
    pub fn uid(&self) -> &str {
        self.metadata("uid").as_str().unwrap_or_default()
    }

    /// The labels; null if there are none.
    pub fn labels(&self) -> &Value {
        self.metadata("labels")
    }

    /// Whether somebody has deleted it and it is still there.
    pub fn is_deleting(&self) -> bool {
        !self.metadata("deletionTimestamp").is_null()
    }

    /// The finalizers.
    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.metadata("finalizers").as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// The owners.
    pub fn owners(&self) -> impl Iterator<Item = ObjectRef<'_>> {
        self.metadata("ownerReferences").as_array().into_iter().flatten().map(|owner| {
            let text = |field: &str| owner[field].as_str().unwrap_or_default();
            ObjectRef {
                api_version: text("apiVersion"),
                kind: text("kind"),
                name: text("name"),
                uid: text("uid"),
                blocks: owner["blockOwnerDeletion"] == true,
            }
        })
    }

    /// A field of the metadata; null if it is missing.
    pub fn metadata(&self, name: &str) -> &Value {
        &self.value["metadata"][name]
    }

    /// The whole object as JSON text, in the version in which it is kept.
    pub fn text(&self) -> Bytes {
        self.text.get_or_init(|| self.shown(&self.value)).clone()
    }

    /// The object as JSON text, without what it says of its kind.
    pub fn item_text(&self) -> Bytes {
        Shown { value: &self.value, managed: &self.managed, revision: self.revision, says_kind: false }.text()
    }

    /// The JSON text of this state with another value, such as that of another version.
    pub fn shown(&self, value: &Value) -> Bytes {
        Shown { value, managed: &self.managed, revision: self.revision, says_kind: true }.text()
    }

    /// The whole object as a value, in the version in which it is kept.
    pub fn to_value(&self) -> Value {
        let mut value = self.value.clone();
        if self.revision > 0 {
            value["metadata"]["resourceVersion"] = self.revision.to_string().into();
        }
        if let Some(managed) = self.managed.to_value() {
            value["metadata"]["managedFields"] = managed;
        }
        value
    }
}

struct Shown<'o> {
    value: &'o Value,
    managed: &'o Managed,
    revision: Revision,
    says_kind: bool,
}

impl Shown<'_> {
    fn text(&self) -> Bytes {
        // Most objects fit.
        let mut text = Vec::with_capacity(4 << 10);
        // Serializing a value into memory cannot fail.
        drop(serde_json::to_writer(&mut text, self));
        text.into()
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.value.as_object().into_iter().flatten() {
            match value.as_object().filter(|_| name == "metadata") {
                None if !self.says_kind && (name == "kind" || name == "apiVersion") => {}
                Some(metadata) => map.serialize_entry(name, &Metadata { metadata, shown: self })?,
                None => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

struct Metadata<'o> {
    metadata: &'o Map<String, Value>,
    shown: &'o Shown<'o>,
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.metadata {
            map.serialize_entry(name, value)?;
        }
        if self.shown.revision > 0 {
            map.serialize_entry("resourceVersion", &self.shown.revision.to_string())?;
        }
        let entries = self.shown.managed.entries();
        if !entries.is_empty() {
            let entries: Vec<&RawValue> = entries.iter().map(Entry::text).collect();
            map.serialize_entry("managedFields", &entries)?;
        }
        map.end()
    }
}
