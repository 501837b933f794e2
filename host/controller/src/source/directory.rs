//! Plugins from a directory: every `*.wasm` in it is one, loaded when it comes, replaced when it changes, removed when
//! it goes, also through the symlink swap of a mounted ConfigMap. A file that does not load leaves the version that
//! works at work.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use notify::{RecursiveMode, Watcher};
use pilothouse_engine::{Engine, LoadError, contract::KindRef, digest};
use tokio::sync::Notify;

use crate::{host::Host, metrics::Collision};

/// Changes within this time are looked at together: copying a file makes many.
const SETTLE: Duration = Duration::from_millis(50);

/// How often the directory is looked at without a notification, for file systems that send none.
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

/// Why a file was not loaded.
#[derive(Debug, thiserror::Error)]
enum NotLoaded {
    #[error("failed to read it: {0}")]
    Read(#[source] io::Error),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Metric(#[from] Collision),
    #[error("plugin '{name}' is loaded from '{file}' already; remove one", file = file.display())]
    NameTaken { name: String, file: PathBuf },
    #[error("{kind} is reconciled by plugin '{plugin}' already; remove one")]
    KindTaken { kind: KindRef, plugin: String },
}

/// Loads plugins from a directory and keeps following it.
pub struct Directory {
    path: PathBuf,
    engine: Engine,
    host: Arc<Host>,
    files: BTreeMap<PathBuf, File>,
    told_empty: bool,
}

/// A file as it was looked at last.
struct File {
    stamp: Stamp,
    digest: String,
    /// The plugin it is, if it loaded at any time.
    plugin: Option<Served>,
    /// Whether the last look ended in a failure, so that a change elsewhere may help.
    failed: bool,
}

/// A plugin that a file serves.
#[derive(Clone)]
struct Served {
    name: String,
    kind: KindRef,
}

/// What changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl Directory {
    /// A source that has not looked yet.
    ///
    /// # Errors
    /// [`DirectoryError`] where the path is not a readable directory.
    pub fn open(path: &Path, engine: Engine, host: Arc<Host>) -> Result<Self, DirectoryError> {
        std::fs::read_dir(path).map_err(|why| DirectoryError { path: path.to_owned(), why: why.to_string() })?;
        host.loads(true);
        Ok(Self { path: path.to_owned(), engine, host, files: BTreeMap::new(), told_empty: false })
    }

