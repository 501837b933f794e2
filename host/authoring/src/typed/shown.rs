//! What the first version of a typed plugin shows of a spec: an entry of a ConfigMap for each of its first fields, the same in each language.
//! It writes no program.

use serde_json::{Map, Value};

use super::types::{Field, Type, Types};

/// As many fields are shown. Whoever wants more has seen how.
const MOST: usize = 12;

/// How a field becomes a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is.
    Value,
    /// The number of its entries.
    Count,
    /// The word [`SET`].
    Presence,
}

/// The text of a value that has no short one.
pub(crate) const SET: &str = "set";

/// The fields that are shown: those that are required before those that are not.
pub(crate) fn fields<'t>(types: &'t Types, root: &Type) -> Vec<(&'t Field, Form)> {
    let (required, optional): (Vec<_>, Vec<_>) = types
        .fields(root)
        .iter()
        .filter(|field| is_key(&field.name))
        .map(|field| (field, form(&field.of)))
        .partition(|(field, _)| field.is_required);
    let mut shown: Vec<_> = required.into_iter().chain(optional).take(MOST).collect();
    shown.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    shown
}

/// What the ConfigMap has in it for a spec.
pub(crate) fn data(fields: &[(&Field, Form)], spec: &Value) -> Map<String, Value> {
    let entry = |(field, form): &(&Field, Form)| {
        Some((field.name.clone(), Value::String(text(*form, spec.get(&field.name)?)?)))
    };
    fields.iter().filter_map(entry).collect()
}

fn form(of: &Type) -> Form {
    match of {
        Type::Text | Type::Whole { .. } | Type::Boolean | Type::IntOrText | Type::Choice(_) => Form::Value,
        Type::List(_) | Type::Map(_) => Form::Count,
        // Languages write other digits of a fraction.
        Type::Number | Type::Free | Type::Struct(_) => Form::Presence,
    }
}

fn text(form: Form, value: &Value) -> Option<String> {
    match (form, value) {
        (_, Value::Null) => None,
        (Form::Value, Value::String(text)) => Some(text.clone()),
        (Form::Value, value) => Some(value.to_string()),
        (Form::Count, Value::Array(elements)) => Some(elements.len().to_string()),
        (Form::Count, Value::Object(entries)) => Some(entries.len().to_string()),
        (Form::Count | Form::Presence, _) => Some(SET.to_owned()),
    }
}

/// Whether a ConfigMap can have an entry of that name.
fn is_key(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    !name.is_empty() && name.len() <= 253 && name != "." && name != ".." && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_a_value_a_number_of_entries_or_a_word() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "replicas": {"type": "integer"}, "on": {"type": "boolean"}, "ratio": {"type": "number"},
            "port": {"x-kubernetes-int-or-string": true}, "hosts": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}}, "any": {}, "gone": {"type": "string"},
            "$ref": {"type": "string"}, "none": {"type": "string", "nullable": true},
        }});
        let (types, root) = Types::of(&schema);
        let fields = fields(&types, &root);
        let spec = json!({
            "name": "a b", "replicas": 3, "on": false, "ratio": 0.1, "port": "80%", "hosts": ["a", "b"], "labels": {}, "any": [1],
            "$ref": "x", "none": null,
        });
        let expected = json!({
            "name": "a b", "replicas": "3", "on": "false", "ratio": "set", "port": "80%", "hosts": "2", "labels": "0", "any": "set",
        });
        assert_eq!(Value::Object(data(&fields, &spec)), expected);
    }

    #[test]
    fn what_is_required_comes_first_where_there_is_too_much() {
        let mut properties = Map::new();
        for number in 0..20 {
            properties.insert(format!("f{number:02}"), json!({"type": "string"}));
        }
        let (types, root) = Types::of(&json!({"type": "object", "required": ["f19"], "properties": properties}));
        let fields = fields(&types, &root);
        let names: Vec<_> = fields.iter().map(|(field, _)| &*field.name).collect();
        assert_eq!((names.len(), names.first(), names.last()), (MOST, Some(&"f00"), Some(&"f19")));
    }
}
