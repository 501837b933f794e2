//! What follows from a write at once: CustomResourceDefinitions that come, change and go add and remove kinds.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api_server::{
    ApiServer,
    kinds::established,
    store::{Cause, Object},
    time,
};

/// The kind whose objects add kinds.
pub(super) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

impl ApiServer {
    /// Serves what there is to serve after a write. In a real server a controller does it a moment later.
    pub(super) fn after_write(&mut self, before: Option<&Arc<Object>>, after: Option<&Arc<Object>>, now: Timestamp) {
        let Some(object) = after.or(before).filter(|object| *object.kind.resource == *DEFINITIONS) else { return };
        let Some(after) = after else {
            self.served.replace(object.name(), []);
            return;
        };
        if before.is_some_and(|before| before.value["spec"] == after.value["spec"]) {
            return;
        }
        // A schema that this server cannot use is served as little as one that the real server refuses.
        match self.catalog.custom(&after.value) {
            Ok(kinds) => self.served.replace(after.name(), kinds),
            Err(error) => tracing::warn!(definition = after.name(), "{error}"),
        }
        self.move_objects(after.name());
        let mut value = after.value.clone();
        value["status"] = established(&value, &time::seconds(now));
        if before.is_none() {
            let object = Object::new(after.kind.clone(), after.key.clone(), value, after.managed.clone());
            self.store.put(object, &Cause { user: "system:apiserver".into(), verb: "update" });
        }
    }

    /// The objects of a kind belong to the present schema of the version in which they are kept. They stay in that version until they
    /// are written.
    fn move_objects(&mut self, resource: &str) {
        let versions: Vec<_> = self.served.iter().filter(|kind| *kind.resource == *resource).cloned().collect();
        self.store.replace_kinds(resource, &versions);
    }
}
