//! A spec in TypeScript: interfaces, and the lines that show its fields. It writes no file.

use super::{
    Source, comment, quoted,
    shown::{Form, SET},
    types::{Struct, Type, Types},
};

/// The types of a spec.
pub(super) fn spec(source: &Source) -> String {
    let types = &source.types;
    let mut text = comment("//", &source.origin);
    if source.root_struct().is_none() {
        text += "\n// What the user asks for: the schema names no fields of it.\nexport type Spec = any;\n";
    }
    for choice in &types.choices {
        let values: Vec<_> = choice.values.iter().map(|value| quoted(value)).collect();
        text += &format!("\n{}export type {} = {};\n", comment("//", &choice.doc), choice.name, values.join(" | "));
    }
    types.structs.iter().for_each(|of| text += &interface(types, of));
    text
}

fn interface(types: &Types, of: &Struct) -> String {
    let mut text = format!("\n{}export interface {} {{\n", comment("//", &of.doc), of.name);
    for field in &of.fields {
        let optional = if field.is_required { "" } else { "?" };
        text += &format!(
            "{}  {}{optional}: {};\n",
            comment("  //", &field.doc_with_default()),
            key(&field.name),
            name(types, &field.of)
        );
    }
    if of.is_open {
        text += "  // Fields that the schema does not name.\n  [field: string]: unknown;\n";
    }
    text + "}\n"
}

/// The statements that put the fields into `data`, with `spec` in scope.
pub(super) fn shown(source: &Source) -> String {
    if source.root_struct().is_none() {
        return format!("  if (spec !== undefined) data.spec = \"{SET}\";\n");
    }
    let mut text = String::new();
    for (field, form) in source.shown() {
        let at = |object: &str| match is_identifier(&field.name) {
            true => format!("{object}.{}", field.name),
            false => format!("{object}[{}]", quoted(&field.name)),
        };
        let (from, to) = (at("spec"), at("data"));
        let value = match (form, &field.of) {
            (Form::Value, Type::Text | Type::Choice(_)) => from.clone(),
            (Form::Value, _) => format!("String({from})"),
            (Form::Count, Type::Map(_)) => format!("String(Object.keys({from}).length)"),
            (Form::Count, _) => format!("String({from}.length)"),
            (Form::Presence, _) => format!("\"{SET}\""),
        };
        text += &match field.is_required {
            true => format!("  {to} = {value};\n"),
            false => format!("  if ({from} !== undefined && {from} !== null) {to} = {value};\n"),
        };
    }
    text
}

fn name(types: &Types, of: &Type) -> String {
    match of {
        Type::Text => "string".to_owned(),
        Type::Whole { .. } | Type::Number => "number".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::IntOrText => "number | string".to_owned(),
        // What is free can be read field by field.
        Type::Free => "any".to_owned(),
        Type::List(of) => match name(types, of) {
            several if several.contains(' ') => format!("({several})[]"),
            one => format!("{one}[]"),
        },
        Type::Map(of) => format!("{{ [key: string]: {} }}", name(types, of)),
        Type::Struct(place) => types.struct_name(*place),
        Type::Choice(place) => types.choice_name(*place),
    }
}

fn key(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { quoted(name) }
}

/// Words of the language can be names of fields.
fn is_identifier(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_$".contains(letter);
    name.chars().all(fits) && name.starts_with(|first: char| !first.is_ascii_digit())
}
