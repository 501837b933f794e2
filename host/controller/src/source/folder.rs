//! A folder of the machine that changes while the host runs: which files are in it, as of which version, and when to look again. A file that
//! is a symbolic link, as in a mounted ConfigMap, is what it leads to. Never reads what is in a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::Metadata,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Notifications within this time are handled together, because copying a file causes many.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// How often the folder is looked at without a notification, for file systems that send none.
const RESCAN: Duration = Duration::from_secs(10);

/// Why a directory cannot be a source.
#[derive(Debug, thiserror::Error)]
#[error("the directory '{path}' cannot be used: {why}\ncreate it, or name another with {flag} DIR", path = path.display())]
pub struct DirectoryError {
    /// The directory.
    pub path: PathBuf,
    /// The flag that names it.
    pub flag: &'static str,
    /// Why.
    pub why: String,
}

/// Files by their paths, each with its version; an error where it is not known.
pub(super) type Files = BTreeMap<PathBuf, io::Result<FileVersion>>;

/// Differs between two contents of a file, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVersion {
    length: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl FileVersion {
    /// The version of the file with this metadata.
    pub(super) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { length: metadata.len(), modified: metadata.modified().ok(), inode: metadata.ino() }
    }
}

/// The names of files that something was told of since they were taken last.
#[derive(Default)]
struct Told(Mutex<BTreeSet<String>>);

impl Told {
    fn note(&self, event: &notify::Event) {
        let names = event.paths.iter().filter_map(|path| path.file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
    }

    fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A folder that is followed.
pub struct Folder {
    path: PathBuf,
    changed: Arc<Notify>,
    told: Arc<Told>,
    /// It ends when this is dropped.
    _watcher: RecommendedWatcher,
}

impl Folder {
    /// Follows a directory from now on, which a flag of the host names.
    ///
    /// # Errors
    /// [`DirectoryError`] if it is not a readable directory, or cannot be watched.
    pub fn open(path: &Path, flag: &'static str) -> Result<Self, DirectoryError> {
        let fail = |why: String| DirectoryError { path: path.to_owned(), flag, why };
        std::fs::read_dir(path).map_err(|why| fail(why.to_string()))?;
        let changed = Arc::new(Notify::new());
        let told = Arc::new(Told::default());
        let (waker, noted) = (changed.clone(), told.clone());
        // Reading a file causes a notification too, so a look at the folder must not trigger the next one.
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if let Ok(event) = event
                && (!event.kind.is_access() || is_closed_after_writing(&event))
            {
                noted.note(&event);
                waker.notify_one();
            }
        })
        .map_err(|why| fail(why.to_string()))?;
        watcher.watch(path, RecursiveMode::NonRecursive).map_err(|why| fail(why.to_string()))?;
        Ok(Self { path: path.to_owned(), changed, told, _watcher: watcher })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether both are one directory, under whatever names.
    pub fn is_same(&self, other: &Self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |path: &Path| std::fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        identity(&self.path).is_some_and(|own| identity(&other.path) == Some(own))
    }

    /// Waits until it is worth another look: something in it may have changed. Returns the names that something was told of, for what comes
    /// and goes meanwhile leaves no other trace.
    pub(super) async fn changed(&self) -> BTreeSet<String> {
        if tokio::time::timeout(RESCAN, self.changed.notified()).await.is_ok() {
            while tokio::time::timeout(DEBOUNCE, self.changed.notified()).await.is_ok() {}
        }
        self.told.take()
    }

    /// The files in it of whose names this is true. Dangling symbolic links are skipped.
    pub(super) fn files(&self, is_wanted: impl Fn(&str) -> bool) -> io::Result<Files> {
        let mut found = Files::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            if !path.file_name().is_some_and(|name| is_wanted(&name.to_string_lossy())) {
                continue;
            }
            match std::fs::metadata(&path) {
                Ok(metadata) if metadata.is_file() => {
                    found.insert(path, Ok(FileVersion::of(&metadata)));
                }
                Ok(_) => {}
                // A dangling symlink, or a file that was removed since the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    found.insert(path, Err(error));
                }
            }
        }
        Ok(found)
    }
}

fn is_closed_after_writing(event: &notify::Event) -> bool {
    use notify::event::{AccessKind, AccessMode, EventKind};
    event.kind == EventKind::Access(AccessKind::Close(AccessMode::Write))
}
