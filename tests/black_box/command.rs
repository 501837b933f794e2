//! Runs the host's binary to its end and returns its exit code and output.

use std::{ffi::OsStr, io::Write, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};
use tokio::process::Command;

/// The time limit for a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time limit for one that waits until a plugin is compiled: a large one takes minutes on a busy machine.
pub const COMPILATION: Duration = Duration::from_secs(600);

/// The result of a command.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code.
    pub code: i32,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

/// Runs `pilothouse` with arguments, without an environment that could change what it does.
pub async fn pilothouse<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Result<Ended> {
    pilothouse_within(PATIENCE, arguments).await
}

/// The same with another time limit.
pub async fn pilothouse_within<A: AsRef<OsStr>>(
    patience: Duration,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Ended> {
    let mut command = Command::new(artifacts::host_binary()?);
    for variable in ["KUBECONFIG", "LOG_LEVEL", "LOG_FORMAT", "WATCH_NAMESPACE", "POD_NAMESPACE", "PILOTHOUSE_PLUGINS"]
    {
        command.env_remove(variable);
    }
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(patience, command.output()).await.context("the command did not end")??;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).context("the command did not write UTF-8");
    let code = output.status.code().context("a signal ended the command")?;
    Ok(Ended { code, output: text(output.stdout)?, errors: text(output.stderr)? })
}

impl Ended {
    /// Checks that the command succeeded, and returns its standard output.
    pub fn succeeded(self) -> Result<String> {
        ensure!(self.code == 0, "exit code {}: {}", self.code, self.errors);
        Ok(self.output)
    }

    /// Checks that the command failed with exit code 1 and that its error message has all of these words.
    pub fn failed_with(self, words: &[&str]) -> Result<()> {
        ensure!(self.code == 1, "exit code {}, not 1: {self:?}", self.code);
        let mut lines = self.errors.lines().skip_while(|line| !line.starts_with("error: ")).peekable();
        ensure!(lines.peek().is_some(), "it does not say what failed: {self:?}");
        let last = lines.collect::<Vec<_>>().join("\n");
        words.iter().try_for_each(|word| {
            ensure!(last.contains(word), "the message does not name {word:?}: {last}");
            Ok(())
        })?;
        ensure!(!self.errors.contains("panicked"), "it panicked: {}", self.errors);
        Ok(())
    }
}

/// A temporary file with this text. It is deleted when the value is dropped.
pub fn file(text: &[u8]) -> Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(text)?;
    Ok(file)
}

/// A copy of a plugin with a changed manifest.
pub async fn repacked(plugin: &Path, change: impl FnOnce(&mut Value)) -> Result<tempfile::NamedTempFile> {
    let printed = pilothouse([Path::new("inspect"), plugin]).await?.succeeded()?;
    let mut manifest: Value = serde_saphyr::from_str(&printed).context("it is not YAML")?;
    change(&mut manifest);
    let (manifest, packed) = (file(manifest.to_string().as_bytes())?, file(b"")?);
    let paths = [Path::new("pack"), plugin, Path::new("--manifest"), manifest.path(), Path::new("-o"), packed.path()];
    pilothouse(paths).await?.succeeded()?;
    Ok(packed)
}

/// The guest `scripted` with a manifest that is replaced in its bytes, because `pilothouse pack` would refuse the manifest.
pub fn with_manifest(plugin: &Path, change: impl FnOnce(&mut Value)) -> Result<tempfile::NamedTempFile> {
    let mut bytes = std::fs::read(plugin)?;
    let begins = br#"{"name":"scripted","version":"#;
    let places: Vec<_> = bytes.windows(begins.len()).enumerate().filter(|(_, part)| part == begins).collect();
    let places: Vec<_> = places.into_iter().map(|(at, _)| at).collect();
    let first = *places.first().context("no manifest")?;
    let mut values = serde_json::Deserializer::from_slice(&bytes[first..]).into_iter::<Value>();
    let mut manifest = values.next().context("no manifest")??;
    let length = values.byte_offset();
    change(&mut manifest);
    // Padded with spaces, which JSON ignores.
    let text = format!("{manifest:<length$}", manifest = manifest.to_string());
    ensure!(text.len() == length, "the manifest is longer than the one before");
    for at in places {
        bytes[at..at + length].copy_from_slice(text.as_bytes());
    }
    file(&bytes)
}

/// A guest whose configuration needs a colour, red or green.
pub async fn with_schema(guest: &str) -> Result<tempfile::NamedTempFile> {
    let schema =
        json!({"type": "object", "required": ["colour"], "properties": {"colour": {"enum": ["red", "green"]}}});
    repacked(&artifacts::guest(guest)?, |manifest| manifest["configSchema"] = schema).await
}
