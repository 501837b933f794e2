//! Plugins as files: their bytes and manifests. Runs nothing of them.

use std::path::Path;

use anyhow::Context;
use pilothouse_engine::Manifest;

/// Reads a plugin's manifest, and the bytes of its file.
///
/// # Errors
/// The file, why it is not a plugin, and what to do.
pub fn read(file: &Path) -> anyhow::Result<(Manifest, Vec<u8>)> {
    let bytes = std::fs::read(file).with_context(|| format!("failed to read '{}'", file.display()))?;
    let manifest = Manifest::read(&bytes).with_context(|| format!("'{}'", file.display()))?;
    Ok((manifest, bytes))
}
