//! The body of a guarded write: the child, with a precondition in its metadata. Serializes both together, without a copy of the
//! child.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

/// A body with a guard, which makes the API server refuse the write (409 or 422) if the live object is another one.
#[derive(Clone, Copy, Debug)]
pub struct GuardedBody<'a> {
    /// The child.
    pub body: &'a Value,
    /// The field of the metadata that is the precondition: `uid` or `resourceVersion`.
    pub field: &'a str,
    /// Its value.
    pub value: &'a str,
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
        for (field, value) in self.of.into_iter().flatten().filter(|(field, _)| *field != self.guard.field) {
            all.serialize_entry(field, value)?;
        }
        all.serialize_entry(self.guard.field, self.guard.value)?;
        all.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_guard_is_added_to_the_metadata_and_the_rest_stays() -> serde_json::Result<()> {
        for (body, expected) in [
            (
                json!({"metadata": {"name": "a", "uid": "x"}, "spec": 1}),
                json!({"metadata": {"name": "a", "uid": "u"}, "spec": 1}),
            ),
            (json!({"kind": "A"}), json!({"kind": "A", "metadata": {"uid": "u"}})),
        ] {
            let sent = GuardedBody { body: &body, field: "uid", value: "u" };
            assert_eq!(serde_json::from_str::<Value>(&serde_json::to_string(&sent)?)?, expected);
        }
        Ok(())
    }
}
