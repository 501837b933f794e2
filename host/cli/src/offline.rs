//! What commands that call plugins without a cluster share: loading a file under the limits of the host, and the forms of their output.
//! Calls nothing.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use pilothouse_controller::plugin::PluginLimits;
use pilothouse_engine::{Compiler, Engine, EngineConfig, Limits, Manifest, Plugin};

use crate::cache_dir::CacheDir;

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Loads a plugin, with its code from the cache where that has it.
///
/// # Errors
/// If the file is no plugin. The error names it and says what to do.
pub async fn load(file: &Path, cache: &CacheDir) -> anyhow::Result<Plugin> {
    load_within(file, cache, &PluginLimits::default()).await
}

/// Loads a plugin that may use what a `Plugin` says.
///
/// # Errors
/// As [`load`].
pub async fn load_within(file: &Path, cache: &CacheDir, limits: &PluginLimits) -> anyhow::Result<Plugin> {
    let bytes = read(file)?;
    let limits = limits.of_calls(Limits::default());
    let engine = Engine::new(EngineConfig {
        cache: cache.path()?,
        compiler: Compiler::InProcess,
        limits: limits.clone(),
        call_memory: usize::MAX,
    })?;
    engine.load_within(bytes, limits).await.with_context(|| format!("'{}'", file.display()))
}

/// Reads the manifest of a plugin, without loading it.
///
/// # Errors
/// If the file is no plugin. The error names it and says what to do.
pub fn manifest(file: &Path) -> anyhow::Result<Manifest> {
    Manifest::read(&read(file)?).with_context(|| format!("'{}'", file.display()))
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("failed to read '{}'", file.display()))
}
