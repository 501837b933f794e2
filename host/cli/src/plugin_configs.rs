//! The configurations of plugins that the command line names: the argument, and the files. Knows no plugin.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use anyhow::{Context, ensure};
use clap::Args;

use crate::yaml;

/// The configurations of plugins.
#[derive(Args)]
pub struct PluginConfigs {
    /// Configuration of a plugin, handed to it with every request: a YAML or JSON file. Can be given for several plugins.
    #[arg(long = "config", value_name = "NAME=FILE", value_parser = plugin_config)]
    configs: Vec<PluginConfig>,
}

impl PluginConfigs {
    /// Reads them. The keys are the plugins' names, the values JSON text.
    ///
    /// # Errors
    /// If a file cannot be read, or a plugin has two.
    pub fn read(&self) -> anyhow::Result<BTreeMap<String, Arc<str>>> {
        let mut configs = BTreeMap::new();
        for PluginConfig { plugin, file } in &self.configs {
            let config = yaml::read_one(file)?.to_string();
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
