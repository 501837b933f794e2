//! CustomResourceDefinitions as objects. What they make the server serve is in `custom.rs`.

use serde_json::{Value, json};

use super::{
    Strategy,
    edit::{at, copy_field, default_to, elements_at, object_at, raise_generation},
};

/// The finalizer that stays until the objects of a deleted definition are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// CustomResourceDefinitions.
pub(super) static DEFINITION: Strategy = Strategy {
    has_generation: true,
    unconditional_update: false,
    knows_finalizers: false,
    default: |object| {
        let Some(spec) = object_at(object, &["spec"]) else { return };
        default_to(spec, "conversion", json!({"strategy": "None"}));
        default_to(spec, "scope", "Namespaced");
        let Some(names) = object_at(object, &["spec", "names"]) else { return };
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        default_to(names, "singular", kind.to_lowercase());
        default_to(names, "listKind", format!("{kind}List"));
    },
    prepare_create: |object, _, _| {
        object["metadata"]["generation"] = 1.into();
        let is_stored = |version: &&Value| version["storage"] == true;
        let versions = at(object, &["spec", "versions"]).as_array().into_iter().flatten();
        let stored: Vec<_> = versions.filter(is_stored).map(|version| version["name"].clone()).collect();
        object["status"] = json!({
            "conditions": null,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored,
        });
    },
    prepare_update: |new, old, _, _| {
        copy_field(old, new, "status");
        let known = at(new, &["status", "storedVersions"]).as_array().cloned().unwrap_or_default();
        let mut stored = known.clone();
        for version in elements_at(new, &["spec", "versions"]) {
            let name = version.get("name").cloned().unwrap_or_default();
            if version.get("storage").is_some_and(|storage| *storage == true) && !stored.contains(&name) {
                stored.push(name);
            }
        }
        if stored != known {
            new["status"]["storedVersions"] = stored.into();
        }
        raise_generation(new, old, &[&["spec"]]);
    },
    validate: |object, _, causes| {
        let spec = &object["spec"];
        let names = (at(spec, &["names", "plural"]), &spec["group"]);
        let name = format!("{}.{}", names.0.as_str().unwrap_or_default(), names.1.as_str().unwrap_or_default());
        if object["metadata"]["name"] != name.as_str() {
            causes.invalid("metadata.name", &object["metadata"]["name"], "must be spec.names.plural+\".\"+spec.group");
        }
        let versions = || at(spec, &["versions"]).as_array().into_iter().flatten();
        if versions().filter(|version| version["storage"] == true).count() != 1 {
            causes.invalid(
                "spec.versions",
                &spec["versions"],
                "must have exactly one version marked as storage version",
            );
        }
        for (index, version) in versions().enumerate() {
            if at(version, &["schema", "openAPIV3Schema"]).is_null() {
                causes.required(format!("spec.versions[{index}].schema.openAPIV3Schema"), "schemas are required");
            }
        }
    },
    validate_update: |new, old, _, causes| {
        for path in
            [["spec", "group"].as_slice(), &["spec", "scope"], &["spec", "names", "kind"], &["spec", "names", "plural"]]
        {
            if at(new, path) != at(old, path) {
                causes.invalid(path.join("."), at(new, path), "field is immutable");
            }
        }
        let names =
            |list: &Value, name: &str| list.as_array().into_iter().flatten().any(|version| version["name"] == name);
        let stored = at(new, &["status", "storedVersions"]).as_array().into_iter().flatten().enumerate();
        for (index, version) in stored {
            if !names(at(new, &["spec", "versions"]), version.as_str().unwrap_or_default()) {
                let field = format!("status.storedVersions[{index}]");
                causes.invalid(field, version, "must remain in spec.versions as long as objects may be stored in it");
            }
        }
    },
    ..Strategy::USUAL
};

/// The status of a definition whose kind is served.
pub(crate) fn established(object: &Value, now: &str) -> Value {
    let mut status = object["status"].clone();
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message});
    status["conditions"] = json!([
        condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]);
    status["acceptedNames"] = at(object, &["spec", "names"]).clone();
    status
}
