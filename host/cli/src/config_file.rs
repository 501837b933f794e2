//! A file with the configuration of a plugin: that alone, or a `Plugin` that has it, with the CRDs of its kinds beside it, so that one file is
//! all that there is of a kind without code. Contacts no cluster.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::yaml;

/// The fields of a `Plugin` that such a file may have: its configuration, and what says where the component comes from, which the commands
/// that read it are told by their arguments.
const READ: [&str; 3] = ["config", "source", "digest"];

/// What is in such a file.
pub struct ConfigFile {
    /// The configuration; null where there is none.
    pub config: Value,
    /// The CRDs.
    pub definitions: Vec<Value>,
}

impl ConfigFile {
    /// Reads it.
    ///
    /// # Errors
    /// If the file cannot be read, is not YAML, or has something else.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let (definitions, mut others): (Vec<_>, Vec<_>) = yaml::read(path)?.into_iter().partition(is_definition);
        ensure!(
            others.len() <= 1,
            "'{}' has {} documents beside CRDs; one is expected: a configuration, or a Plugin that has one",
            path.display(),
            others.len()
        );
        let config = match others.pop() {
            Some(plugin) if is_plugin(&plugin) => {
                config_of(plugin).with_context(|| format!("the Plugin in '{}'", path.display()))?
            }
            other => other.unwrap_or_default(),
        };
        Ok(Self { config, definitions })
    }
}

/// The configuration in such a file.
///
/// # Errors
/// As [`ConfigFile::read`].
pub fn read_config(path: &Path) -> anyhow::Result<Value> {
    ConfigFile::read(path).map(|file| file.config)
}

fn is_definition(document: &Value) -> bool {
    is_of(document, "apiextensions.k8s.io/", "CustomResourceDefinition")
}

fn is_plugin(document: &Value) -> bool {
    is_of(document, "pilothouse.dev/", "Plugin")
}

fn is_of(document: &Value, group: &str, kind: &str) -> bool {
    let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
    text("apiVersion").starts_with(group) && text("kind") == kind
}

fn config_of(mut plugin: Value) -> anyhow::Result<Value> {
    let spec = plugin.get_mut("spec").and_then(Value::as_object_mut).context("it has no spec")?;
    if let Some(field) = spec.keys().find(|field| !READ.contains(&field.as_str())) {
        bail!("spec.{field} is not read from a file; say it by the arguments of the command, and leave it out here");
    }
    spec.remove("config").context("it has no spec.config")
}
