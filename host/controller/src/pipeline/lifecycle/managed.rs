//! Objects that name another manager in a field that the plugin's manifest declares, like `spec.managedBy` of a Job. The host does
//! not touch them, not even their status. The exception is an object that is being deleted: it may still carry the plugin's
//! finalizer, which would block the deletion. Pure.

use pilothouse_engine::Manifest;

use crate::{labels, object::Object};

/// Whether an object names another manager than the plugin.
pub fn is_managed_elsewhere(object: &Object, manifest: &Manifest) -> bool {
    let Some(pointer) = manifest.managed_by.as_deref().filter(|_| !object.deleting) else { return false };
    object.text_at(pointer).is_some_and(|manager| manager != labels::manager(&manifest.name))
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
            assert_eq!(
                is_managed_elsewhere(&object, &manifest(declared)),
                expected,
                "{declared:?} {manager} {deleting}"
            );
        }
        assert!(!is_managed_elsewhere(&Object::sample("ns", "a"), &manifest(field)), "there is no such field");
    }
}
