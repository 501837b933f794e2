//! A spec in Python: `TypedDict`s, and the lines that show its fields. It writes no file.

use super::{
    Source, comment, quoted,
    shown::{Form, SET},
    types::{Struct, Type, Types},
};

/// Words that cannot be names.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The types of a spec.
pub(super) fn spec(source: &Source) -> String {
    let types = &source.types;
    let origin = source.origin.iter().map(|line| line.replace('\\', "\\\\")).collect::<Vec<_>>().join("\n");
    let mut text = format!(
        "\"\"\"{origin}\"\"\"\n\nfrom __future__ import annotations\n\nfrom typing import Any, Literal, NotRequired, TypedDict, Union\n"
    );
    for choice in &types.choices {
        let values: Vec<_> = choice.values.iter().map(|value| quoted(value)).collect();
        text += &format!("\n{}{} = Literal[{}]\n", comment("#", &choice.doc), choice.name, values.join(", "));
    }
    if source.root_struct().is_none() {
        text += "\n# What the user asks for: the schema names no fields of it.\nSpec = Any\n";
    }
    types.structs.iter().for_each(|of| text += &dictionary(types, of));
    text
}

fn dictionary(types: &Types, of: &Struct) -> String {
    let open = if of.is_open { "# It has fields that the schema does not name, too.\n" } else { "" };
    let typed = |field: &super::types::Field| {
        let plain = name(types, &field.of);
        if field.is_required { plain } else { format!("NotRequired[{plain}]") }
    };
    if of.fields.iter().all(|field| is_identifier(&field.name)) {
        let mut text = format!("\n\n{}{open}class {}(TypedDict):\n", comment("#", &of.doc), of.name);
        for field in &of.fields {
            text += &format!("{}    {}: {}\n", comment("    #", &field.doc_with_default()), field.name, typed(field));
        }
        return text;
    }
    // Names that are words of the language, or that no variable can have. Types may come later in the file, so they are texts.
    let mut text = format!("\n\n{}{open}{} = TypedDict(\"{}\", {{\n", comment("#", &of.doc), of.name, of.name);
    for field in &of.fields {
        let of = typed(field);
        // Only the type in it may be a text.
        let of = match of.strip_prefix("NotRequired[").and_then(|of| of.strip_suffix(']')) {
            Some(of) => format!("NotRequired[{}]", quoted(of)),
            None => quoted(&of),
        };
        text += &format!("{}    {}: {of},\n", comment("    #", &field.doc_with_default()), quoted(&field.name));
    }
    text + "})\n"
}

/// The statements that put the fields into `data`, with `spec` in scope.
pub(super) fn shown(source: &Source) -> String {
    if source.root_struct().is_none() {
        return format!("    if spec is not None:\n        data[\"spec\"] = \"{SET}\"\n");
    }
    let mut text = String::new();
    for (field, form) in source.shown() {
        let key = quoted(&field.name);
        let value = match (form, &field.of) {
            (Form::Value, Type::Text | Type::Choice(_)) => format!("spec[{key}]"),
            (Form::Value, Type::Boolean) => format!("str(spec[{key}]).lower()"),
            (Form::Value, _) => format!("str(spec[{key}])"),
            (Form::Count, _) => format!("str(len(spec[{key}]))"),
            (Form::Presence, _) => format!("\"{SET}\""),
        };
        text += &match field.is_required {
            true => format!("    data[{key}] = {value}\n"),
            false => format!("    if spec.get({key}) is not None:\n        data[{key}] = {value}\n"),
        };
    }
    text
}

fn name(types: &Types, of: &Type) -> String {
    match of {
        Type::Text => "str".to_owned(),
        Type::Whole { .. } => "int".to_owned(),
        Type::Number => "float".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::IntOrText => "Union[int, str]".to_owned(),
        Type::Free => "Any".to_owned(),
        Type::List(of) => format!("list[{}]", name(types, of)),
        Type::Map(of) => format!("dict[str, {}]", name(types, of)),
        Type::Struct(place) => types.struct_name(*place),
        Type::Choice(place) => types.choice_name(*place),
    }
}

fn is_identifier(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    // In a class, names that begin with two underscores become others.
    name.chars().all(fits)
        && name.starts_with(|first: char| !first.is_ascii_digit())
        && !name.starts_with("__")
        && !KEYWORDS.contains(&name)
}
