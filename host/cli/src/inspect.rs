//! `pilothouse inspect`: what a plugin says about itself, read without running it.

use std::path::PathBuf;

use clap::Args;
use pilothouse_engine::digest;
use serde_json::json;

use crate::{plugin_file, yaml};

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
    /// Why the file is not a plugin, and what to do.
    pub fn execute(&self) -> anyhow::Result<()> {
        let (manifest, bytes) = plugin_file::read(&self.file)?;
        let mut shown = serde_json::to_value(&manifest)?;
        shown["digest"] = json!(format!("sha256:{}", digest(&bytes)));
        shown["bytes"] = json!(bytes.len());
        print!("{}", yaml::print(&shown)?);
        Ok(())
    }
}
