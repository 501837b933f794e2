//! The engine of a host that runs in this process: compiles in child processes of this program, and keeps within this machine's memory. Loads
//! no plugin.

use anyhow::Context;
use pilothouse_engine::{Compiler, Engine, EngineConfig, Limits, call_memory_of_container};

use crate::cache_dir::CacheDir;

/// Opens the engine. All calls together have this many bytes, or half of what the container may have.
///
/// # Errors
/// If this program does not find its own file, or the cache cannot be used.
pub fn open(cache: &CacheDir, call_memory: Option<usize>) -> anyhow::Result<Engine> {
    let program = std::env::current_exe().context("failed to find this program's own file, to compile plugins")?;
    let compiler = Compiler::ChildProcess { program, arguments: vec!["compile".to_owned()] };
    let call_memory = call_memory.unwrap_or_else(call_memory_of_container);
    tracing::info!("all calls of plugins together may have {} MiB of memory", call_memory >> 20);
    let config = EngineConfig { cache: cache.path()?, compiler, limits: Limits::default(), call_memory };
    Ok(Engine::new(config)?)
}
