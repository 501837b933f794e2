//! Parts of a CustomResourceDefinition, made from a plugin's API types. It runs when a CRD is written to a file and when that
//! file is checked; no plugin contains it.

mod rules;

pub use rules::{Rule, exactly_one_of, rules};

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What differs from one plugin's CRD to another's.
pub struct Definition<'a> {
    /// The API group.
    pub group: &'a str,
    /// The one version, served and stored.
    pub version: &'a str,
    /// The kind, in CamelCase. Its other names follow from it.
    pub kind: &'a str,
    /// Short names for `kubectl`, such as `po` for Pods.
    pub short_names: &'a [&'a str],
    /// JSONPath of the spec field with the number of replicas, which `kubectl scale` changes; none for a kind that has none.
    pub spec_replicas_path: Option<&'a str>,
    /// What `kubectl get` prints beside the name.
    pub columns: &'a [Column<'a>],
    /// What `kubectl get -o wide` prints besides.
    pub wide_columns: &'a [Column<'a>],
    /// The schema of the whole object.
    pub schema: Value,
}

/// A column that `kubectl get` prints.
pub struct Column<'a> {
    /// The heading.
    pub name: &'a str,
    /// The OpenAPI type of the value: `string`, `integer`, `date` and so on.
    pub value_type: &'a str,
    /// JSONPath of the value within the object.
    pub json_path: &'a str,
}

/// A CRD with the subresource `status`, and with `scale` where it names the field with the number of replicas: its status must
/// then have the fields `replicas` and `selector`.
pub fn definition(of: Definition<'_>) -> Value {
    let singular = of.kind.to_lowercase();
    let plural = format!("{singular}s");
    let column =
        |column: &Column<'_>| json!({ "name": column.name, "type": column.value_type, "jsonPath": column.json_path });
    let wide_column = |it: &Column<'_>| {
        let mut column = column(it);
        column["priority"] = json!(1);
        column
    };
    let columns: Value = of.columns.iter().map(column).chain(of.wide_columns.iter().map(wide_column)).collect();
    let mut subresources = json!({ "status": {} });
    if let Some(path) = of.spec_replicas_path {
        subresources["scale"] = json!({
            "specReplicasPath": path,
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        });
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{}", of.group) },
        "spec": {
            "group": of.group,
            "scope": "Namespaced",
            "names": {
                "kind": of.kind,
                "listKind": format!("{}List", of.kind),
                "plural": plural,
                "singular": singular,
                "shortNames": of.short_names,
            },
            "versions": [{
                "name": of.version,
                "served": true,
                "storage": true,
                "subresources": subresources,
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": of.schema },
            }],
        },
    })
}

/// The text of a CRD's file: a header of comment lines, then the CRD as YAML.
///
/// # Errors
/// The CRD cannot be written as YAML.
pub fn yaml(header: &str, crd: &impl Serialize) -> Result<String, crate::Error> {
    let text = serde_saphyr::to_string(crd);
    let text = text.map_err(|error| crate::Error::Write { what: "the CRD", reason: error.to_string() })?;
    Ok(format!("{header}{text}"))
}

/// A type's schema in the form that the API server accepts: no references, no titles, descriptions on one line, integers in
/// the formats that the API server knows.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(structural).transform(&mut schema);
    schema.to_value()
}

