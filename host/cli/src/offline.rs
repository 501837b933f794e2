//! What commands that call plugins without a cluster share: loading a file under the limits of the host, and the forms of their output.
//! Calls nothing.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use pilothouse_engine::{Compiler, Engine, EngineConfig, Limits, Plugin};

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
    let bytes = std::fs::read(file).with_context(|| format!("failed to read '{}'", file.display()))?;
    let engine = Engine::new(EngineConfig {
        cache: cache.path()?,
        compiler: Compiler::InProcess,
        limits: Limits::default(),
        call_memory: usize::MAX,
    })?;
    engine.load(bytes).await.with_context(|| format!("'{}'", file.display()))
}
