//! What the tools of a language are given: the folder of the sources, one for what they make, and the contract as the manifest asks for it.

use std::path::{Path, PathBuf};

use pilothouse_wit::CONTRACT;
use serde_json::Value;

use super::BuildError;

/// What is built.
pub(super) struct Input<'a> {
    /// The project.
    pub(super) folder: &'a Path,
    /// A folder that is gone afterwards.
    pub(super) scratch: &'a Path,
    /// The manifest as JSON text.
    pub(super) manifest: &'a str,
}

impl Input<'_> {
    /// The world of the contract that the plugin is in: some tools have to know before they see what it exports.
    pub(super) fn world(&self) -> &'static str {
        if self.finalizes() { "finalizing-plugin" } else { "plugin" }
    }

    /// Whether the manifest says that the plugin has a finalizer.
    pub(super) fn finalizes(&self) -> bool {
        let manifest = serde_json::from_str::<Value>(self.manifest).unwrap_or_default();
        manifest["finalizes"] == true
    }

    /// Writes the contract into a folder of its own, and gives that.
    ///
    /// # Errors
    /// [`BuildError::File`].
    pub(super) fn write_contract(&self) -> Result<PathBuf, BuildError> {
        let folder = self.scratch.join("wit");
        let write = || {
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join("plugin.wit"), CONTRACT)
        };
        write().map_err(|source| BuildError::File { action: "write in", path: folder.clone(), source })?;
        Ok(folder)
    }
}
