//! The fields of the spec that a composition gets: their names, their schema, their defaults, and the expressions that read them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Words that are no names of fields in CEL.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The fields, by the names on the way to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields(BTreeMap<Vec<String>, Field>);

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// What it is for.
    pub(crate) description: String,
    /// The value where an object does not say one; without it, the field is missing then.
    pub(crate) default: Option<Value>,
    /// A value that shows its type.
    pub(crate) like: Value,
}

impl Fields {
    /// Adds a field. One that is there stays.
    pub(crate) fn add(&mut self, name: Vec<String>, field: Field) {
        self.0.entry(name).or_insert(field);
    }

    /// Whether there is none of that name, and none in it or around it.
    pub(crate) fn is_free(&self, name: &[String]) -> bool {
        !self.0.keys().any(|known| known.starts_with(name) || name.starts_with(known))
    }

    /// The schema of the spec.
    pub(crate) fn schema(&self) -> Value {
        let mut root = json!({"type": "object", "default": {}, "properties": {}});
        for (name, field) in &self.0 {
            let mut schema = like(&field.like);
            if let Some(default) = &field.default {
                schema["default"] = default.clone();
            }
            if !field.description.is_empty() {
                schema["description"] = field.description.clone().into();
            }
            insert(&mut root, name, schema);
        }
        root
    }

    /// The spec with all defaults.
    pub(crate) fn defaults(&self) -> Value {
        self.spec(|_, field| field.default.clone())
    }

    /// A spec with a value for each field that has one.
    pub(crate) fn spec(&self, value: impl Fn(&[String], &Field) -> Option<Value>) -> Value {
        let mut spec = Value::Object(Map::new());
        for (name, field) in &self.0 {
            if let Some(value) = value(name, field) {
                set(&mut spec, name, value);
            }
        }
        spec
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The expression that reads a field. One that may be missing has an optional value.
pub(crate) fn read(name: &[String], may_be_missing: bool) -> String {
    let step = |step: &String| match (is_plain(step), may_be_missing) {
        (true, false) => format!(".{step}"),
        (true, true) => format!(".?{step}"),
        (false, false) => format!("[{}]", literal(step)),
        (false, true) => format!("[?{}]", literal(step)),
    };
    format!("schema.spec{}", name.iter().map(step).collect::<String>())
}

/// Whether a name can stand after a dot.
pub(crate) fn is_plain(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(fits)
        && !RESERVED.contains(&name)
}

/// A text as a literal of CEL.
pub(crate) fn literal(text: &str) -> String {
    let escaped =
        text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    format!("'{escaped}'")
}

/// The schema of values like one.
fn like(value: &Value) -> Value {
    match value {
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer", "format": "int64"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(elements) => {
            let mut schemas: Vec<_> = elements.iter().map(like).collect();
            schemas.dedup();
            let items = match schemas.pop() {
                Some(one) if schemas.is_empty() => one,
                _ => json!({"x-kubernetes-preserve-unknown-fields": true}),
            };
            json!({"type": "array", "items": items})
        }
        Value::Object(_) => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Value::Null => json!({"x-kubernetes-preserve-unknown-fields": true}),
    }
}

fn insert(root: &mut Value, name: &[String], schema: Value) {
    match name {
        [] => {}
        [last] => root["properties"][last] = schema,
        [first, rest @ ..] => {
            let inner = &mut root["properties"][first];
            if inner.is_null() {
                // With a default of its own, those in it count where it is missing.
                *inner = json!({"type": "object", "default": {}, "properties": {}});
            }
            insert(inner, rest, schema);
        }
    }
}

/// Sets a value in an object, with the objects on the way.
pub(crate) fn set(root: &mut Value, name: &[String], value: Value) {
    match name {
        [] => {}
        [last] => root[last] = value,
        [first, rest @ ..] => {
            if root[first].is_null() {
                root[first] = Value::Object(Map::new());
            }
            set(&mut root[first], rest, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Vec<String> {
        text.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn fields_have_a_schema_and_defaults() {
        let mut fields = Fields::default();
        let field = |default: Option<Value>, like: Value| Field { description: String::new(), default, like };
        fields.add(name("web/image"), field(Some(json!("nginx")), json!("nginx")));
        fields.add(name("replicas"), field(Some(json!(2)), json!(2)));
        fields.add(name("args"), field(None, json!(["a"])));
        assert!(
            !fields.is_free(&name("web")) && !fields.is_free(&name("replicas/a")) && fields.is_free(&name("web/port"))
        );
        assert_eq!(fields.defaults(), json!({"web": {"image": "nginx"}, "replicas": 2}));
        let expected = json!({"type": "object", "default": {}, "properties": {
            "args": {"type": "array", "items": {"type": "string"}},
            "replicas": {"type": "integer", "format": "int64", "default": 2},
            "web": {"type": "object", "default": {}, "properties": {"image": {"type": "string", "default": "nginx"}}},
        }});
        assert_eq!(fields.schema(), expected);
    }

    #[test]
    fn an_expression_reads_a_field() {
        assert_eq!(read(&name("web/image"), false), "schema.spec.web.image");
        assert_eq!(read(&name("web/image"), true), "schema.spec.?web.?image");
        assert_eq!(read(&name("my-key/in"), false), "schema.spec['my-key']['in']");
        assert_eq!(literal("it's\\"), "'it\\'s\\\\'");
    }
}
