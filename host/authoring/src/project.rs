//! A new project: its name, kind and language become files in a folder that was not there. It never overwrites a file.

use std::{
    io,
    path::{Path, PathBuf},
};

use pilothouse_wit::{CONTRACT_VERSION, Manifest};

use crate::{
    CustomKind, Definition, Language,
    build::{python, typescript},
    foreign::{Foreign, Values},
    template,
};

/// Where a project in Rust takes the SDK from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// The repository of Pilothouse, at the tag of this version.
    Git,
    /// The registry of crates, in this version.
    Registry,
    /// A folder.
    Folder(PathBuf),
}

/// What a new project is about.
#[derive(Clone, Debug)]
pub struct Project {
    /// The plugin's name, a DNS label.
    pub name: String,
    /// The kind that it reconciles.
    pub kind: CustomKind,
    /// The language.
    pub language: Language,
    /// Where the SDK comes from.
    pub sdk: Sdk,
    /// The CRD of the kind, if there is one already.
    pub definition: Option<Definition>,
}

/// Why there is no new project.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// No plugin can have that name.
    #[error("'{0}' cannot be the name of a plugin: at most 63 of a-z, 0-9 and -, beginning with a letter")]
    Name(String),
    /// The folder is there.
    #[error("'{}' is there already; choose another name or folder", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("failed to write '{}': {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Project {
    /// Writes the project into a folder that is not there yet. Gives the paths of its files in that folder, in their order.
    ///
    /// # Errors
    /// [`NewError`] says what is in the way.
    pub fn create(&self, folder: &Path) -> Result<Vec<&'static str>, NewError> {
        write(&self.name, folder, self.files())
    }

    /// The files of the project: their paths in its folder, and their texts.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let Some(definition) = &self.definition else {
            let values = [self.values(), plain_values()].concat();
            return template::of(self.language).map(|file| (file.path, template::fill(file.text, &values))).collect();
        };
        let foreign = Foreign::new(definition, self.language);
        let package = format!("{}/{}/pilothouse", self.kind.group, self.name);
        let values = [self.values(), foreign.values(&package)].concat();
        let made = foreign.objects().into_iter().chain([foreign.spec_file()]);
        let made: Vec<_> = made.collect();
        let is_template = |file: &template::Template| !made.iter().any(|(path, _)| *path == file.path);
        let others = template::typed(self.language).into_iter().filter(is_template);
        let others: Vec<_> = others.map(|file| (file.path, template::fill(file.text, &values))).collect();
        made.into_iter().chain(others).collect()
    }

    /// What is to be done by hand, in sentences.
    pub fn notes(&self) -> Vec<String> {
        self.definition.as_ref().map(|definition| Foreign::new(definition, self.language).notes()).unwrap_or_default()
    }

    fn values(&self) -> Values {
        let (plural, singular) = match &self.definition {
            Some(definition) => (definition.plural.clone(), definition.singular.clone()),
            None => (self.kind.plural(), self.kind.singular()),
        };
        vec![
            ("name", self.name.clone()),
            ("crate", self.name.replace('-', "_")),
            ("kind", self.kind.kind.clone()),
            ("group", self.kind.group.clone()),
            ("version", self.kind.version.clone()),
            ("apiVersion", self.kind.api_version()),
            ("plural", plural),
            ("singular", singular),
            ("contract", CONTRACT_VERSION.to_owned()),
            ("sdk", self.sdk.dependency()),
            ("componentize-py", python::VERSION.to_owned()),
            ("componentize-qjs", typescript::VERSION.to_owned()),
            ("typescript", typescript::TYPESCRIPT.to_owned()),
        ]
    }
}

/// Writes the files of a project with that name into a folder that is not there yet. Gives their paths in their order. Where a file cannot be
/// written, none stays.
pub(crate) fn write(
    name: &str,
    folder: &Path,
    files: Vec<(&'static str, String)>,
) -> Result<Vec<&'static str>, NewError> {
    if !Manifest::is_name(name) {
        return Err(NewError::Name(name.to_owned()));
    }
    if folder.exists() {
        return Err(NewError::Exists(folder.to_owned()));
    }
    let mut written = Vec::new();
    for (path, text) in files {
        let file = folder.join(path);
        let parent = file.parent().unwrap_or(folder);
        let result = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&file, text));
        if let Err(source) = result {
            // It was not there before; what cannot be taken away either is told by the error that follows.
            std::fs::remove_dir_all(folder).unwrap_or_default();
            return Err(NewError::Write { path: file, source });
        }
        written.push(path);
    }
    written.sort_unstable();
    Ok(written)
}

/// What the files of a kind of one's own say of it.
fn plain_values() -> Values {
    vec![
        ("becomes", "a Deployment that runs its image".to_owned()),
        ("children", "deployments".to_owned()),
        ("specFile", String::new()),
        ("dependencies", String::new()),
    ]
}

impl Sdk {
    /// The right side of a dependency in a Cargo.toml.
    fn dependency(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        match self {
            Self::Git => format!("{{ git = \"{}\", tag = \"v{version}\" }}", env!("CARGO_PKG_REPOSITORY")),
            Self::Registry => format!("\"{version}\""),
            // A string of TOML with what JSON escapes, which is what TOML escapes.
            Self::Folder(folder) => format!("{{ path = {} }}", serde_json::json!(folder.to_string_lossy())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projects() -> Vec<Project> {
        let kind = CustomKind { group: "example.com".into(), version: "v1".into(), kind: "Website".into() };
        let of = |language| Project {
            name: "web-site".into(),
            kind: kind.clone(),
            language,
            sdk: Sdk::Git,
            definition: None,
        };
        Language::ALL.map(of).into()
    }

    #[test]
    fn a_project_has_a_value_for_each_name_and_shows_its_language() -> Result<(), Box<dyn std::error::Error>> {
        for project in projects() {
            let folder = tempfile::tempdir()?;
            let root = folder.path().join("web-site");
            let written = project.create(&root)?;
            for file in &written {
                let text = std::fs::read_to_string(root.join(file))?;
                // A brace in a brace is no name without a value.
                let is_name = |rest: &str| rest.starts_with(|first: char| first.is_ascii_alphabetic());
                assert!(!text.split("{{").skip(1).any(is_name), "{:?}: {file}: {text}", project.language);
            }
            for file in ["README.md", ".gitignore", "crd.yaml", "object.yaml", "cases/first.yaml"] {
                assert!(written.contains(&file), "{:?} has no {file}", project.language);
            }
            assert_eq!(Language::of(&root), Some(project.language));
            assert!(matches!(project.create(&root), Err(NewError::Exists(there)) if there == root));
        }
        Ok(())
    }

    #[test]
    fn what_no_plugin_can_be_called_is_refused() {
        for mut project in projects() {
            project.name = "Web Site".into();
            let refused = project.create(Path::new("/nowhere/at/all"));
            assert!(matches!(refused, Err(NewError::Name(name)) if name == "Web Site"));
        }
    }

    #[test]
    fn the_sdk_comes_from_where_it_is_asked_for() {
        let version = env!("CARGO_PKG_VERSION");
        let cases = [
            (Sdk::Registry, format!("\"{version}\"")),
            (Sdk::Git, format!("{{ git = \"https://github.com/pilothouse/pilothouse\", tag = \"v{version}\" }}")),
            (Sdk::Folder("/a \"b\"".into()), r#"{ path = "/a \"b\"" }"#.to_owned()),
        ];
        for (sdk, expected) in cases {
            assert_eq!(sdk.dependency(), expected);
        }
    }
}
