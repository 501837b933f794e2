//! A new project: its name, kind and language become files in a folder that was not there. It never overwrites a file.

use std::{
    io,
    path::{Path, PathBuf},
};

use pilothouse_wit::{CONTRACT_VERSION, Manifest};

use crate::{
    CustomKind, Language,
    build::{python, typescript},
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
        if !Manifest::is_name(&self.name) {
            return Err(NewError::Name(self.name.clone()));
        }
        if folder.exists() {
            return Err(NewError::Exists(folder.to_owned()));
        }
        let mut written = Vec::new();
        for (path, text) in self.files() {
            let file = folder.join(path);
            let parent = file.parent().unwrap_or(folder);
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&file, text))
                .map_err(|source| NewError::Write { path: file.clone(), source })?;
            written.push(path);
        }
        written.sort_unstable();
        Ok(written)
    }

    /// The files of the project: their paths in its folder, and their texts.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let (api_version, plural, singular) = (self.kind.api_version(), self.kind.plural(), self.kind.singular());
        let (crate_name, sdk) = (self.name.replace('-', "_"), self.sdk.dependency());
        let values = [
            ("name", &*self.name),
            ("crate", &crate_name),
            ("kind", &self.kind.kind),
            ("group", &self.kind.group),
            ("version", &self.kind.version),
            ("apiVersion", &api_version),
            ("plural", &plural),
            ("singular", &singular),
            ("contract", CONTRACT_VERSION),
            ("sdk", &sdk),
            ("componentize-py", python::VERSION),
            ("componentize-qjs", typescript::VERSION),
            ("typescript", typescript::TYPESCRIPT),
        ];
        template::of(self.language).map(|file| (file.path, template::fill(file.text, &values))).collect()
    }
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
        let of = |language| Project { name: "web-site".into(), kind: kind.clone(), language, sdk: Sdk::Git };
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
