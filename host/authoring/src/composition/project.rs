//! The files of a project without code. It decides nothing about what is in a composition.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    chart,
    draft::{Case, Draft},
    helm::{Chart, ChartError},
    manifests::{self, Manifests, ManifestsError},
    single, variants,
};
use crate::{
    CustomKind, NewError,
    project::write,
    template::{self, Template},
    yaml,
};

/// What the children of a kind without code are in its first version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A Deployment, as in the other languages.
    Template,
    /// Manifests in files and folders; where there are several, what differs becomes fields.
    Manifests(Vec<PathBuf>),
    /// A chart of Helm.
    Chart(PathBuf),
}

/// Why there is no composition.
#[derive(Debug, thiserror::Error)]
pub enum CompositionError {
    /// Manifests cannot be used.
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
    /// A chart cannot be used.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The files cannot be written.
    #[error(transparent)]
    New(#[from] NewError),
}

/// The project of a kind without code.
#[derive(Clone, Debug)]
pub struct Composition {
    name: String,
    kind: CustomKind,
    draft: Option<Draft>,
}

impl Composition {
    /// Reads what it is made of.
    ///
    /// # Errors
    /// [`CompositionError`] says what to do.
    pub fn new(name: String, kind: CustomKind, origin: &Origin) -> Result<Self, CompositionError> {
        let draft = match origin {
            Origin::Template => None,
            Origin::Manifests(paths) => Some(of_manifests(paths)?),
            Origin::Chart(path) => {
                let chart = Chart::open(path)?;
                let values = chart.values()?;
                Some(chart::draft(&chart, &values).map_err(|said| chart.refused(said))?)
            }
        };
        Ok(Self { name, kind, draft })
    }

    /// Writes the project into a folder that is not there yet. Gives the paths of its files in that folder, in their order.
    ///
    /// # Errors
    /// [`CompositionError`] says what is in the way.
    pub fn create(&self, folder: &Path) -> Result<Vec<&'static str>, CompositionError> {
        Ok(write(&self.name, folder, self.files())?)
    }

    /// What its author should know.
    pub fn notes(&self) -> Vec<String> {
        self.draft.as_ref().map(|draft| draft.notes.clone()).unwrap_or_default()
    }

    /// How many children and how many fields of a spec were made of what was given; none without that.
    pub fn made(&self) -> Option<(usize, usize)> {
        self.draft.as_ref().map(|draft| (draft.resources.len(), draft.fields.len()))
    }

    fn files(&self) -> Vec<(&'static str, String)> {
        let values = self.values();
        let of = |file: Template| (file.path, template::fill(file.text, &values));
        let mut files: Vec<_> = template::composition().map(of).collect();
        if let Some(draft) = &self.draft {
            let made = [
                ("composition.yaml", self.composition(draft)),
                ("crd.yaml", self.definition(draft)),
                ("object.yaml", draft.cases.first().map(|case| yaml::print(&self.object(case))).unwrap_or_default()),
                ("cases/first.yaml", self.cases(draft)),
            ];
            files.retain(|(path, _)| !made.iter().any(|(other, _)| other == path));
            files.extend(made);
        }
        files
    }

    fn values(&self) -> Vec<(&'static str, String)> {
        let kinds = |draft: &Draft| {
            let mut kinds: Vec<_> =
                draft.resources.iter().filter_map(|it| it.template["kind"].as_str()).map(str::to_lowercase).collect();
            kinds.sort();
            kinds.dedup();
            kinds.join(",")
        };
        let of_notes = |notes: &[String]| match notes {
            [] => String::new(),
            notes => format!(
                "\nWhat `pilothouse new` has said of the manifests:\n\n{}",
                notes.iter().map(|note| format!("- {note}\n")).collect::<String>()
            ),
        };
        let (becomes, children, notes) = match &self.draft {
            None => ("a Deployment that runs its image".to_owned(), "deployments".to_owned(), String::new()),
            Some(draft) => (format!("{} children", draft.resources.len()), kinds(draft), of_notes(&draft.notes)),
        };
        vec![
            ("name", self.name.clone()),
            ("kind", self.kind.kind.clone()),
            ("group", self.kind.group.clone()),
            ("version", self.kind.version.clone()),
            ("apiVersion", self.kind.api_version()),
            ("plural", self.kind.plural()),
            ("singular", self.kind.singular()),
            ("becomes", becomes),
            ("children", children),
            ("notes", notes),
        ]
    }

    fn composition(&self, draft: &Draft) -> String {
        let plugin = json!({
            "apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": self.name},
            "spec": {
                "source": {"configMap": {"name": "compose"}},
                "config": {
                    "name": self.name,
                    "kind": {"apiVersion": self.kind.api_version(), "kind": self.kind.kind},
                    "resources": draft.resources(),
                },
            },
        });
        let head = format!(
            "# The kind {} without code: what its objects become. docs/compose.md of Pilothouse says what can be in it.\n",
            self.kind.kind
        );
        head + &yaml::print(&plugin)
    }

    fn definition(&self, draft: &Draft) -> String {
        let kind = &self.kind;
        yaml::print(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", kind.plural(), kind.group)},
            "spec": {
                "group": kind.group, "scope": "Namespaced",
                "names": {"kind": kind.kind, "listKind": format!("{}List", kind.kind), "plural": kind.plural(), "singular": kind.singular()},
                "versions": [{
                    "name": kind.version, "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": draft.fields.schema(),
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    }}},
                }],
            },
        }))
    }

    fn object(&self, case: &Case) -> Value {
        json!({
            "apiVersion": self.kind.api_version(), "kind": self.kind.kind, "metadata": {"name": case.name, "namespace": case.namespace},
            "spec": case.spec,
        })
    }

    fn cases(&self, draft: &Draft) -> String {
        let head = format!(
            "# What {} makes of an object is what was given. What a case says is in docs/authoring.md of Pilothouse.\n",
            self.name
        );
        let of = |(place, case): (usize, &Case)| {
            let object = if place == 0 { json!("../object.yaml") } else { self.object(case) };
            // `pilothouse test` compares them in this order.
            let mut children = case.children.clone();
            let key = |child: &Value| {
                ["/apiVersion", "/kind", "/metadata/name"].map(|field| child.pointer(field).map(Value::to_string))
            };
            children.sort_by_key(key);
            yaml::print(&json!({
                "name": case.title, "object": object,
                "expect": {"match": "exact", "verdict": "done", "children": children, "conditions": [], "status": {}},
            }))
        };
        head + &draft.cases.iter().enumerate().map(of).collect::<Vec<_>>().join("---\n")
    }
}

fn of_manifests(paths: &[PathBuf]) -> Result<Draft, ManifestsError> {
    let mut sets: Vec<(String, Manifests)> = Vec::new();
    for path in paths {
        sets.extend(manifests::read(path)?);
    }
    Ok(match sets.as_slice() {
        [(_, one)] => single::draft(one),
        several => variants::draft(several),
    })
}
