//! `pilothouse inspect`: prints the manifest of a plugin without running it.

use std::path::PathBuf;

use clap::Args;
use pilothouse_engine::digest;

use crate::{plugin_file::PluginFile, yaml};

/// Print a plugin's manifest as YAML, below a comment with the file's digest and size. Runs nothing of the plugin.
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
        println!("# sha256:{}, {} bytes", digest(&bytes), bytes.len());
        print!("{}", yaml::print(&serde_json::to_value(&manifest)?)?);
        Ok(())
    }
}
