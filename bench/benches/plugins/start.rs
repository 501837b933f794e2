//! The start of a host with many plugins in its directory whose machine code is in the cache.

use std::fs;

use anyhow::{Context, Result};
use jiff::Timestamp;
use pilothouse_bench::{process::cpu, table::Measured};
use pilothouse_tests::{
    artifacts,
    cluster::Namespace,
    copies::copy,
    host::Host,
    wait::{Look, eventually},
};
use serde_json::Value;

/// How many plugins.
const PLUGINS: usize = 20;

/// How long all plugins may take to load, also where they are compiled.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);

/// What each plugin has beside its code, as the components of some languages have: it is read, and goes into the digest.
const PADDING: usize = 6 << 20;

/// Loads so many plugins twice, and measures the second time.
pub async fn many_plugins(namespace: &Namespace, measured: &mut Vec<Measured>) -> Result<()> {
    let cache = tempfile::tempdir()?;
    let mut setup = namespace.setup();
    setup.cache = cache.path().join("cache");
    let mut host = Host::prepare(setup)?;
    let original = fs::read(artifacts::guest("copies")?)?;
    for number in 0..PLUGINS {
        let component = [copy(&original, number), custom_section(PADDING)].concat();
        fs::write(host.plugins().join(format!("copy-{number:03}.wasm")), component)?;
    }
    host.resume().await?;
    until_loaded(&host).await?;
    host.stop().await?;
    host.resume().await?;
    until_loaded(&host).await?;
    let log = host.log();
    let began = times(&log, |line| line["message"].as_str().is_some_and(|message| message.contains("starts")));
    let loaded = times(&log, |line| line["message"] == "plugin loaded");
    let (began, last) = began.first().zip(loaded.last()).context("the log has no times")?;
    measured.extend([
        ("start with 20 cached plugins of 6 MiB: all loaded, ms", last.duration_since(*began).as_secs_f64() * 1_000.0),
        ("start with 20 cached plugins: host CPU, ms", cpu(host.pid()?)? * 1_000.0),
    ]);
    host.stop().await
}

async fn until_loaded(host: &Host) -> Result<()> {
    eventually(PATIENCE, "all plugins to be loaded", async || {
        let loaded = host.log().matches("\"plugin loaded\"").count();
        Ok(Look::of(loaded >= PLUGINS, loaded))
    })
    .await
}

/// The times of the log lines that are meant.
fn times(log: &str, is_meant: impl Fn(&Value) -> bool) -> Vec<Timestamp> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| is_meant(line)).filter_map(|line| line["timestamp"].as_str()?.parse().ok()).collect()
}

/// A custom section with so many bytes.
fn custom_section(bytes: usize) -> Vec<u8> {
    let name = b"padding";
    let mut section = vec![0];
    section.extend(leb128(1 + name.len() + bytes));
    section.extend(leb128(name.len()));
    section.extend(name);
    section.resize(section.len() + bytes, 0);
    section
}

/// A number as WebAssembly has it.
fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        bytes.push(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}
