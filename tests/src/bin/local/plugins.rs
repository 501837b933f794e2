//! Puts the reference plugins into the plugin directory, without ever replacing a file that the user put there.

use std::{
    fs::{self, File},
    io::ErrorKind,
    path::Path,
};

use anyhow::{Context, Result};
use pilothouse_tests::artifacts;

use crate::{files::Files, say};

/// The plugins of a fresh folder.
const PLUGINS: [&str; 6] =
    ["app-service", "training-job", "ai-llm-model", "llm-model", "llm-deployment", "model-deployment"];

/// Installs what is missing, and replaces by a new build what an earlier `up` installed.
///
/// # Errors
/// If a file cannot be read or written. Names the file.
pub fn install(files: &Files) -> Result<()> {
    PLUGINS.iter().try_for_each(|name| install_one(name, files))
}

fn install_one(name: &str, files: &Files) -> Result<()> {
    let file = format!("{name}.wasm");
    let (place, ours) = (files.plugins().join(&file), files.installed().join(&file));
    let build = fs::read(artifacts::plugin(name)?)?;
    let (there, installed) = (read(&place)?, read(&ours)?);
    match there {
        Some(there) if there == build => {}
        Some(there) if installed.as_ref() != Some(&there) => {
            say(&format!("{} is not from `make up`: it stays as it is", place.display()));
            return Ok(());
        }
        Some(_) => say(&format!("{}: replaced by the new build", place.display())),
        None => say(&format!("{}: installed", place.display())),
    }
    // The copy first: a crash in between must not make the file look like the user's.
    write(&ours, &build)?;
    if read(&place)?.as_ref() != Some(&build) {
        write(&place, &build)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read '{}'", path.display())),
    }
}

/// All at once: the host never sees half a file.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let hidden = path.with_file_name(format!(".{}.new", path.file_name().unwrap_or_default().display()));
    File::create(&hidden).and_then(|mut file| std::io::Write::write_all(&mut file, bytes))?;
    fs::rename(&hidden, path).with_context(|| format!("failed to write '{}'", path.display()))
}
