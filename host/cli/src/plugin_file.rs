//! Plugin files: their bytes and what they say about themselves. Runs nothing of a plugin.

use std::path::Path;

use anyhow::Context;
use pilothouse_engine::Declaration;

/// The content of a plugin file.
pub struct PluginFile {
    /// What it says about itself.
    pub declaration: Declaration,
    /// The whole file.
    pub bytes: Vec<u8>,
}

impl PluginFile {
    /// The content of a plugin file that is named so.
    ///
    /// # Errors
    /// If the bytes are no plugin. The error has the name and says what to do.
    pub fn of(bytes: Vec<u8>, name: impl std::fmt::Display) -> anyhow::Result<Self> {
        let declaration = Declaration::read(&bytes).with_context(|| format!("'{name}'"))?;
        Ok(Self { declaration, bytes })
    }

    /// Reads a plugin file.
    ///
    /// # Errors
    /// If the file is not a plugin. The error names the file and says what to do.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        Self::of(read(file)?, file.display())
    }
}

/// The bytes of a file, whatever they are.
///
/// # Errors
/// If it cannot be read. The error names it.
pub fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("failed to read '{}'", file.display()))
}
