//! Compiled plugins of all tests of a run. Each test has a folder of its own for what a host keeps, and begins with the code that others have
//! compiled: compiling takes longer than most tests. Shares nothing else that a host keeps.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// How the files with code end.
const CODE: &str = "cwasm";

/// That of the control planes that run.
static SHARED: Mutex<Weak<CompiledCode>> = Mutex::new(Weak::new());

/// The code, and the folders of the tests.
pub struct CompiledCode {
    root: TempDir,
    folders: AtomicUsize,
}

impl CompiledCode {
    /// That of the control planes that run, or a new one.
    ///
    /// # Errors
    /// If its folder cannot be made.
    pub fn shared() -> Result<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = shared.upgrade() {
            return Ok(code);
        }
        let code = Arc::new(Self { root: tempfile::tempdir()?, folders: AtomicUsize::new(0) });
        fs::create_dir(code.code())?;
        *shared = Arc::downgrade(&code);
        Ok(code)
    }

    /// A new folder for what the host of a test keeps, with all code that there is.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn folder(&self) -> Result<PathBuf> {
        let folder = self.root.path().join(self.folders.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir(&folder)?;
        link_code(&self.code(), &folder)?;
        Ok(folder)
    }

    /// Lets other tests have the code that is in this folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn share(&self, folder: &Path) -> Result<()> {
        link_code(folder, &self.code())
    }

    fn code(&self) -> PathBuf {
        self.root.path().join("code")
    }
}

/// Has the files with code of one folder in another one, too. A host writes each as a whole, and never changes it.
fn link_code(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let file = entry?.path();
        let Some(name) = file.file_name().filter(|_| file.extension().is_some_and(|end| end == CODE)) else { continue };
        match fs::hard_link(&file, to.join(name)) {
            Ok(()) => {}
            // Another test has compiled it meanwhile, or the host has removed it.
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {}
            Err(error) => return Err(error).with_context(|| file.display().to_string()),
        }
    }
    Ok(())
}
