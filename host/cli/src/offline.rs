//! Loads a plugin file to call it without a cluster, under the limits of the host. Calls nothing.

use std::path::Path;

use anyhow::Context;
use pilothouse_engine::{Compiler, Engine, EngineConfig, Limits, Plugin};

use crate::cache_dir::CacheDir;

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
