//! A spec in Rust: structs and enums with serde, and the lines that show its fields. It writes no file.

use std::fmt::Write;

use serde_json::Value;

use super::{
    Source,
    names::{pascal, snake, unique},
    on_one_line, quoted,
    shown::{Form, SET},
    types::{Choice, Field, Struct, Type, Types},
};

/// Words that cannot be names, not even with `r#`.
const NEVER: &[&str] = &["self", "super", "crate", "_"];

/// Words that can be names with `r#`.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

const INT_OR_STRING: &str = r#"
/// A whole number or a text.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// A whole number.
    Int(i64),
    /// A text.
    String(String),
}

impl std::fmt::Display for IntOrString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::String(text) => text.fmt(f),
        }
    }
}
"#;

/// The types of a spec.
pub(super) fn spec(source: &Source) -> String {
    let types = &source.types;
    let mut text = String::new();
    if source.root_struct().is_none() {
        text += "\n/// What the user asks for: the schema names no fields of it.\npub type Spec = Value;\n";
    }
    types.structs.iter().for_each(|of| text += &structure(types, of));
    types.choices.iter().for_each(|of| text += &choice(of));
    if text.contains("IntOrString") {
        text += INT_OR_STRING;
    }
    let mut head = super::comment("//!", &source.origin);
    // Descriptions are of others, and not written for rustdoc.
    head += "\n#![allow(rustdoc::all, clippy::doc_lazy_continuation, clippy::large_enum_variant)]\n\n";
    if text.contains("BTreeMap<") {
        head += "use std::collections::BTreeMap;\n\n";
    }
    if text.contains("derive(") {
        head += "use serde::{Deserialize, Serialize};\n";
    }
    if text.contains("Value") {
        head += "use serde_json::Value;\n";
    }
    head + &text
}

/// The statements that put the fields into `data`, with `spec` in scope.
pub(super) fn shown(source: &Source) -> String {
    if source.root_struct().is_none() {
        return format!(
            "    if !spec.is_null() {{\n        data.insert(\"spec\".to_owned(), \"{SET}\".to_owned());\n    }}\n"
        );
    }
    let mut text = String::new();
    let fields = source.root_struct().map(|of| identifiers(&of.fields)).unwrap_or_default();
    for (field, form) in source.shown() {
        let Some((_, identifier)) = fields.iter().find(|(name, _)| *name == field.name) else { continue };
        let key = quoted(&field.name);
        let written = match form {
            Form::Value => "value.to_string()".to_owned(),
            Form::Count => "value.len().to_string()".to_owned(),
            Form::Presence => format!("\"{SET}\".to_owned()"),
        };
        let of = match form {
            Form::Presence => "_",
            Form::Value | Form::Count => "value",
        };
        text += &match (is_option(&source.types, field), form) {
            (true, _) => format!(
                "    if let Some({of}) = &spec.{identifier} {{\n        data.insert({key}.to_owned(), {written});\n    }}\n"
            ),
            (false, _) => {
                format!(
                    "    data.insert({key}.to_owned(), {});\n",
                    written.replace("value", &format!("spec.{identifier}"))
                )
            }
        };
    }
    text
}

fn structure(types: &Types, Struct { name: own, doc, fields, is_open }: &Struct) -> String {
    let mut text = format!("\n{}#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]\n", comment("", doc, own));
    text += &format!("#[serde(rename_all = \"camelCase\")]\npub struct {own} {{\n");
    let mut defaults = String::new();
    let identifiers = identifiers(fields);
    for (field, (_, identifier)) in fields.iter().zip(&identifiers) {
        let Field { name: json, doc, of, .. } = field;
        let plain = name(types, of);
        let mut attributes = Vec::new();
        if camel(identifier.trim_start_matches("r#")) != *json {
            attributes.push(format!("rename = {}", quoted(json)));
        }
        let mut doc = doc.clone();
        let is_option = is_option(types, field);
        match default_value(types, field) {
            Some(value) => {
                let function = format!("default_{}_{}", snake(own), identifier.trim_start_matches("r#"));
                attributes.push(format!("default = \"{function}\""));
                defaults += &format!("\nfn {function}() -> {plain} {{\n    {value}\n}}\n");
            }
            None if is_option => {
                attributes.push("default, skip_serializing_if = \"Option::is_none\"".to_owned());
                doc = field.doc_with_default();
            }
            None => {}
        }
        text += &comment("    ", &doc, json);
        if !attributes.is_empty() {
            text += &format!("    #[serde({})]\n", attributes.join(", "));
        }
        text += &match is_option {
            true => format!("    pub {identifier}: Option<{plain}>,\n"),
            false => format!("    pub {identifier}: {plain},\n"),
        };
    }
    if *is_open {
        let rest = unique("others", |taken| identifiers.iter().any(|(_, known)| known == taken));
        text += &format!(
            "    /// Fields that the schema does not name.\n    #[serde(flatten)]\n    pub {rest}: BTreeMap<String, Value>,\n"
        );
    }
    text + "}\n" + &defaults
}

