//! A spec in Go: structs with tags for JSON, and the lines that show its fields. It writes no file.

use super::{
    Source, comment,
    names::{pascal, unique},
    quoted,
    shown::{Form, SET},
    types::{Choice, Field, Struct, Type, Types},
};

const INT_OR_STRING: &str = r#"
// IntOrString is a whole number or a text.
type IntOrString struct {
	IsText bool
	Number int64
	Text   string
}

// UnmarshalJSON reads either.
func (v *IntOrString) UnmarshalJSON(text []byte) error {
	if v.IsText = len(text) > 0 && text[0] == '"'; v.IsText {
		return json.Unmarshal(text, &v.Text)
	}
	return json.Unmarshal(text, &v.Number)
}

// MarshalJSON writes what it is.
func (v IntOrString) MarshalJSON() ([]byte, error) {
	if v.IsText {
		return json.Marshal(v.Text)
	}
	return json.Marshal(v.Number)
}

// String is the number or the text.
func (v IntOrString) String() string {
	if v.IsText {
		return v.Text
	}
	return strconv.FormatInt(v.Number, 10)
}
"#;

/// The types of a spec.
pub(super) fn spec(source: &Source) -> String {
    let types = &source.types;
    let mut text = String::new();
    if source.root_struct().is_none() {
        text += "\n// Spec is what the user asks for: the schema names no fields of it.\ntype Spec = any\n";
    }
    types.structs.iter().for_each(|of| text += &structure(types, of));
    types.choices.iter().for_each(|of| text += &choice(types, of));
    let mut head = format!("{}package main\n", comment("//", &source.origin));
    if text.contains("IntOrString") {
        text += INT_OR_STRING;
        head += "\nimport (\n\t\"encoding/json\"\n\t\"strconv\"\n)\n";
    }
    head + &text
}

/// The statements that put the fields into `data`, with `spec` in scope.
pub(super) fn shown(source: &Source) -> String {
    if source.root_struct().is_none() {
        return format!("\tif spec != nil {{\n\t\tdata[\"spec\"] = \"{SET}\"\n\t}}\n");
    }
    let mut text = String::new();
    let fields = source.root_struct().map(|of| identifiers(&of.fields)).unwrap_or_default();
    for (field, form) in source.shown() {
        let Some((_, identifier)) = fields.iter().find(|(name, _)| *name == field.name) else { continue };
        let pointer = is_pointer(field);
        let at = if pointer { format!("*spec.{identifier}") } else { format!("spec.{identifier}") };
        let value = match (form, &field.of) {
            (Form::Value, Type::Text) => at,
            (Form::Value, Type::Choice(_)) => format!("string({at})"),
            (Form::Value, _) => format!("fmt.Sprint({at})"),
            (Form::Count, _) => format!("fmt.Sprint(len({at}))"),
            (Form::Presence, _) => format!("\"{SET}\""),
        };
        let key = quoted(&field.name);
        text += &match pointer || is_nil(field) {
            true => format!("\tif spec.{identifier} != nil {{\n\t\tdata[{key}] = {value}\n\t}}\n"),
            false => format!("\tdata[{key}] = {value}\n"),
        };
    }
    text
}

fn structure(types: &Types, Struct { name: own, doc, fields, is_open }: &Struct) -> String {
    let mut text = format!("\n{}type {own} struct {{\n", about(own, doc));
    for (field, (_, identifier)) in fields.iter().zip(identifiers(fields)) {
        let Field { name: json, of, is_required, .. } = field;
        text += &comment("\t//", &field.doc_with_default());
        let (pointer, omitted) =
            (if is_pointer(field) { "*" } else { "" }, if *is_required { "" } else { ",omitempty" });
        text += &format!("\t{identifier} {pointer}{} `json:\"{json}{omitted}\"`\n", name(types, of));
    }
    if *is_open {
        text += "\t// Fields that the schema does not name are not read; a type of json.RawMessage or map[string]any has them.\n";
    }
    text + "}\n"
}

fn choice(types: &Types, Choice { name, doc, values }: &Choice) -> String {
    let mut text = format!("\n{}type {name} string\n\n// The values of {name}.\nconst (\n", about(name, doc));
    let mut taken: Vec<String> = Vec::new();
    for value in values {
        let variant = if value.is_empty() { "Empty".to_owned() } else { pascal(value) };
        let is_taken = |candidate: &str| {
            taken.iter().any(|known| known == candidate)
                || types.structs.iter().any(|of| of.name == candidate)
                || types.choices.iter().any(|of| of.name == candidate)
        };
        let constant = unique(&format!("{name}{variant}"), is_taken);
        text += &format!("\t{constant} {name} = {}\n", quoted(value));
        taken.push(constant);
    }
    text + ")\n"
}

fn identifiers(fields: &[Field]) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for field in fields {
        let name = unique(&pascal(&field.name), |name| found.iter().any(|(_, taken)| taken == name));
        found.push((&field.name, name));
    }
    found
}

/// Whether nil says that a value is missing, without a pointer.
fn is_nil(field: &Field) -> bool {
    matches!(field.of, Type::List(_) | Type::Map(_) | Type::Free)
}

fn is_pointer(field: &Field) -> bool {
    !field.is_required && !is_nil(field)
}

fn name(types: &Types, of: &Type) -> String {
    match of {
        Type::Text => "string".to_owned(),
        Type::Whole { is_short: true } => "int32".to_owned(),
        Type::Whole { is_short: false } => "int64".to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::IntOrText => "IntOrString".to_owned(),
        Type::Free => "any".to_owned(),
        Type::List(of) => format!("[]{}", name(types, of)),
        Type::Map(of) => format!("map[string]{}", name(types, of)),
        Type::Struct(place) => types.struct_name(*place),
        Type::Choice(place) => types.choice_name(*place),
    }
}

/// A comment about a type; without any words, one that says its name.
fn about(name: &str, doc: &[String]) -> String {
    let own = [format!("{name} is a part of a spec.")];
    comment("//", if doc.is_empty() { &own } else { doc })
}
