//! Plugin files: their bytes and manifests. Runs nothing of a plugin.

use std::path::Path;

use anyhow::Context;
use pilothouse_engine::Manifest;

/// The content of a plugin file.
pub struct PluginFile {
    /// The manifest.
    pub manifest: Manifest,
    /// The whole file.
    pub bytes: Vec<u8>,
}

impl PluginFile {
    /// The content of a plugin file that is named so.
    ///
    /// # Errors
    /// If the bytes are no plugin. The error has the name and says what to do.
    pub fn of(bytes: Vec<u8>, name: impl std::fmt::Display) -> anyhow::Result<Self> {
        let manifest = Manifest::read(&bytes).with_context(|| format!("'{name}'"))?;
        Ok(Self { manifest, bytes })
    }

    /// Reads a plugin file.
    ///
    /// # Errors
    /// If the file is not a plugin. The error names the file and says what to do.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(file).with_context(|| format!("failed to read '{}'", file.display()))?;
        Self::of(bytes, file.display())
    }
}
