//! What commands that call plugins without a cluster share: loading a file under the limits of the host, and the forms of their output.
//! Calls nothing.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use pilothouse_controller::plugin::PluginLimits;
use pilothouse_engine::{Compiler, Declaration, Engine, EngineConfig, Limits, Manifest, Plugin};
use serde_json::Value;

use crate::{
    cache_dir::CacheDir,
    plugin_file::{self, PluginFile},
};

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A plugin needs a configuration to have a kind.
#[derive(Debug, thiserror::Error)]
#[error("the kind that this plugin reconciles comes from its configuration; give it one with --config")]
pub struct NoConfiguration;

/// Loads a plugin, with its code from the cache where that has it. Its kinds may come from this configuration.
///
/// # Errors
/// If the file is no plugin, or cannot use the configuration. The error names it and says what to do.
pub async fn load_configured(file: &Path, cache: &CacheDir, config: Option<&Value>) -> anyhow::Result<Plugin> {
    load_within(file, cache, &PluginLimits::default(), config.map(Value::to_string).as_deref()).await
}

/// Loads a plugin that may use what a `Plugin` says, with its configuration, JSON text.
///
/// # Errors
/// As [`load_configured`].
pub async fn load_within(
    file: &Path,
    cache: &CacheDir,
    limits: &PluginLimits,
    config: Option<&str>,
) -> anyhow::Result<Plugin> {
    load_bytes(plugin_file::read(file)?, cache, limits, config).await.with_context(|| format!("'{}'", file.display()))
}

async fn load_bytes(
    bytes: Vec<u8>,
    cache: &CacheDir,
    limits: &PluginLimits,
    config: Option<&str>,
) -> anyhow::Result<Plugin> {
    let limits = limits.of_calls(Limits::default());
    let engine = Engine::new(EngineConfig {
        cache: cache.path()?,
        compiler: Compiler::InProcess,
        limits: limits.clone(),
        call_memory: usize::MAX,
    })?;
    Ok(engine.load_configured(bytes, limits, config).await?)
}

/// The manifest of a plugin. It is loaded only where its kinds come from its configuration.
///
/// # Errors
/// If the file is no plugin, or needs another configuration. The error names it and says what to do.
pub async fn manifest(file: &Path, cache: &CacheDir, config: Option<&Value>) -> anyhow::Result<Manifest> {
    let read = PluginFile::read(file)?;
    manifest_of(&read, cache, config).await.with_context(|| format!("'{}'", file.display()))
}

/// The same for a file that was read.
///
/// # Errors
/// If the plugin needs another configuration.
pub async fn manifest_of(file: &PluginFile, cache: &CacheDir, config: Option<&Value>) -> anyhow::Result<Manifest> {
    match &file.declaration {
        Declaration::Fixed(manifest) => Ok((**manifest).clone()),
        Declaration::Configured(_) => {
            let config = config.ok_or(NoConfiguration)?;
            let (bytes, config) = (file.bytes.clone(), config.to_string());
            let plugin = load_bytes(bytes, cache, &PluginLimits::default(), Some(&config)).await?;
            Ok(pilothouse_engine::Reconciler::manifest(&plugin).clone())
        }
    }
}