/// The schema of a plugin's configuration as the text of a file, for `config_schema` of [`crate::plugin!`]. A test of the plugin's
/// holds the file to the type.
pub fn config_schema<T: JsonSchema>() -> String {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    format!("{:#}\n", settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// The schema of a plugin's status with the fields that the host adds. Nothing is required, since the host reports before the
/// plugin does. `conditions` is the description of the field of that name.
pub fn status_of<T: JsonSchema>(conditions: &str) -> Value {
    let mut schema = schema_of::<T>();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("required");
    }
    schema["properties"]["observedGeneration"] = json!({
        "description": "The generation of the spec that this status is about.",
        "type": "integer",
        "format": "int64",
    });
    schema["properties"]["conditions"] = json!({
        "description": conditions,
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": condition(),
    });
    schema
}

/// A schema without the defaults and nulls of the Rust types. The API server would store defaults in the object; without them a
/// spec stays as the user wrote it, and the plugin decides what an absent field means.
pub fn without_defaults(schema: Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| !matches!(name.as_str(), "default" | "nullable"));
            Value::Object(kept.map(|(name, value)| (name, without_defaults(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_defaults).collect()),
        other => other,
    }
}

fn condition() -> Value {
    json!({
        "description": "One aspect of how the object is.",
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": { "description": "The aspect, in CamelCase.", "type": "string", "maxLength": 316 },
            "status": {
                "description": "Whether it holds.",
                "type": "string",
                "enum": ["True", "False", "Unknown"],
            },
            "reason": {
                "description": "One CamelCase word for programs.",
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
            },
            "message": {
                "description": "A sentence for people.",
                "type": "string",
                "maxLength": 32768,
            },
            "lastTransitionTime": {
                "description": "When the status last changed.",
                "type": "string",
                "format": "date-time",
            },
            "observedGeneration": {
                "description": "The generation of the spec that this condition is about.",
                "type": "integer",
                "format": "int64",
                "minimum": 0,
            },
        },
    })
}

fn structural(schema: &mut Schema) {
    schema.remove("title");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if schema.get("format").is_some_and(|format| format == "uint32") {
        schema.insert("format".to_owned(), json!("int32"));
    }
    without_null(schema);
    plain_enum(schema);
}

/// Turns an enum whose words are documented one by one into a plain list of words: a structural schema has no alternatives.
fn plain_enum(schema: &mut Schema) {
    let Some(alternatives) = schema.get("oneOf").and_then(Value::as_array) else { return };
    let word = |alternative: &Value| alternative.pointer("/enum/0").or_else(|| alternative.get("const")).cloned();
    let Some(words) = alternatives.iter().map(word).collect::<Option<Vec<_>>>() else { return };
    schema.remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), Value::Array(words));
}

/// Drops the alternative `null` of an optional enum, which a structural schema cannot hold. The field may still be left out.
fn without_null(schema: &mut Schema) {
    let is_null = |alternative: &Value| alternative.pointer("/enum/0").is_some_and(Value::is_null);
    let Some(alternatives) = schema.get("anyOf").and_then(Value::as_array) else { return };
    let [Value::Object(word), null] = &alternatives[..] else { return };
    if is_null(null) {
        let own = schema.get("description").cloned();
        let mut fields = word.clone();
        fields.extend(own.map(|description| ("description".to_owned(), description)));
        *schema = Schema::from(fields);
    }
}

#[cfg(test)]
mod tests {
    use super::{schema_of, status_of};
    use schemars::JsonSchema;
    use serde_json::json;

    /// How loud.
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is asked for")]
    enum Volume {
        /// One.
        Low,
        /// Another.
        High,
    }

    /// A sound,
    /// in two lines.
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is asked for")]
    struct Sound {
        /// Said.
        volume: Volume,
        /// Maybe said.
        other: Option<Volume>,
        count: u32,
    }

    #[test]
    fn schemas_are_structural() {
        let volume = |about| json!({ "description": about, "type": "string", "enum": ["Low", "High"] });
        let expected = json!({
            "description": "A sound, in two lines.",
            "type": "object",
            "required": ["volume", "count"],
            "properties": {
                "volume": volume("Said."),
                "other": volume("Maybe said."),
                "count": { "type": "integer", "format": "int32", "minimum": 0 },
            },
        });
        assert_eq!(schema_of::<Sound>(), expected);
    }

    #[test]
    fn a_status_has_the_fields_of_the_host_and_requires_none() {
        let status = status_of::<Sound>("All of them.");
        assert_eq!(status.get("required"), None);
        assert_eq!(status["properties"]["conditions"]["description"], "All of them.");
        assert_eq!(status["properties"]["observedGeneration"]["type"], "integer");
    }
}
