//! The body of a guarded write: the child, with a precondition in its metadata. Serializes both together, without a copy of the
//! child.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use crate::object::Object;

/// A body with a guard, which makes the API server refuse the write (409 or 422) if the live object is another one.
#[derive(Clone, Copy, Debug)]
pub struct GuardedBody<'a> {
    /// The child.
    pub body: &'a Value,
    /// The UID of the object to update; none for a create.
    pub uid: Option<&'a str>,
    /// The resource version of the object as it is known, or one that no object has.
    pub resource_version: &'a str,
}

impl<'a> GuardedBody<'a> {
    /// An update of exactly this state of an object.
    pub fn over(body: &'a Value, live: &'a Object) -> Self {
        Self { body, uid: Some(&live.uid), resource_version: &live.resource_version }
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
        let GuardedBody { uid, resource_version, .. } = self.guard;
        let is_guard = |field: &str| field == "resourceVersion" || (field == "uid" && uid.is_some());
        for (field, value) in self.of.into_iter().flatten().filter(|(field, _)| !is_guard(field)) {
            all.serialize_entry(field, value)?;
        }
        uid.iter().try_for_each(|uid| all.serialize_entry("uid", uid))?;
        all.serialize_entry("resourceVersion", resource_version)?;
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
                json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}, "spec": 1}),
            ),
            (json!({"kind": "A"}), json!({"kind": "A", "metadata": {"uid": "u", "resourceVersion": "7"}})),
        ] {
            let sent = GuardedBody { body: &body, uid: Some("u"), resource_version: "7" };
            assert_eq!(serde_json::from_str::<Value>(&serde_json::to_string(&sent)?)?, expected);
        }
        Ok(())
    }
}
