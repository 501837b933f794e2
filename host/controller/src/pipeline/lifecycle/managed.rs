//! Objects that somebody else manages, and say so in a field that the plugin's manifest names: nothing at all is done about
//! them, not even a status. One that is being deleted is let go as ever, for it may hold the plugin's finalizer. Pure.

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
    fn only_a_plugin_that_names_the_field_looks_at_it_and_only_another_manager_counts() {
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
