//! The types of a spec, as its schema says them, for every language: structs of fields, lists, maps, texts of a few, and values that are
//! free. It knows no language, and judges no object.

use std::collections::BTreeSet;

use serde_json::Value;

use super::names::{pascal, unique};
use crate::definition::is_free;

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    /// A text.
    Text,
    /// A whole number; with 32 bits where the schema says so, else with 64.
    Whole { is_short: bool },
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A whole number or a text.
    IntOrText,
    /// Any JSON.
    Free,
    /// A list.
    List(Box<Type>),
    /// A map with texts as its keys.
    Map(Box<Type>),
    /// One of [`Types::structs`], by its place.
    Struct(usize),
    /// One of [`Types::choices`], by its place.
    Choice(usize),
}

/// All types of a spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Types {
    /// Objects with fields that the schema names. Those of others come after them.
    pub(crate) structs: Vec<Struct>,
    /// Texts of which the schema names all.
    pub(crate) choices: Vec<Choice>,
    names: BTreeSet<String>,
}

/// An object with fields that the schema names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Struct {
    /// The name of the type.
    pub(crate) name: String,
    /// What it is, in lines.
    pub(crate) doc: Vec<String>,
    /// Its fields, in the order of their names.
    pub(crate) fields: Vec<Field>,
    /// Whether it has fields that the schema does not name, too.
    pub(crate) is_open: bool,
}

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// Its name in JSON.
    pub(crate) name: String,
    /// What it is, in lines.
    pub(crate) doc: Vec<String>,
    /// The type of its value.
    pub(crate) of: Type,
    /// Whether it is always there, and not null.
    pub(crate) is_required: bool,
    /// What the API server writes where it is missing.
    pub(crate) default: Option<Value>,
}

impl Field {
    /// What it is, and its default.
    pub(crate) fn doc_with_default(&self) -> Vec<String> {
        let default = self.default.as_ref().map(|default| format!("Default: {default}"));
        self.doc.iter().cloned().chain(default).collect()
    }
}

/// A text of which the schema names all.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// The name of the type.
    pub(crate) name: String,
    /// What it is, in lines.
    pub(crate) doc: Vec<String>,
    /// The texts.
    pub(crate) values: Vec<String>,
}

/// Names that mean something else in one of the languages.
const RESERVED: &[&str] = &[
    "Any",
    "Array",
    "BTreeMap",
    "Boolean",
    "Box",
    "Date",
    "Default",
    "Deserialize",
    "Dict",
    "Display",
    "Err",
    "Error",
    "Function",
    "IntOrString",
    "List",
    "Literal",
    "Map",
    "None",
    "NotRequired",
    "Number",
    "Object",
    "Ok",
    "Option",
    "Promise",
    "Record",
    "Request",
    "Response",
    "Result",
    "Self",
    "Serialize",
    "Set",
    "Some",
    "String",
    "Symbol",
    "True",
    "TypedDict",
    "Value",
    "Vec",
    "False",
];

/// How wide a line of a comment is.
const WIDTH: usize = 110;

impl Types {
    /// The types of a spec. The type of the spec itself is called `Spec` if it is a struct.
    pub(crate) fn of(spec: &Value) -> (Self, Type) {
        let mut types = Self { names: RESERVED.iter().map(|name| (*name).to_owned()).collect(), ..Self::default() };
        // A spec whose fields have no names is free as a whole.
        let root = match types.read(spec, &["Spec".to_owned()]) {
            root @ Type::Struct(_) => root,
            _ => Type::Free,
        };
        (types, root)
    }

    /// The fields of the spec; none where it is free.
    pub(crate) fn fields(&self, root: &Type) -> &[Field] {
        match root {
            Type::Struct(place) => self.structs.get(*place).map_or(&[], |found| &found.fields),
            _ => &[],
        }
    }

    /// The name of one of [`Types::structs`].
    pub(crate) fn struct_name(&self, place: usize) -> String {
        self.structs.get(place).map_or_else(String::new, |of| of.name.clone())
    }

    /// The name of one of [`Types::choices`].
    pub(crate) fn choice_name(&self, place: usize) -> String {
        self.choices.get(place).map_or_else(String::new, |of| of.name.clone())
    }

    fn read(&mut self, schema: &Value, path: &[String]) -> Type {
        if schema["x-kubernetes-int-or-string"] == true || schema["format"] == "int-or-string" {
            return Type::IntOrText;
        }
        match schema["type"].as_str() {
            Some("string") => self.text(schema, path),
            Some("integer") => Type::Whole { is_short: schema["format"] == "int32" },
            Some("number") => Type::Number,
            Some("boolean") => Type::Boolean,
            Some("array") => Type::List(Box::new(self.read(&schema["items"], path))),
            Some("object") => self.object(schema, path),
            _ => Type::Free,
        }
    }

    fn text(&mut self, schema: &Value, path: &[String]) -> Type {
        let texts = |values: &Vec<Value>| values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
        // A null among them says the same as `nullable`.
        let all = schema["enum"].as_array().map(|all| all.iter().filter(|value| !value.is_null()).cloned().collect());
        let Some(values) = all.as_ref().and_then(texts) else { return Type::Text };
        let name = self.name(path);
        self.choices.push(Choice { name, doc: doc(schema), values });
        Type::Choice(self.choices.len() - 1)
    }

