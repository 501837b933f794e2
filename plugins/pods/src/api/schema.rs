//! Schemas of fields that accept what Kubernetes accepts, where the schema of the Rust type would be wider or narrower.

use schemars::{Schema, SchemaGenerator, json_schema};

/// An object of any structure.
pub fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A quantity such as `500m`, `2Gi` or `4`.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "x-kubernetes-int-or-string": true,
        "pattern": "^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][0-9]+)?$",
        "maxLength": 32,
    })
}

/// Quantities by the name of a resource.
pub fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "maxProperties": 32, "additionalProperties": quantity(generator) })
}

/// Labels of a node. A value that no label can have would make every Pod invalid.
pub fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": {
            "type": "string",
            "maxLength": 63,
            "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
        },
    })
}

/// Short texts by name.
pub fn short_texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": { "type": "string", "maxLength": 253 },
    })
}

/// A number, or a share such as `25%`.
pub fn int_or_percent(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "x-kubernetes-int-or-string": true,
        "pattern": "^(0|[1-9][0-9]{0,5}|(0|[1-9][0-9]?|100)%)$",
        "maxLength": 6,
    })
}

/// A list of objects of any structure.
pub fn free_form_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}
