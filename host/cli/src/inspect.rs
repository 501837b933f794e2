//! `pilothouse inspect`: prints the manifest of a plugin without running it.

use std::path::PathBuf;

use clap::Args;
use pilothouse_engine::digest;
use serde_json::json;

use crate::{plugin_file::PluginFile, yaml};

/// Print a plugin's manifest as YAML. Runs nothing of the plugin.
#[derive(Args)]
pub struct Inspect {
    /// The plugin.
    file: PathBuf,
}

impl Inspect {
    /// Runs the command.
    ///
    /// # Errors
    /// If the file is not a plugin. The error says what to do.
    pub fn execute(&self) -> anyhow::Result<()> {
        let PluginFile { manifest, bytes } = PluginFile::read(&self.file)?;
        let mut shown = serde_json::to_value(&manifest)?;
        shown["digest"] = json!(format!("sha256:{}", digest(&bytes)));
        shown["bytes"] = json!(bytes.len());
        print!("{}", yaml::print(&shown)?);
        Ok(())
    }
}