    fn object(&mut self, schema: &Value, path: &[String]) -> Type {
        let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) else {
            return match &schema["additionalProperties"] {
                value @ Value::Object(_) => Type::Map(Box::new(self.read(value, path))),
                _ => Type::Free,
            };
        };
        if schema["x-kubernetes-embedded-resource"] == true {
            return Type::Free;
        }
        // Its place and its name come before those of what is in it.
        let (place, name) = (self.structs.len(), self.name(path));
        let is_open = is_free(schema);
        self.structs.push(Struct { name, doc: doc(schema), fields: Vec::new(), is_open });
        let required: BTreeSet<_> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut fields = Vec::new();
        for (name, value) in properties {
            let path = [path, std::slice::from_ref(name)].concat();
            let field = Field {
                name: name.clone(),
                doc: doc(value),
                of: self.read(value, &path),
                is_required: required.contains(name.as_str()) && value["nullable"] != true,
                default: value.get("default").filter(|default| !default.is_null()).cloned(),
            };
            fields.push(field);
        }
        if let Some(found) = self.structs.get_mut(place) {
            found.fields = fields;
        }
        Type::Struct(place)
    }

    /// A name of the way to it: `Spec` for the spec itself, and for what is in it without that word.
    fn name(&mut self, path: &[String]) -> String {
        let parts = if path.len() > 1 { path.get(1..).unwrap_or_default() } else { path };
        let name: String = parts.iter().map(|part| pascal(part)).collect();
        let name = if RESERVED.contains(&name.as_str()) { format!("{name}Field") } else { name };
        let name = unique(&name, |name| self.names.contains(name));
        self.names.insert(name.clone());
        name
    }
}

/// The first paragraph of a description, in lines.
fn doc(schema: &Value) -> Vec<String> {
    let description = schema["description"].as_str().unwrap_or_default();
    let lines = description.trim().lines().map(str::trim).take_while(|line| !line.is_empty());
    let mut wrapped: Vec<String> = Vec::new();
    for word in lines.flat_map(str::split_whitespace) {
        match wrapped.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => wrapped.push(word.to_owned()),
        }
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The type of a schema, in words.
    fn in_words(schema: &Value) -> String {
        let mut types = Types { names: RESERVED.iter().map(|name| (*name).to_owned()).collect(), ..Types::default() };
        let root = types.read(schema, &["Spec".to_owned()]);
        words(&types, &root)
    }

    #[test]
    fn a_spec_without_named_fields_is_free() {
        for schema in [
            json!({}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "string"}),
        ] {
            assert_eq!(Types::of(&schema).1, Type::Free);
        }
    }

    fn words(types: &Types, of: &Type) -> String {
        match of {
            Type::List(of) => format!("[{}]", words(types, of)),
            Type::Map(of) => format!("map of {}", words(types, of)),
            Type::Choice(place) => {
                format!("{}({})", types.choices[*place].name, types.choices[*place].values.join("|"))
            }
            Type::Struct(place) => {
                let Struct { name, fields, is_open, .. } = &types.structs[*place];
                let fields: Vec<_> = fields
                    .iter()
                    .map(|field| {
                        let optional = if field.is_required { "" } else { "?" };
                        format!("{}{optional}: {}", field.name, words(types, &field.of))
                    })
                    .collect();
                format!("{name}{{{}{}}}", fields.join(", "), if *is_open { ", .." } else { "" })
            }
            plain => format!("{plain:?}"),
        }
    }

    #[test]
    fn each_schema_has_its_type() {
        for (schema, expected) in [
            (json!({"type": "string", "format": "date-time"}), "Text"),
            (json!({"type": "string", "enum": ["A", "b", null]}), "Spec(A|b)"),
            (json!({"type": "integer", "format": "int32"}), "Whole { is_short: true }"),
            (json!({"type": "integer", "enum": [1, 2]}), "Whole { is_short: false }"),
            (json!({"type": "number"}), "Number"),
            (
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true}),
                "IntOrText",
            ),
            (json!({"x-kubernetes-preserve-unknown-fields": true}), "Free"),
            (json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), "Free"),
            (json!({"type": "object"}), "Free"),
            (json!({"type": "object", "additionalProperties": {"type": "boolean"}}), "map of Boolean"),
            (json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}), "[[Text]]"),
            (
                json!({"type": "object", "required": ["b", "c"], "properties": {
                    "a": {"type": "boolean"}, "b": {"type": "string"}, "c": {"type": "string", "nullable": true},
                }}),
                "Spec{a?: Boolean, b: Text, c?: Text}",
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"rules": {
                    "type": "array", "items": {"type": "object", "properties": {"type": {"type": "string", "enum": ["x"]}}},
                }}}),
                "Spec{rules?: [Rules{type?: RulesType(x)}], ..}",
            ),
            // Two names that would be one, and one that means something else.
            (
                json!({"type": "object", "properties": {
                    "a": {"type": "object", "properties": {"bC": {"type": "object", "properties": {"x": {}}}}},
                    "aB": {"type": "object", "properties": {"c": {"type": "object", "properties": {"y": {}}}}},
                    "option": {"type": "object", "properties": {"z": {}}},
                }}),
                "Spec{a?: A{bC?: ABC{x?: Free}}, aB?: AB{c?: ABC2{y?: Free}}, option?: OptionField{z?: Free}}",
            ),
        ] {
            assert_eq!(in_words(&schema), expected);
        }
    }

    #[test]
    fn a_comment_is_the_first_paragraph_in_short_lines() {
        let text = format!("One   two\n    three.\n{}\n\nAnother paragraph.", "word ".repeat(40));
        let lines = doc(&json!({"description": text}));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.len() <= WIDTH) && lines[0].starts_with("One two three. word"));
        assert_eq!(doc(&json!({})), Vec::<String>::new());
    }
}
