//! Which files of a directory had plugins at work when the host ended, and what each of them kept in memory: in a small file beside the machine
//! code, so that files that were refused do not take their places when the host starts. Loads nothing.
//!
//! # Caveats
//!
//! Where that file is lost, or where hosts with directories under one path share it, new plugins may come before some that worked.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use pilothouse_engine::digest;

use super::whole_file::write_whole;

/// What was written of a directory.
pub struct FilesAtWork {
    file: PathBuf,
    directory: PathBuf,
    written: Written,
}

/// What the plugin of each file keeps, in bytes, by the name of the file.
type Written = BTreeMap<String, usize>;

impl FilesAtWork {
    /// What was written of a directory, in this folder, which nobody else may write. Nothing if it cannot be read.
    pub fn read(folder: &Path, directory: &Path) -> Self {
        let path = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        let file = folder.join(digest(path.as_os_str().as_encoded_bytes())).with_extension("json");
        let written = written_in(&file).unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!("which plugins of the directory worked before is not known: {error}");
            }
            Written::new()
        });
        Self { file, directory: directory.to_owned(), written }
    }

    /// The files with what their plugins keep.
    pub fn all(&self) -> impl Iterator<Item = (PathBuf, usize)> {
        self.written.iter().map(|(name, bytes)| (self.directory.join(name), *bytes))
    }

    /// Writes what is at work now, if that is something else.
    pub fn write(&mut self, at_work: impl Iterator<Item = (PathBuf, usize)>) {
        let name = |path: PathBuf| path.file_name().map(OsStr::to_owned).map(OsString::into_string)?.ok();
        let now: Written = at_work.filter_map(|(path, bytes)| Some((name(path)?, bytes))).collect();
        if now == self.written {
            return;
        }
        if let Err(error) = write(&self.file, &now) {
            tracing::warn!("which plugins of the directory work cannot be kept for the next start: {error}");
        }
        self.written = now;
    }
}

fn written_in(file: &Path) -> io::Result<Written> {
    Ok(serde_json::from_slice(&std::fs::read(file)?)?)
}

fn write(file: &Path, written: &Written) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    write_whole(file, &serde_json::to_vec(written)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_worked_is_known_at_the_next_start() -> io::Result<()> {
        let (folder, plugins) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let read = || FilesAtWork::read(&folder.path().join("files"), plugins.path());
        let all = |files: &FilesAtWork| files.all().collect::<Vec<_>>();
        let mut files = read();
        assert_eq!(all(&files), []);
        let at_work: Vec<_> = [("a.wasm", 1), ("b.wasm", 2)].map(|(name, it)| (plugins.path().join(name), it)).into();
        files.write(at_work.clone().into_iter());
        assert_eq!(all(&read()), at_work);
        // Of another directory it says nothing.
        let other = FilesAtWork::read(&folder.path().join("files"), folder.path());
        assert_eq!(all(&other), []);
        // What is damaged is nothing.
        std::fs::write(&files.file, "{")?;
        assert_eq!(all(&read()), []);
        Ok(())
    }
}
