//! The kinds that a CustomResourceDefinition makes the server serve, and what is special about their objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Kind, Names, Reset, Scale, Strategy,
    edit::{at, copy_field},
    fields, validation,
};
use crate::api_server::{
    causes::Causes,
    names::NameRule,
    schema::{Node, SchemaError},
};

/// The reference to the schema of `metadata`.
const METADATA_REFERENCE: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// What is special about custom resources.
pub(super) static STRATEGY: Strategy = Strategy {
    names: NameRule::Subdomain,
    unconditional_update: false,
    knows_finalizers: false,
    has_generation: true,
    prepare_create: |object, kind, _| {
        if kind.has_status
            && let Some(object) = object.as_object_mut()
        {
            object.remove("status");
        }
        object["metadata"]["generation"] = 1.into();
    },
    prepare_update: |new, old, kind, _| {
        if kind.has_status {
            copy_field(old, new, "status");
        }
        let without_metadata = |object: &Value| {
            let mut copy = object.as_object().cloned().unwrap_or_default();
            copy.remove("metadata");
            copy
        };
        if without_metadata(new) != without_metadata(old) {
            let generation = at(old, &["metadata", "generation"]).as_i64().unwrap_or_default();
            new["metadata"]["generation"] = (generation + 1).into();
        }
    },
    validate: |object, kind, causes| check_scale(object, kind, causes),
    validate_new: |object, kind, causes| validation::check_new(object, &kind.schema, causes),
    validate_update: |new, old, kind, causes| validation::check_change(new, old, &kind.schema, causes),
    validate_status: |new, old, kind, causes| validation::check_status(new, old, &kind.schema, causes),
    ..Strategy::USUAL
};

/// Checks the number that the scale subresource shows.
fn check_scale(object: &Value, kind: &Kind, causes: &mut Causes) {
    let Some(scale) = &kind.scale else { return };
    for path in [&scale.spec, &scale.status] {
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let number = at(object, &path);
        if !number.is_null() && number.as_i64().is_none_or(|number| number < 0) {
            causes.invalid(format!(".{}", path.join(".")), at(object, &path), "should be a non-negative integer");
        }
    }
}

/// The kinds of a definition, one for each version that is served.
///
/// # Errors
/// [`SchemaError`] if this server cannot use its schema.
pub(super) fn kinds(definition: &Value) -> Result<Vec<Arc<Kind>>, SchemaError> {
    let versions = at(definition, &["spec", "versions"]).as_array().into_iter().flatten();
    versions
        .filter(|version| version["served"] == true)
        .map(|version| kind(definition, version).map(Arc::new))
        .collect()
}

fn kind(definition: &Value, version: &Value) -> Result<Kind, SchemaError> {
    let spec = &definition["spec"];
    let text = |value: &Value| -> Arc<str> { value.as_str().unwrap_or_default().into() };
    let name = |name: &str| text(at(spec, &["names", name]));
    let (group, number) = (text(&spec["group"]), text(&version["name"]));
    let has_status = at(version, &["subresources", "status"]).is_object();
    let (main, status) =
        if has_status { (json!({"f:status": {}}), json!({"f:spec": {}})) } else { (json!({}), json!({})) };
    let scale = at(version, &["subresources", "scale"]);
    let path = |name: &str| -> Vec<String> {
        let path = scale[name].as_str().unwrap_or_default();
        path.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect()
    };
    let short_names = at(spec, &["names", "shortNames"]).as_array().into_iter().flatten().map(text).collect();
    Ok(Kind {
        api_version: format!("{group}/{number}").into(),
        resource: format!("{}.{group}", name("plural")).into(),
        names: Names {
            group,
            version: number,
            kind: name("kind"),
            list_kind: name("listKind"),
            plural: name("plural"),
            singular: name("singular"),
            short_names,
        },
        namespaced: spec["scope"] == "Namespaced",
        schema: Node::from_custom(at(version, &["schema", "openAPIV3Schema"]))?,
        has_status,
        scale: scale.is_object().then(|| Scale {
            spec: path("specReplicasPath"),
            status: path("statusReplicasPath"),
            selector: path("labelSelectorPath"),
        }),
        strategy: &STRATEGY,
        reset: Reset { main: fields(&main), status: fields(&status) },
        empty: json!({}),
        is_stored: version["storage"] == true,
        published: published(definition, version),
    })
}

/// The schema as the server publishes it.
fn published(definition: &Value, version: &Value) -> Value {
    let spec = &definition["spec"];
    let mut schema = at(version, &["schema", "openAPIV3Schema"]).clone();
    if let Some(properties) = super::edit::object_at(&mut schema, &["properties"]) {
        properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
        properties.insert("kind".to_owned(), json!({"type": "string"}));
        properties.insert("metadata".to_owned(), json!({"allOf": [{"$ref": METADATA_REFERENCE}]}));
    }
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": spec["group"], "kind": at(spec, &["names", "kind"]), "version": version["name"]}]);
    schema
}
