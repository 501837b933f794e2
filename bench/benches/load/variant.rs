//! What is measured side by side: the plugin as WebAssembly and linked natively, or two builds of the host. Starts nothing.

use std::path::PathBuf;

use anyhow::{Context, Result};
use pilothouse_tests::artifacts;

/// Something that is measured.
pub struct Variant {
    /// Its name, and that of its namespace.
    pub name: &'static str,
    /// What runs.
    pub program: Program,
}

/// What runs.
pub enum Program {
    /// The host of this build with the plugin in the form that the variant's name says.
    LoadHost,
    /// Another build of the host.
    Build(Build),
}

/// A build of the host, and its plugin.
pub struct Build {
    /// The binary.
    pub host: PathBuf,
    /// The plugin `app-service`, for the contract that both builds know.
    pub plugin: PathBuf,
}

/// All variants, in the order of the table's columns: that of `LOAD_HOSTS`, or the two forms of the plugin.
pub fn all() -> Result<Vec<Variant>> {
    let Ok(hosts) = std::env::var("LOAD_HOSTS") else {
        return Ok(["native", "wasm"].map(|name| Variant { name, program: Program::LoadHost }).into());
    };
    hosts.split(',').map(build).collect()
}

fn build(text: &str) -> Result<Variant> {
    let (name, host) = text.split_once('=').context("LOAD_HOSTS is written NAME=FILE,NAME=FILE")?;
    let plugin =
        std::env::var_os("LOAD_PLUGIN").map_or_else(|| artifacts::plugin("app-service"), |file| Ok(file.into()))?;
    // There are two of them, for as long as the process.
    Ok(Variant { name: name.to_owned().leak(), program: Program::Build(Build { host: host.into(), plugin }) })
}
