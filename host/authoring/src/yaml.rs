//! YAML, of which JSON is a part: the documents of a file, the objects of a list, and how a value is written. It knows no kinds.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// Why a file has no documents.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// A file or a folder cannot be read.
    #[error("failed to read '{}': {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is neither YAML nor JSON.
    #[error("'{}' is neither YAML nor JSON: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, YamlError> {
    std::fs::read_to_string(path).map_err(|source| YamlError::Unreadable { path: path.to_owned(), source })
}

/// The documents of a text; `path` is where it is from.
pub(crate) fn documents(path: &Path, text: &str) -> Result<Vec<Value>, YamlError> {
    serde_saphyr::from_multiple(text)
        .map_err(|error| YamlError::Malformed { path: path.to_owned(), reason: error.to_string() })
}

/// The objects of a `List`, as `kubectl get` writes it; else the document itself.
pub fn list_items(document: Value) -> Vec<Value> {
    match document["items"].as_array() {
        Some(items) if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => items.clone(),
        _ => vec![document],
    }
}

/// A value as one document.
pub(crate) fn print(value: &Value) -> String {
    // What is no YAML for the printer is JSON, which is YAML, too.
    let text = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
    if text.ends_with('\n') { text } else { format!("{text}\n") }
}
