//! `pilothouse inspect`: prints the manifest of a plugin file without running it, or a plugin that is installed.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use pilothouse_controller::api::find_plugin;
use pilothouse_engine::digest;
use serde_json::Value;

use crate::{
    cluster::{Cluster, block_on},
    plugin_file::PluginFile,
    yaml,
};

/// Print a plugin: the manifest of a file, below a comment with its digest and size, or the Plugin object of an installed one. Runs
/// nothing of the plugin.
#[derive(Args)]
pub struct Inspect {
    /// The file, or the name of an installed plugin.
    #[arg(value_name = "FILE|NAME")]
    plugin: PathBuf,
    /// Print as.
    #[arg(long, short, default_value = "yaml")]
    output: Output,
    #[command(flatten)]
    cluster: Cluster,
}

/// How to print.
#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// For people.
    Yaml,
    /// For programs.
    Json,
}

impl Inspect {
    /// Runs the command.
    ///
    /// # Errors
    /// If it is neither a plugin file nor the name of an installed plugin. The error says what to do.
    pub fn execute(&self) -> anyhow::Result<()> {
        let plugin = self.plugin.to_str().filter(|name| is_name(name) && !self.plugin.exists());
        match plugin {
            Some(name) => self.print("", &block_on(self.installed(name))?),
            None => {
                let PluginFile { manifest, bytes } = PluginFile::read(&self.plugin)?;
                let comment = format!("# sha256:{}, {} bytes\n", digest(&bytes), bytes.len());
                self.print(&comment, &serde_json::to_value(&manifest)?)
            }
        }
    }

    fn print(&self, comment: &str, value: &Value) -> anyhow::Result<()> {
        match self.output {
            Output::Yaml => print!("{comment}{}", yaml::print(value)?),
            Output::Json => println!("{value}"),
        }
        Ok(())
    }

    async fn installed(&self, name: &str) -> anyhow::Result<Value> {
        let found = find_plugin(self.cluster.client().await?, name).await;
        let found =
            found.with_context(|| format!("there is no file '{name}', and failed to look for such a Plugin"))?;
        let Some(plugin) = found else {
            bail!("there is neither a file nor a Plugin '{name}'; `pilothouse list` shows the installed ones");
        };
        Ok(serde_json::to_value(plugin)?)
    }
}

/// Whether a text may be the name of an object, and so of an installed plugin.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
