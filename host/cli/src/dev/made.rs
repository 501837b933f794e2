//! What a round of a project begins with: the component that is built from its sources, or the one that all kinds without code share, with the
//! configuration that makes this one of it. Runs the tools of languages, and nothing of a plugin.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use pilothouse_authoring::{BuildError, Built, COMPOSITION, Purpose, build};
use pilothouse_controller::plugin::PluginSettings;

use crate::{config_file::read_config, plugin_file, test::files::built_plugin};

/// A plugin that can be loaded.
pub(super) struct Made {
    /// The file of its component.
    pub(super) file: PathBuf,
    /// What is in that.
    pub(super) wasm: Vec<u8>,
    /// With its configuration, if it is a kind without code.
    pub(super) settings: PluginSettings,
}

impl Made {
    /// Makes it of what is in the folder of a project.
    ///
    /// # Errors
    /// If the sources have a mistake, or the component of kinds without code is missing.
    pub(super) fn of(folder: &Path) -> anyhow::Result<Self> {
        match build(folder, Purpose::Development) {
            Ok(Built { file, wasm, .. }) => Ok(Self { file, wasm, settings: PluginSettings::default() }),
            Err(BuildError::Composition(folder)) => Self::of_composition(&folder),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether its kinds come from its configuration.
    pub(super) fn is_composition(&self) -> bool {
        self.settings.config.is_some()
    }

    fn of_composition(folder: &Path) -> anyhow::Result<Self> {
        let config = read_config(&folder.join(COMPOSITION))?;
        if config.is_null() {
            bail!("{COMPOSITION} has no configuration; docs/compose.md of Pilothouse says what can be in it");
        }
        let file = built_plugin(folder).context("a kind without code needs compose.wasm in the folder build")?;
        let settings = PluginSettings { config: Some(config.to_string().into()), ..PluginSettings::default() };
        Ok(Self { wasm: plugin_file::read(&file)?, file, settings })
    }
}
