//! Plugins from a directory. Every `*.wasm` file in it is a plugin: loaded when it appears, replaced when it changes, and removed when
//! it disappears, also through the symlink swap of a mounted ConfigMap. If a new file fails to load, the present version of the
//! plugin stays active.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use notify::{RecursiveMode, Watcher};
use pilothouse_engine::digest;
use tokio::sync::Notify;

use super::loader::{Loader, SourceId};
use crate::{host::Loading, plugin::PluginSettings};

/// Notifications within this time are handled together, because copying a file causes many.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// How often the directory is scanned without a notification, for file systems that send none.
const RESCAN: Duration = Duration::from_secs(10);

/// Why a directory cannot be a source.
#[derive(Debug, thiserror::Error)]
#[error("the plugin directory '{path}' cannot be used: {why}\ncreate it, or name another with --plugins DIR", path = path.display())]
pub struct DirectoryError {
    /// The directory.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// Loads plugins from a directory and follows its changes.
pub struct Directory {
    path: PathBuf,
    loader: Arc<Loader>,
    files: BTreeMap<PathBuf, File>,
    /// Until the first scan is done.
    loading: Option<Loading>,
    /// Whether the log has said that the directory is empty.
    empty_logged: bool,
}

/// A file as of the latest scan.
struct File {
    version: FileVersion,
    digest: String,
    /// Whether the present content failed to load. If another plugin goes, that may help.
    failed: bool,
}

/// Differs between two contents of a file, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    length: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl Directory {
    /// A source that has not scanned yet.
    ///
    /// # Errors
    /// [`DirectoryError`] if the path is not a readable directory.
    pub fn open(path: &Path, loader: Arc<Loader>) -> Result<Self, DirectoryError> {
        std::fs::read_dir(path).map_err(|why| DirectoryError { path: path.to_owned(), why: why.to_string() })?;
        let loading = Some(loader.host().begin_loading());
        Ok(Self { path: path.to_owned(), loader, files: BTreeMap::new(), loading, empty_logged: false })
    }

    /// Loads all plugins and follows the directory for ever.
    ///
    /// # Errors
    /// [`DirectoryError`] if the directory cannot be watched.
    pub async fn follow(mut self) -> Result<(), DirectoryError> {
        let changed = Arc::new(Notify::new());
        let waker = changed.clone();
        let fail = |path: &Path, why: notify::Error| DirectoryError { path: path.to_owned(), why: why.to_string() };
        // Reading a file causes a notification too, so a scan must not trigger the next one.
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access() || is_closed_after_writing(&event)) {
                waker.notify_one();
            }
        })
        .map_err(|why| fail(&self.path, why))?;
        // Before the first scan, so that a file that appears during that scan is noticed.
        watcher.watch(&self.path, RecursiveMode::NonRecursive).map_err(|why| fail(&self.path, why))?;
        loop {
            self.scan().await;
            self.loading = None;
            if tokio::time::timeout(RESCAN, changed.notified()).await.is_ok() {
                while tokio::time::timeout(DEBOUNCE, changed.notified()).await.is_ok() {}
            }
        }
    }

    /// Compares the directory with the previous scan, and loads and removes what changed.
    async fn scan(&mut self) {
        let found = match plugin_files(&self.path) {
            Ok(found) => found,
            Err(error) => {
                return tracing::warn!(directory = %self.path.display(), "failed to read the plugin directory; its plugins stay active: {error}");
            }
        };
        self.log_if_empty(&found);
        // Removals come first: the plugin of a renamed file would otherwise conflict with itself.
        let gone: Vec<_> = self.files.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        for path in gone {
            self.remove(&path);
        }
        for (path, version) in found {
            let known = self.files.get(&path);
            if known.is_none_or(|known| known.version != version) {
                self.load(path, version).await;
            }
        }
    }

    fn log_if_empty(&mut self, found: &BTreeMap<PathBuf, FileVersion>) {
        if found.is_empty() && !self.empty_logged {
            tracing::warn!(directory = %self.path.display(), "no plugin in the plugin directory; copy a .wasm file into it. Waiting for one");
        }
        self.empty_logged = found.is_empty();
    }

    fn remove(&mut self, path: &Path) {
        self.files.remove(path);
        if self.loader.remove(&SourceId::File(path.to_owned())) {
            // A file that was refused because of this one may be valid now.
            self.files.retain(|_, file| !file.failed);
        }
    }

    async fn load(&mut self, path: PathBuf, version: FileVersion) {
        let id = SourceId::File(path.clone());
        let (digest, failed) = match tokio::fs::read(&path).await {
            Ok(bytes) => {
                let digest = digest(&bytes);
                if let Some(known) = self.files.get_mut(&path).filter(|file| file.digest == digest) {
                    // For example after a mounted ConfigMap was updated: all its files are new ones, even those with the same
                    // content.
                    known.version = version;
                    return;
                }
                (digest, self.loader.load(&id, bytes, PluginSettings::default()).await.is_err())
            }
            Err(error) => {
                self.loader.host().metrics().plugins.load_failed();
                tracing::error!(source = %id, "the plugin was not loaded: failed to read it: {error}");
                (String::new(), true)
            }
        };
        self.files.insert(path, File { version, digest, failed });
    }
}

fn is_closed_after_writing(event: &notify::Event) -> bool {
    use notify::event::{AccessKind, AccessMode, EventKind};
    event.kind == EventKind::Access(AccessKind::Close(AccessMode::Write))
}

/// The plugin files of a directory. Symlinks are followed, and dangling ones are skipped.
fn plugin_files(directory: &Path) -> io::Result<BTreeMap<PathBuf, FileVersion>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden || path.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                found.insert(path, file_version(&metadata));
            }
            Ok(_) => {}
            // A dangling symlink, or a file that was removed since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn file_version(metadata: &std::fs::Metadata) -> FileVersion {
    use std::os::unix::fs::MetadataExt;
    FileVersion { length: metadata.len(), modified: metadata.modified().ok(), inode: metadata.ino() }
}
