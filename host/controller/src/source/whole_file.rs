//! Writes files that are whole or as they were, whatever ends the host meanwhile. Makes no folder.

use std::{io, path::Path};

/// Has a file have this content.
///
/// # Errors
/// If it cannot be written. It is as it was then.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    // Another host may have the same folder.
    let unfinished = path.with_extension(format!("{}.unfinished", std::process::id()));
    std::fs::write(&unfinished, bytes)?;
    std::fs::rename(&unfinished, path)
}
