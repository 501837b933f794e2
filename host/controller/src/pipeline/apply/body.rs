//! The body of a guarded write: the child, with a precondition and the version that writes it in its metadata. Serializes them together,
//! without a copy of the child.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::{labels, object::Object};

/// A body with a guard, which makes the API server refuse the write (409 or 422) if the live object is another one.
#[derive(Clone, Copy, Debug)]
pub struct GuardedBody<'a> {
    /// The child.
    pub body: &'a Value,
    /// The UID of the object to update; none for a create.
    pub uid: Option<&'a str>,
    /// The resource version of the object as it is known, or one that no object has.
    pub resource_version: &'a str,
    /// The version of the plugin that writes it.
    pub made_by: &'a str,
}

impl<'a> GuardedBody<'a> {
    /// An update of exactly this state of an object, by a version of a plugin.
    pub fn over(body: &'a Value, live: &'a Object, made_by: &'a str) -> Self {
        Self { body, uid: Some(&live.uid), resource_version: &live.resource_version, made_by }
    }
}

impl Serialize for GuardedBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.body.as_object().into_iter().flatten().filter(|(field, _)| *field != "metadata");
        let mut all = serializer.serialize_map(None)?;
        for (field, value) in fields {
            all.serialize_entry(field, value)?;
        }
        all.serialize_entry("metadata", &Metadata { of: self.body["metadata"].as_object(), guard: self })?;
        all.end()
    }
}

struct Metadata<'a> {
    of: Option<&'a Map<String, Value>>,
    guard: &'a GuardedBody<'a>,
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_map(None)?;
        let GuardedBody { uid, resource_version, made_by, .. } = *self.guard;
        let is_own =
            |field: &str| field == "annotations" || field == "resourceVersion" || (field == "uid" && uid.is_some());
        for (field, value) in self.of.into_iter().flatten().filter(|(field, _)| !is_own(field)) {
            all.serialize_entry(field, value)?;
        }
        let annotations = self.of.and_then(|metadata| metadata.get("annotations")).and_then(Value::as_object);
        all.serialize_entry("annotations", &Annotations { of: annotations, made_by })?;
        uid.iter().try_for_each(|uid| all.serialize_entry("uid", uid))?;
        all.serialize_entry("resourceVersion", resource_version)?;
        all.end()
    }
}

struct Annotations<'a> {
    of: Option<&'a Map<String, Value>>,
    made_by: &'a str,
}

impl Serialize for Annotations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_map(None)?;
        for (key, value) in self.of.into_iter().flatten() {
            all.serialize_entry(key, value)?;
        }
        all.serialize_entry(labels::MADE_BY, self.made_by)?;
        all.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_guard_and_the_version_are_added_to_the_metadata_and_the_rest_stays() -> serde_json::Result<()> {
        let metadata = |name: Option<&str>, annotations: Value| {
            let mut metadata = json!({"uid": "u", "resourceVersion": "7", "annotations": annotations});
            if let Some(name) = name {
                metadata["name"] = name.into();
            }
            metadata
        };
        for (body, expected) in [
            (
                json!({"metadata": {"name": "a", "uid": "x", "annotations": {"b": "c"}}, "spec": 1}),
                json!({"metadata": metadata(Some("a"), json!({"b": "c", labels::MADE_BY: "1.2.0"})), "spec": 1}),
            ),
            (json!({"kind": "A"}), json!({"kind": "A", "metadata": metadata(None, json!({labels::MADE_BY: "1.2.0"}))})),
        ] {
            let sent = GuardedBody { body: &body, uid: Some("u"), resource_version: "7", made_by: "1.2.0" };
            assert_eq!(serde_json::from_str::<Value>(&serde_json::to_string(&sent)?)?, expected);
        }
        Ok(())
    }
}