fn choice(Choice { name, doc, values }: &Choice) -> String {
    let mut text =
        format!("\n{}#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]\n", comment("", doc, name));
    text += &format!("pub enum {name} {{\n");
    let mut arms = String::new();
    for (variant, value) in variants(values) {
        let quoted = quoted(value);
        text +=
            &format!("    /// {}\n", if value.is_empty() { "Empty.".to_owned() } else { plain(&format!("`{value}`")) });
        if variant != *value {
            text += &format!("    #[serde(rename = {quoted})]\n");
        }
        text += &format!("    {variant},\n");
        arms += &format!("            Self::{variant} => {quoted},\n");
    }
    text += &format!(
        "}}\n\nimpl std::fmt::Display for {name} {{\n    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {{\n        \
         f.write_str(match self {{\n{arms}        }})\n    }}\n}}\n"
    );
    text
}

fn variants(values: &[String]) -> Vec<(String, &String)> {
    let mut variants: Vec<(String, &String)> = Vec::new();
    for value in values {
        let name = if value.is_empty() { "Empty".to_owned() } else { pascal(value) };
        let name = if name == "Self" { "Self_".to_owned() } else { name };
        let name = unique(&name, |name| variants.iter().any(|(taken, _)| taken == name));
        variants.push((name, value));
    }
    variants
}

/// The names of fields in JSON and in Rust.
fn identifiers(fields: &[Field]) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for field in fields {
        let name = snake(&field.name);
        let name = match &*name {
            never if NEVER.contains(&never) => format!("{never}_"),
            word if KEYWORDS.contains(&word) => format!("r#{word}"),
            _ => name,
        };
        let name = unique(&name, |name| found.iter().any(|(_, taken)| taken == name));
        found.push((&field.name, name));
    }
    found
}

/// What serde makes of a field in snake case with `rename_all = "camelCase"`.
fn camel(identifier: &str) -> String {
    let mut text = String::new();
    let mut begins = true;
    for letter in identifier.chars() {
        match letter {
            '_' => begins = true,
            letter if begins => {
                text.push(letter.to_ascii_uppercase());
                begins = false;
            }
            letter => text.push(letter),
        }
    }
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn is_option(types: &Types, field: &Field) -> bool {
    !field.is_required && default_value(types, field).is_none()
}

/// A default as an expression, where that is a short one.
fn default_value(types: &Types, field: &Field) -> Option<String> {
    let default = field.default.as_ref()?;
    match (&field.of, default) {
        (Type::Text, Value::String(text)) => Some(format!("{}.to_owned()", string(text))),
        (Type::Boolean, Value::Bool(it)) => Some(it.to_string()),
        (Type::Whole { is_short: true }, Value::Number(number)) => {
            i32::try_from(number.as_i64()?).ok().map(|it| it.to_string())
        }
        (Type::Whole { is_short: false }, Value::Number(number)) => number.as_i64().map(|it| it.to_string()),
        (Type::Choice(place), Value::String(text)) => {
            let choice = types.choices.get(*place)?;
            let (variant, _) = variants(&choice.values).into_iter().find(|(_, value)| *value == text)?;
            Some(format!("{}::{variant}", choice.name))
        }
        (Type::IntOrText, Value::Number(number)) => number.as_i64().map(|it| format!("IntOrString::Int({it})")),
        (Type::IntOrText, Value::String(text)) => Some(format!("IntOrString::String({}.to_owned())", string(text))),
        _ => None,
    }
}

/// A text as a literal.
fn string(text: &str) -> String {
    format!("{text:?}")
}

fn name(types: &Types, of: &Type) -> String {
    match of {
        Type::Text => "String".to_owned(),
        Type::Whole { is_short: true } => "i32".to_owned(),
        Type::Whole { is_short: false } => "i64".to_owned(),
        Type::Number => "f64".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::IntOrText => "IntOrString".to_owned(),
        Type::Free => "Value".to_owned(),
        Type::List(of) => format!("Vec<{}>", name(types, of)),
        Type::Map(of) => format!("BTreeMap<String, {}>", name(types, of)),
        Type::Struct(place) => types.struct_name(*place),
        Type::Choice(place) => types.choice_name(*place),
    }
}

/// A comment; without any words, the name in JSON.
fn comment(indent: &str, doc: &[String], name: &str) -> String {
    let mut text = String::new();
    let own = [format!("`{name}`")];
    for line in if doc.is_empty() { &own } else { doc } {
        // Writing to a text does not fail.
        writeln!(text, "{indent}/// {}", plain(line)).unwrap_or_default();
    }
    text
}

/// Without what would begin a block of code, which rustdoc would compile.
fn plain(line: &str) -> String {
    on_one_line(&line.replace("```", "'''"))
}
