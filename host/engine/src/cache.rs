//! The cache of precompiled code: a private directory with one file per component and engine version. Only this host writes to it.
//! A file is always complete, because it is written under another name and then renamed.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

/// The directory with precompiled code.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
    /// A hash of the engine's version and settings. It is part of the file name, so code of another engine is never found.
    compatibility: u64,
}

impl Cache {
    /// Opens the cache. Creates the directory if it is missing, with access for this user only.
    pub(crate) fn open(directory: &Path, engine: &wasmtime::Engine) -> io::Result<Self> {
        create_private(directory)?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Ok(Self { directory: directory.to_owned(), compatibility: hasher.finish() })
    }

    /// The file for the code of the component with this digest.
    pub(crate) fn path(&self, digest: &str) -> PathBuf {
        self.directory.join(format!("{digest}-{:016x}.cwasm", self.compatibility))
    }

    /// A temporary directory in the cache, for code before [`Cache::commit`]. On the same file system, a rename is atomic.
    pub(crate) fn scratch(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix(".compiling-").tempdir_in(&self.directory)
    }

    /// Moves finished code to its file, atomically.
    pub(crate) fn commit(&self, finished: &Path, digest: &str) -> io::Result<()> {
        std::fs::rename(finished, self.path(digest))
    }
}

#[cfg(unix)]
fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let metadata = std::fs::metadata(directory)?;
    // The directory may have existed before, and then `create` leaves its mode as it is.
    if metadata.permissions().mode() & 0o022 != 0 {
        let message = format!(
            "the cache directory '{}' (owner {}) can be written by others; machine code is loaded from it, so run \
             `chmod go-w` on it or choose another",
            directory.display(),
            metadata.uid()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_that_others_can_write_is_refused() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (private, open) = (folder.path().join("private"), folder.path().join("open"));
        let engine = wasmtime::Engine::default();
        assert!(Cache::open(&private, &engine).is_ok());
        assert_eq!(std::fs::metadata(&private)?.permissions().mode() & 0o777, 0o700);
        std::fs::create_dir(&open)?;
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777))?;
        let refused = Cache::open(&open, &engine).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("can be written by others"), "{refused}");
        Ok(())
    }

    #[test]
    fn code_is_there_as_a_whole_or_not_at_all() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let cache = Cache::open(folder.path(), &wasmtime::Engine::default())?;
        let scratch = cache.scratch()?;
        let unfinished = scratch.path().join("code");
        std::fs::write(&unfinished, b"code")?;
        assert!(!cache.path("digest").exists());
        cache.commit(&unfinished, "digest")?;
        assert_eq!(std::fs::read(cache.path("digest"))?, b"code");
        drop(scratch);
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 1, "nothing is left behind");
        Ok(())
    }
}