    /// Loads what is there and follows the directory for ever.
    ///
    /// # Errors
    /// [`DirectoryError`] where it cannot be watched.
    pub async fn follow(mut self) -> Result<(), DirectoryError> {
        let changed = Arc::new(Notify::new());
        let waker = changed.clone();
        let fail = |path: &Path, why: notify::Error| DirectoryError { path: path.to_owned(), why: why.to_string() };
        // Reading a file is an event too; looking at the directory must not wake the next look.
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !event.kind.is_access() || is_closed_after_writing(&event)) {
                waker.notify_one();
            }
        })
        .map_err(|why| fail(&self.path, why))?;
        watcher.watch(&self.path, RecursiveMode::NonRecursive).map_err(|why| fail(&self.path, why))?;
        loop {
            self.look().await;
            self.host.loads(false);
            if tokio::time::timeout(RESCAN, changed.notified()).await.is_ok() {
                while tokio::time::timeout(SETTLE, changed.notified()).await.is_ok() {}
            }
        }
    }

    /// Compares the directory with what was there at the last look.
    async fn look(&mut self) {
        let found = match scan(&self.path) {
            Ok(found) => found,
            Err(error) => {
                return tracing::warn!(directory = %self.path.display(), "failed to read the plugin directory, the plugins at work go on: {error}");
            }
        };
        self.tell_if_empty(&found);
        let gone: Vec<_> = self.files.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        for path in gone {
            self.remove(&path);
        }
        for (path, stamp) in found {
            let known = self.files.get(&path);
            if known.is_none_or(|known| known.stamp != stamp) {
                self.load(path, stamp).await;
            }
        }
    }

    fn tell_if_empty(&mut self, found: &BTreeMap<PathBuf, Stamp>) {
        if found.is_empty() && !self.told_empty {
            tracing::warn!(directory = %self.path.display(), "no plugin in the plugin directory; copy a .wasm file into it. Waiting for one");
        }
        self.told_empty = found.is_empty();
    }

    fn remove(&mut self, path: &Path) {
        let Some(file) = self.files.remove(path) else { return };
        if let Some(served) = file.plugin {
            self.host.remove(&served.name);
            // A file that was refused because of this one may be good now.
            self.files.retain(|_, file| !file.failed || file.plugin.is_some());
        }
    }

    async fn load(&mut self, path: PathBuf, stamp: Stamp) {
        let before = self.files.get(&path).and_then(|file| file.plugin.clone());
        let (digest, result) = match tokio::fs::read(&path).await {
            Ok(bytes) => {
                let digest = digest(&bytes);
                let known = self.files.get_mut(&path).filter(|file| file.digest == digest);
                if let Some(known) = known {
                    known.stamp = stamp;
                    return;
                }
                (digest, self.install(&path, before.as_ref(), &bytes).await)
            }
            Err(error) => (String::new(), Err(NotLoaded::Read(error))),
        };
        let failed = result.is_err();
        let plugin = match result {
            Ok(served) => Some(served),
            Err(why) => {
                self.host.metrics().plugins.load_failed();
                let goes_on = if before.is_some() { "; the version that works goes on" } else { "" };
                tracing::error!(file = %path.display(), "the plugin was not loaded{goes_on}: {why}");
                before
            }
        };
        self.files.insert(path, File { stamp, digest, plugin, failed });
    }

    /// Loads a plugin and puts it to work, in the place of what the file served before.
    async fn install(&self, path: &Path, before: Option<&Served>, bytes: &[u8]) -> Result<Served, NotLoaded> {
        let plugin = self.engine.load(bytes).await?;
        let manifest = pilothouse_engine::Reconciler::manifest(&plugin);
        let served = Served { name: manifest.name.clone(), kind: manifest.reconciles.clone() };
        self.free_of_others(path, &served)?;
        self.host.metrics().measurements.reserve(manifest)?;
        self.host.metrics().plugins.loaded(&manifest.name, &plugin.stats);
        tracing::info!(
            file = %path.display(), plugin = manifest.name, version = manifest.version, kind = %manifest.reconciles,
            cached = plugin.stats.compiling.is_none(), took = ?plugin.stats.duration, "plugin loaded"
        );
        if let Some(before) = before.filter(|before| before.name != served.name) {
            self.host.remove(&before.name);
        }
        self.host.install(Arc::new(plugin));
        Ok(served)
    }

    /// One plugin per name, and one per kind, whatever the version: two would fight over the same children.
    fn free_of_others(&self, path: &Path, served: &Served) -> Result<(), NotLoaded> {
        for (other, file) in self.files.iter().filter(|(other, _)| *other != path) {
            let Some(theirs) = &file.plugin else { continue };
            if theirs.name == served.name {
                return Err(NotLoaded::NameTaken { name: theirs.name.clone(), file: other.clone() });
            }
            if theirs.kind.is_same_kind(&served.kind) {
                return Err(NotLoaded::KindTaken { kind: served.kind.clone(), plugin: theirs.name.clone() });
            }
        }
        Ok(())
    }
}

fn is_closed_after_writing(event: &notify::Event) -> bool {
    use notify::event::{AccessKind, AccessMode, EventKind};
    event.kind == EventKind::Access(AccessKind::Close(AccessMode::Write))
}

/// The plugin files of a directory, symlinks followed. A link to nowhere is not there.
fn scan(directory: &Path) -> io::Result<BTreeMap<PathBuf, Stamp>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden || path.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                found.insert(path, stamp(&metadata));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    Stamp { length: metadata.len(), modified: metadata.modified().ok(), inode: metadata.ino() }
}
