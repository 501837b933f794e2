//! Objects that the host does not touch, not even their status: those that name another manager in a field that the plugin's manifest
//! declares, like `spec.managedBy` of a Job, those that are suspended, and those in namespaces that the plugin does not work in. The
//! exception is an object that is being deleted: it may still carry the plugin's finalizer, which would block the deletion. Pure.

use std::fmt;

use pilothouse_engine::Manifest;

use crate::{labels, object::Object};

/// Why an object is not touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOurs {
    /// It names another manager than the plugin.
    ManagedElsewhere,
    /// Its annotation [`labels::SUSPENDED`] is `true`.
    Suspended,
    /// The plugin does not work in its namespace.
    NamespaceNotServed,
}

impl fmt::Display for NotOurs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ManagedElsewhere => "another manager is named",
            Self::Suspended => "the object is suspended by its annotation",
            Self::NamespaceNotServed => "the plugin does not work in this namespace",
        })
    }
}

/// Whether an object is not to be touched, and why. `is_served` tells whether the plugin works in its namespace.
pub fn not_ours(object: &Object, manifest: &Manifest, is_served: bool) -> Option<NotOurs> {
    if object.deleting {
        return None;
    }
    if !is_served {
        return Some(NotOurs::NamespaceNotServed);
    }
    // A search in the text needs no parsing, and nearly no object has the annotation.
    let may_be_suspended = object.text.contains(labels::SUSPENDED);
    if may_be_suspended && object.annotation(labels::SUSPENDED).is_some_and(|value| value == "true") {
        return Some(NotOurs::Suspended);
    }
    names_another_manager(object, manifest).then_some(NotOurs::ManagedElsewhere)
}

/// Whether an object names another manager than the plugin, and than those whose objects it takes over. An empty name is none.
pub fn names_another_manager(object: &Object, manifest: &Manifest) -> bool {
    let manager = manifest.managed_by.as_deref().and_then(|pointer| object.text_at(pointer));
    let is_other =
        |manager: &String| *manager != labels::manager(&manifest.name) && !manifest.managers.contains(manager);
    manager.filter(|manager| !manager.is_empty()).is_some_and(|manager| is_other(&manager))
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::KindRef;
    use serde_json::json;

    use super::*;

    fn manifest(managed_by: Option<&str>) -> Manifest {
        let managed_by = managed_by.map(str::to_owned);
        Manifest { managed_by, ..Manifest::new("web", "1", KindRef::new("example.com/v1", "Web")) }
    }

    #[test]
    fn an_object_is_managed_elsewhere_only_if_the_declared_field_names_another_manager() {
        let field = Some("/spec/policy/managedBy");
        for (declared, manager, deleting, expected) in [
            (field, json!("example.com/other"), false, true),
            (field, json!("pilothouse.dev/web"), false, false),
            (field, json!(null), false, false),
            (field, json!(7), false, false),
            (field, json!("example.com/other"), true, false),
            (None, json!("example.com/other"), false, false),
        ] {
            let text = json!({"spec": {"policy": {"managedBy": manager}}}).to_string().into();
            let object = Object { text, deleting, ..Object::sample("ns", "a") };
            let expected = expected.then_some(NotOurs::ManagedElsewhere);
            assert_eq!(not_ours(&object, &manifest(declared), true), expected, "{declared:?} {manager} {deleting}");
        }
        assert_eq!(not_ours(&Object::sample("ns", "a"), &manifest(field), true), None, "there is no such field");
    }

    #[test]
    fn an_object_of_a_manager_that_the_plugin_takes_over_is_the_plugins() {
        let managers = vec!["example.com/operator".to_owned()];
        let manifest = Manifest { managers, ..manifest(Some("/managedBy")) };
        for (manager, expected) in [
            ("example.com/operator", None),
            ("pilothouse.dev/web", None),
            ("example.com/operator-2", Some(NotOurs::ManagedElsewhere)),
            ("", None),
        ] {
            let object = Object { text: json!({"managedBy": manager}).to_string().into(), ..Object::sample("ns", "a") };
            assert_eq!(not_ours(&object, &manifest, true), expected, "{manager}");
        }
    }

    #[test]
    fn a_suspended_object_and_one_elsewhere_are_left_alone_unless_they_are_deleted() {
        for (suspended, is_served, deleting, expected) in [
            (json!("true"), true, false, Some(NotOurs::Suspended)),
            (json!("false"), true, false, None),
            (json!("true"), true, true, None),
            (json!("false"), false, false, Some(NotOurs::NamespaceNotServed)),
            (json!("false"), false, true, None),
        ] {
            let text = json!({"metadata": {"annotations": {"pilothouse.dev/suspended": suspended}}}).to_string().into();
            let object = Object { text, deleting, ..Object::sample("ns", "a") };
            assert_eq!(not_ours(&object, &manifest(None), is_served), expected, "{suspended} {is_served} {deleting}");
        }
    }
}
