//! The manifest of a project in a language whose SDK cannot put it into the module: the file `plugin.yaml`. Checks nothing that
//! reading the plugin checks.

use std::path::Path;

use serde_json::Value;

use super::{BuildError, read};

/// The file.
const FILE: &str = "plugin.yaml";

/// The manifest as JSON text.
///
/// # Errors
/// [`BuildError`]: there is none, or it is not YAML.
pub(super) fn manifest(folder: &Path) -> Result<String, BuildError> {
    let path = folder.join(FILE);
    let text = String::from_utf8_lossy(&read(&path)?).into_owned();
    let value = serde_saphyr::from_str::<Value>(&text);
    let value = value.map_err(|error| BuildError::Declaration { path, reason: error.to_string() })?;
    Ok(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_yaml() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        assert!(matches!(manifest(folder.path()), Err(BuildError::File { .. })));
        let path = folder.path().join(FILE);
        std::fs::write(&path, "# A comment.\nname: web\nchildren: [{apiVersion: apps/v1, kind: Deployment}]\n")?;
        let read = serde_json::from_str::<Value>(&manifest(folder.path())?)?;
        let expected = serde_json::json!({
            "name": "web", "children": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
        });
        assert_eq!(read, expected);
        std::fs::write(&path, "name: [")?;
        let refused = manifest(folder.path());
        assert!(matches!(&refused, Err(BuildError::Declaration { path: named, .. }) if *named == path), "{refused:?}");
        Ok(())
    }
}
