//! The configurations of plugins that the command line names: the argument, and the files. Knows no plugin.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::{Context, ensure};
use clap::Args;

use crate::config_file::read_config;

/// The configurations of plugins.
#[derive(Args)]
pub struct PluginConfigs {
    /// Configuration of a plugin, handed to it with every request: a YAML or JSON file with it, or with a Plugin that has it. Can be given for several plugins.
    #[arg(long = "config", value_name = "NAME=FILE", value_parser = plugin_config)]
    configs: Vec<PluginConfig>,
}

impl PluginConfigs {
    /// The configuration of one plugin; none if there is none.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn of(&self, plugin: &str) -> anyhow::Result<Option<serde_json::Value>> {
        let found = self.configs.iter().find(|config| config.plugin == plugin);
        found.map(|config| read_config(&config.file)).transpose()
    }

    /// Reads them. The keys are the plugins' names, the values JSON text.
    ///
    /// # Errors
    /// If a file cannot be read, or a plugin has two.
    pub fn read(&self) -> anyhow::Result<BTreeMap<String, Arc<str>>> {
        let mut configs = BTreeMap::new();
        for PluginConfig { plugin, file } in &self.configs {
            let config = read_config(file)?.to_string();
            ensure!(
                configs.insert(plugin.clone(), config.into()).is_none(),
                "plugin '{plugin}' has two configurations; give --config {plugin}=FILE once"
            );
        }
        Ok(configs)
    }
}

/// An argument `NAME=FILE` with the configuration of a plugin.
#[derive(Clone, Debug)]
struct PluginConfig {
    plugin: String,
    file: PathBuf,
}

fn plugin_config(text: &str) -> anyhow::Result<PluginConfig> {
    let named = text.split_once('=').filter(|(plugin, file)| !plugin.is_empty() && !file.is_empty());
    let (plugin, file) = named.context("it is not NAME=FILE: a plugin's name and the file with its configuration")?;
    Ok(PluginConfig { plugin: plugin.to_owned(), file: file.into() })
}
