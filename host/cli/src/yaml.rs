//! Reads and prints YAML as JSON values: one or several documents, from a file or standard input.

use std::{io::Read, path::Path};

use anyhow::Context;
use pilothouse_authoring::list_items;
use serde_json::Value;

/// Reads all documents of a file; `-` is standard input. Skips empty documents and flattens `List`s.
///
/// # Errors
/// If the file cannot be read or is not YAML.
pub fn read(path: &Path) -> anyhow::Result<Vec<Value>> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).context("failed to read standard input")?;
    } else {
        text = std::fs::read_to_string(path).with_context(|| format!("failed to read '{}'", path.display()))?;
    }
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).with_context(|| format!("'{}' is not YAML", path.display()))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).flat_map(list_items).collect())
}

/// Prints a value as one document.
///
/// # Errors
/// None known for JSON values.
pub fn print(value: &Value) -> anyhow::Result<String> {
    let text = serde_saphyr::to_string(value).context("failed to print YAML")?;
    Ok(if text.ends_with('\n') { text } else { format!("{text}\n") })
}
