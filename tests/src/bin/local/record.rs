//! What is remembered about the host between two commands. A hint, never proof: the process is checked before anything
//! is done to it.

use std::{
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::files::Files;

/// A host that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its process.
    pub pid: u32,
    /// When its binary was built, in nanoseconds since 1970, as text.
    pub built: String,
}

impl Record {
    /// What was remembered; nothing where there is nothing, or nothing that can be read.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn load(files: &Files) -> Result<Option<Self>> {
        let path = files.record();
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read '{}'", path.display()))?;
        Ok(serde_json::from_str(&text).ok().and_then(|value| Self::read(&value)))
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Self { pid: value["pid"].as_u64()?.try_into().ok()?, built: value["built"].as_str()?.to_owned() })
    }

    /// Remembers it, all at once.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, files: &Files) -> Result<()> {
        let value = json!({"pid": self.pid, "built": self.built});
        let new = files.record().with_extension("new");
        fs::write(&new, format!("{value:#}\n"))?;
        Ok(fs::rename(new, files.record())?)
    }

    /// Forgets the host.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(files: &Files) -> Result<()> {
        if files.record().exists() {
            fs::remove_file(files.record())?;
        }
        Ok(())
    }
}

/// When a binary was built.
///
/// # Errors
/// If it cannot be looked at.
pub fn built(binary: &Path) -> Result<String> {
    let modified = fs::metadata(binary).and_then(|metadata| metadata.modified());
    let modified: SystemTime = modified.with_context(|| format!("failed to look at '{}'", binary.display()))?;
    Ok(modified.duration_since(UNIX_EPOCH)?.as_nanos().to_string())
}
