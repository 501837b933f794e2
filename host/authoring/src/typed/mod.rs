//! The spec of an existing CRD as types of a language, and a first version of a plugin that uses them: its ConfigMap shows what is in the spec.
//! It writes no file.

mod c;
mod go;
mod names;
mod python;
mod rust;
mod shown;
mod types;
mod typescript;

use serde_json::{Map, Value};

use self::{
    shown::Form,
    types::{Field, Struct, Type, Types},
};
use crate::{Definition, Language};

/// What the text of a spec is made of.
struct Source {
    types: Types,
    root: Type,
    /// What the first lines of the file say.
    origin: Vec<String>,
}

/// Writes a text about a spec.
type Writer = fn(&Source) -> String;

/// The texts about a spec that the files of a project have in them.
pub(crate) struct Typed {
    /// The types, a file of their own.
    pub(crate) spec: String,
    /// The statements that show the fields.
    pub(crate) shown: String,
    /// What the ConfigMap of the sample object has in it.
    pub(crate) data: Map<String, Value>,
}

/// What there is about the spec of a kind in a language. `sample` is the spec of the sample object.
pub(crate) fn typed(definition: &Definition, language: Language, sample: &Value) -> Typed {
    let source = Source::of(definition);
    let (spec, shown): (Writer, Writer) = match language {
        Language::Rust => (rust::spec, rust::shown),
        Language::Go => (go::spec, go::shown),
        Language::C => (c::spec, c::shown),
        Language::Python => (python::spec, python::shown),
        Language::TypeScript => (typescript::spec, typescript::shown),
    };
    let data = match source.root_struct() {
        Some(_) => shown::data(&source.shown(), sample),
        None => Map::from_iter([("spec".to_owned(), shown::SET.into())]),
    };
    Typed { spec: spec(&source), shown: shown(&source), data }
}

impl Source {
    fn of(definition: &Definition) -> Self {
        let (types, root) = Types::of(&definition.spec());
        let kind = &definition.kind;
        let origin = vec![
            format!(
                "What users say in the spec of a {}, as the schema of crd.yaml has it in version {}.",
                kind.kind, kind.version
            ),
            "Made by `pilothouse new --from-crd`, and yours from now on.".to_owned(),
        ];
        Self { types, root, origin }
    }

    /// The spec, where its schema names fields.
    fn root_struct(&self) -> Option<&Struct> {
        match self.root {
            Type::Struct(place) => self.types.structs.get(place),
            _ => None,
        }
    }

    fn shown(&self) -> Vec<(&Field, Form)> {
        shown::fields(&self.types, &self.root)
    }
}

/// Lines of words as comments; `begin` is what stands before each.
fn comment(begin: &str, doc: &[String]) -> String {
    doc.iter().map(|line| format!("{begin} {}\n", on_one_line(line))).collect()
}

/// A line of words of others, which may have a break in it after all.
fn on_one_line(line: &str) -> String {
    line.replace(['\r', '\n'], " ")
}

/// A text as a literal, which is the same in all languages but Rust.
pub(crate) fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
