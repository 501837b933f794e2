//! The CustomResourceDefinitions of a project: finds them in its folder and applies them to the cluster. Deletes none.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use kube::Client;
use serde_json::Value;

use crate::{definition, test::files::yaml_files, yaml};

/// The field manager.
const MANAGER: &str = "pilothouse-dev";

/// How long the API server may take until a kind is served.
const SERVED_WITHIN: Duration = Duration::from_secs(10);

/// What was applied last, by name.
#[derive(Default)]
pub(super) struct Definitions(BTreeMap<String, Value>);

impl Definitions {
    /// Applies those of a project that changed, and waits until their kinds are served. Returns their names.
    ///
    /// # Errors
    /// If a file cannot be read, or the API server refuses a definition.
    pub(super) async fn apply(&mut self, client: &Client, folder: &Path) -> anyhow::Result<Vec<String>> {
        let mut applied = Vec::new();
        for (file, found) in find(folder)? {
            let place = || format!("'{}'", file.display());
            let name = definition::name(&found).with_context(place)?;
            if self.0.get(name) == Some(&found) {
                continue;
            }
            definition::apply(client, &found, MANAGER, SERVED_WITHIN).await.with_context(place)?;
            applied.push(name.to_owned());
            self.0.insert(name.to_owned(), found);
        }
        Ok(applied)
    }
}

/// The definitions in the YAML files of a project's folder and of its folder `crds`, with their files.
fn find(folder: &Path) -> anyhow::Result<Vec<(PathBuf, Value)>> {
    let mut found = Vec::new();
    let folders = [folder.to_owned(), folder.join("crds")];
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        for file in yaml_files(folder)? {
            // What is no YAML may be a template of something else.
            let text =
                std::fs::read_to_string(&file).with_context(|| format!("failed to read '{}'", file.display()))?;
            if !text.contains("CustomResourceDefinition") {
                continue;
            }
            let documents = yaml::read(&file)?.into_iter();
            let definitions = documents.filter(|document| document["kind"] == "CustomResourceDefinition");
            found.extend(definitions.map(|definition| (file.clone(), definition)));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_among_other_files() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("crds"))?;
        let definition = |name: &str| format!("kind: CustomResourceDefinition\nmetadata: {{name: {name}}}\n");
        for (file, text) in [
            ("crd.yaml", definition("first")),
            ("crds/more.yml", format!("kind: Namespace\n---\n{}", definition("second"))),
            ("object.yaml", "kind: Website\n".to_owned()),
            ("template.yaml", "{{ if }}".to_owned()),
            ("notes.md", definition("third")),
        ] {
            std::fs::write(folder.path().join(file), text)?;
        }
        let names: Vec<_> = find(folder.path())?.into_iter().map(|(_, it)| it["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["first", "second"]);
        std::fs::write(folder.path().join("broken.yaml"), "kind: CustomResourceDefinition\n: {")?;
        let error = find(folder.path()).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("broken.yaml"), "{error}");
        Ok(())
    }
}
