//! The version of a plugin that a case is run with: the same for all, or, where its kinds come from its configuration and each case has one of its
//! own, one for each configuration. Runs no case.

use std::{
    collections::{HashMap, hash_map::Entry},
    path::Path,
};

use anyhow::{Context, bail, ensure};
use pilothouse_engine::{Declaration, Plugin};
use pilothouse_offline::cases::Case;
use serde_json::Value;

use crate::{cache_dir::CacheDir, offline, plugin_file::PluginFile};

/// The versions of one plugin file.
pub(crate) enum Versions<'a> {
    /// The same for all cases, with the configuration of the command line if that has one.
    One { plugin: Box<Plugin>, given: Option<&'a Value> },
    /// Those that cases have needed so far, by their configuration.
    ByConfig { file: &'a Path, cache: &'a CacheDir, loaded: HashMap<String, Plugin> },
}

impl<'a> Versions<'a> {
    /// Loads what all cases need. `given`: the configuration of all of them.
    ///
    /// # Errors
    /// If the file is no plugin, or cannot use the configuration. The error names it and says what to do.
    pub(crate) async fn load(file: &'a Path, cache: &'a CacheDir, given: Option<&'a Value>) -> anyhow::Result<Self> {
        if given.is_none() && matches!(PluginFile::read(file)?.declaration, Declaration::Configured(_)) {
            return Ok(Self::ByConfig { file, cache, loaded: HashMap::new() });
        }
        let plugin = Box::new(offline::load_configured(file, cache, given).await?);
        Ok(Self::One { plugin, given })
    }

    /// The version for a case, which gets the configuration of all cases if there is one, and else, without one of its own, that of its
    /// project.
    ///
    /// # Errors
    /// If the case has a configuration, and all cases were given one; or if none has one that the plugin can use.
    pub(super) async fn of(&mut self, case: &mut Case, project: Option<&Value>) -> anyhow::Result<&Plugin> {
        match self {
            Self::One { plugin, given } => {
                if let Some(given) = given {
                    give(case, given)?;
                }
                Ok(plugin)
            }
            Self::ByConfig { file, cache, loaded } => {
                if let (true, Some(project)) = (case.inputs.config.is_null(), project) {
                    give(case, project)?;
                }
                let config = &case.inputs.config;
                if config.is_null() {
                    bail!(
                        "{}: the kind that this plugin reconciles comes from its configuration, and the case has none; give it one, or give \
                         one to all cases with --config",
                        case.place
                    );
                }
                match loaded.entry(config.to_string()) {
                    Entry::Occupied(occupied) => Ok(occupied.into_mut()),
                    Entry::Vacant(vacant) => {
                        let plugin = offline::load_configured(file, cache, Some(config)).await;
                        Ok(vacant.insert(plugin.with_context(|| case.place.to_string())?))
                    }
                }
            }
        }
    }
}

fn give(case: &mut Case, given: &Value) -> anyhow::Result<()> {
    ensure!(
        case.inputs.config.is_null() && case.steps.iter().all(|step| step.changes.config.is_none()),
        "{}: the case has a configuration of its own, and --config gives one to all of them; leave out one of both",
        case.place
    );
    case.inputs.config = given.clone();
    Ok(())
}
