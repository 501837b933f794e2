//! A project for the kind of an existing CRD: what its files say of that kind, its spec and its sample object. It writes no file.

use serde_json::{Value, json};

use crate::{
    Definition, Language,
    sample::{self, MARKER, Sample},
    typed::{Typed, quoted, typed},
    yaml,
};

/// The namespace of the children of an object that has none itself.
const NAMESPACE: &str = "default";

/// Values for the names in templates.
pub(crate) type Values = Vec<(&'static str, String)>;

/// The kind of a CRD, in a language.
pub(crate) struct Foreign<'d> {
    definition: &'d Definition,
    language: Language,
    sample: Sample,
    typed: Typed,
}

impl<'d> Foreign<'d> {
    pub(crate) fn new(definition: &'d Definition, language: Language) -> Self {
        let sample = sample::of_spec(&definition.spec());
        let typed = typed(definition, language, &sample.value);
        Self { definition, language, sample, typed }
    }

    /// The file with the types of the spec, by its path and its text.
    pub(crate) fn spec_file(&self) -> (&'static str, String) {
        let path = match self.language {
            Language::Rust => "src/spec.rs",
            Language::Go => "spec.go",
            Language::C => "spec.h",
            Language::Python => "spec.py",
            Language::TypeScript => "spec.ts",
        };
        (path, self.typed.spec.clone())
    }

    /// The CRD as it is, and an object of its kind.
    pub(crate) fn objects(&self) -> Vec<(&'static str, String)> {
        vec![("crd.yaml", self.definition.text.clone()), ("object.yaml", self.object_text())]
    }

    /// What is to be done by hand.
    pub(crate) fn notes(&self) -> Vec<String> {
        let kind = &self.definition.kind;
        let mut notes = self.unmet();
        if self.sample.has_rules {
            notes.push(format!(
                "the schema of {kind} has rules in CEL, which object.yaml may not pass: `kubectl apply --dry-run=server -f object.yaml` says"
            ));
        }
        notes
    }

    fn unmet(&self) -> Vec<String> {
        let unmet = self.sample.unmet.iter();
        unmet
            .map(|what| format!("object.yaml does not fit the schema yet; put a value of yours there: {what}"))
            .collect()
    }

    /// Values for the templates.
    pub(crate) fn values(&self, package: &str) -> Values {
        let (file, _) = self.spec_file();
        let object = self.object().to_string();
        vec![
            ("shown", self.typed.shown.clone()),
            ("data", self.data_text()),
            ("namespace", self.namespace()),
            ("object.literal", quoted(&object)),
            ("imports", self.imports(package)),
            ("becomes", "a ConfigMap that shows its spec".to_owned()),
            ("children", "configmaps".to_owned()),
            ("specFile", format!("the types of its spec in `{file}`, ")),
            ("dependencies", "serde_json = \"1\"\n".to_owned()),
        ]
    }

    fn object(&self) -> Value {
        let kind = &self.definition.kind;
        let mut object = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": "first"}, "spec": self.sample.value,
        });
        if self.definition.is_namespaced {
            object["metadata"]["namespace"] = NAMESPACE.into();
        }
        object
    }

    fn object_text(&self) -> String {
        let mut text: String = self.unmet().iter().map(|what| format!("# {}\n", what.replace('\n', " "))).collect();
        let object = yaml::print(&self.object());
        text += &object.replace(&format!("{MARKER}\n"), &format!("{MARKER} # nothing is known that fits here\n"));
        text
    }

    fn data_text(&self) -> String {
        let entries = self.typed.data.iter();
        entries.map(|(name, value)| format!("      {}: {value}\n", quoted(name))).collect()
    }

    /// Where the child of an object without a namespace is, as another field of its metadata.
    fn namespace(&self) -> String {
        if self.definition.is_namespaced {
            return String::new();
        }
        match self.language {
            Language::TypeScript => format!(", namespace: \"{NAMESPACE}\""),
            Language::C => format!(", \\\"namespace\\\": \\\"{NAMESPACE}\\\""),
            Language::Rust | Language::Go | Language::Python => format!(", \"namespace\": \"{NAMESPACE}\""),
        }
    }

    /// What a file in Go imports.
    fn imports(&self, package: &str) -> String {
        match self.typed.shown.contains("fmt.") {
            true => format!("(\n\t\"fmt\"\n\n\t\"{package}\"\n)"),
            false => format!("\"{package}\""),
        }
    }
}
