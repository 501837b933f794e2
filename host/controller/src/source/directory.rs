//! Plugins from a directory. Every `*.wasm` file in it is a plugin: loaded when it appears, replaced when it changes, and removed when
//! it disappears, also through the symlink swap of a mounted ConfigMap. If a new file fails to load, the present version of the
//! plugin stays active.
//!
//! Several are loaded at once, and those whose machine code is in the cache before any that has to be compiled. Of several files for one
//! name or one kind, the first one in the order of their names is tried first. When the host starts, those that worked before come first.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{StreamExt, stream};
use pilothouse_engine::{Declaration, Manifest, digest};
use tokio::task::spawn_blocking;

use super::{
    files_at_work::FilesAtWork,
    folder::{FileVersion, Folder},
    loader::{Loader, NotLoaded, SourceId},
    plugin_memory::{NoRoom, Wanted},
};
use crate::{host::Loading, plugin::PluginSettings};

/// How many files are loaded at once. Their bytes are in memory meanwhile.
const AT_ONCE: usize = 4;

/// What the names of plugins end with.
const EXTENSION: &str = ".wasm";

/// Loads plugins from a directory and follows its changes.
pub struct Directory {
    folder: Folder,
    loader: Arc<Loader>,
    files: BTreeMap<PathBuf, File>,
    /// Those with plugins at work, for the next start.
    at_work: FilesAtWork,
    /// Until the first scan is done.
    loading: Option<Loading>,
    /// Whether the log has said that the directory is empty.
    empty_logged: bool,
}

/// A file as of the latest scan.
struct File {
    version: FileVersion,
    digest: String,
    /// Why the present content failed to load, if it did.
    failure: Option<Failure>,
}

/// Why a file failed to load, by what may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// Another plugin was in the way, when the loader had changed so often.
    Blocked { changes: u64 },
    /// Plugins keep as much memory as they may, and this one would keep so much.
    NoRoom { wanted: Wanted },
    /// It may have passed by the next scan.
    Passing,
    /// It is wrong.
    Lasting,
}

impl Failure {
    /// Whether the file may be loaded as it is, once something else has changed, and not only because others have gone.
    fn may_pass(self) -> bool {
        matches!(self, Self::Passing | Self::Blocked { .. })
    }
}

impl File {
    /// Whether the same content may load by now. `before`: the memory that those before it would keep that are tried again.
    fn is_worth_a_try(&self, path: &Path, loader: &Loader, before: &mut usize) -> bool {
        match self.failure {
            Some(Failure::Blocked { changes }) => changes != loader.changes(),
            Some(Failure::NoRoom { wanted }) => {
                let has_room = loader.memory().has_room(&SourceId::File(path.to_owned()), wanted.and(*before));
                *before += if has_room { wanted.bytes } else { 0 };
                has_room
            }
            Some(Failure::Passing) => true,
            Some(Failure::Lasting) | None => false,
        }
    }
}

impl Directory {
    /// A source that has not scanned yet. What worked before the host started has its place kept.
    pub fn new(folder: Folder, loader: Arc<Loader>, at_work: FilesAtWork) -> Self {
        let loading = Some(loader.host().begin_loading());
        for (path, bytes) in at_work.all() {
            loader.memory().keep_place(SourceId::File(path), bytes);
        }
        Self { folder, loader, files: BTreeMap::new(), at_work, loading, empty_logged: false }
    }

    /// Loads all plugins and follows the directory for ever.
    pub async fn follow(mut self) {
        loop {
            self.scan().await;
            self.loading = None;
            // All of it is compared with what was loaded.
            self.folder.changed().await;
        }
    }

    /// Compares the directory with the previous scan, and loads and removes what changed.
    async fn scan(&mut self) {
        let found = match self.found() {
            Ok(found) => found,
            Err(error) => {
                let directory = self.folder.path().display();
                return tracing::warn!(%directory, "failed to read the plugin directory; its plugins stay active: {error}");
            }
        };
        self.log_if_empty(&found);
        // Removals come first: the plugin of a renamed file would otherwise conflict with itself.
        let known = self.files.keys().cloned().chain(self.at_work.all().map(|(path, _)| path));
        let gone: BTreeSet<_> = known.filter(|path| !found.contains_key(path)).collect();
        for path in gone {
            self.files.remove(&path);
            let id = SourceId::File(path);
            self.loader.remove(&id);
            self.loader.memory().give_place_up(&id);
        }
        let mut wanted = 0;
        self.files.retain(|path, file| !file.is_worth_a_try(path, &self.loader, &mut wanted));
        let is_changed = |path: &PathBuf, version| self.files.get(path).is_none_or(|known| known.version != version);
        let changed = found.into_iter().filter(|(path, version)| is_changed(path, *version)).collect();
        let Rounds { cached, compiled, clashing } = self.rounds(changed).await;
        let has_worked =
            |(path, _): &(PathBuf, FileVersion)| self.loader.memory().place(&SourceId::File(path.clone())).is_some();
        let (cached_before, cached) = cached.into_iter().partition(has_worked);
        let (compiled_before, compiled) = compiled.into_iter().partition(has_worked);
        self.load_all(cached_before, AT_ONCE).await;
        self.load_all(compiled_before, AT_ONCE).await;
        // As for files, so for `Plugin`s: those that worked have a place, and new ones take what is left.
        self.loader.memory().those_of_before().await;
        self.load_all(cached, AT_ONCE).await;
        self.load_all(compiled, AT_ONCE).await;
        self.load_all(clashing, 1).await;
        self.note_at_work();
    }

    /// Notes for the next start which files have plugins at work, or a place for one.
    fn note_at_work(&mut self) {
        let (loader, files) = (&self.loader, &self.files);
        let keeps = |path: &PathBuf| {
            let id = SourceId::File(path.clone());
            loader.loaded(&id).map(|loaded| loaded.kept_bytes()).or_else(|| loader.memory().place(&id))
        };
        self.at_work.write(files.keys().filter_map(|path| Some((path.clone(), keeps(path)?))));
    }

    fn found(&self) -> io::Result<BTreeMap<PathBuf, FileVersion>> {
        self.folder.files(is_plugin)?.into_iter().map(|(path, version)| Ok((path, version?))).collect()
    }

    /// Judges changed files, in the order of their names, by what they declare.
    async fn rounds(&mut self, changed: Vec<(PathBuf, FileVersion)>) -> Rounds {
        let (mut rounds, mut before) = (Rounds::default(), Vec::new());
        let judged = changed.into_iter().map(|(path, version)| judge(path, version));
        let mut judged = stream::iter(judged).buffered(AT_ONCE);
        while let Some((path, version, judged)) = judged.next().await {
            let Some(Judged { digest, manifest }) = judged else {
                // To be loaded is to be told what is wrong with it.
                rounds.compiled.push((path, version));
                continue;
            };
            if let Some(known) = self.files.get_mut(&path).filter(|file| file.digest == digest) {
                // For example after a mounted ConfigMap was updated: all its files are new ones, even those with the same content.
                known.version = version;
                continue;
            }
            let clashes = manifest.as_ref().is_some_and(|own| before.iter().any(|other| clash(own, other)));
            before.extend(manifest);
            let round = match (clashes, self.loader.is_compiled(&digest)) {
                (true, _) => &mut rounds.clashing,
                (false, true) => &mut rounds.cached,
                (false, false) => &mut rounds.compiled,
            };
            round.push((path, version));
        }
        rounds
    }

    /// Loads files, so many at once.
    async fn load_all(&mut self, files: Vec<(PathBuf, FileVersion)>, at_once: usize) {
        let loader = self.loader.clone();
        let loads = files.into_iter().map(|(path, version)| load(loader.clone(), path, version));
        let mut loaded = stream::iter(loads).buffer_unordered(at_once);
        while let Some((path, file)) = loaded.next().await {
            if !file.failure.is_some_and(Failure::may_pass) {
                self.loader.memory().give_place_up(&SourceId::File(path.clone()));
            }
            self.files.insert(path, file);
        }
    }

    fn log_if_empty(&mut self, found: &BTreeMap<PathBuf, FileVersion>) {
        if found.is_empty() && !self.empty_logged {
            tracing::warn!(directory = %self.folder.path().display(), "no plugin in the plugin directory; copy a .wasm file into it. Waiting for one");
        }
        self.empty_logged = found.is_empty();
    }
}

/// Changed files, in the order in which they are loaded.
#[derive(Default)]
struct Rounds {
    /// Those whose machine code is there.
    cached: Vec<(PathBuf, FileVersion)>,
    /// Those that have to be compiled.
    compiled: Vec<(PathBuf, FileVersion)>,
    /// Those for a name or a kind that a file before them has. They are loaded one after the other, so that it does not depend on speed
    /// which one is refused.
    clashing: Vec<(PathBuf, FileVersion)>,
}

/// What is known of a file before it is loaded.
struct Judged {
    digest: String,
    /// What it declares; none if it is no plugin.
    manifest: Option<Manifest>,
}

/// Reads a file, and keeps nothing of its bytes: many may have changed. None if it cannot be read.
async fn judge(path: PathBuf, version: FileVersion) -> (PathBuf, FileVersion, Option<Judged>) {
    let file = path.clone();
    let judged = spawn_blocking(move || {
        let bytes = std::fs::read(file).ok()?;
        Some(Judged { digest: digest(&bytes), manifest: Manifest::read(&bytes).ok() })
    });
    (path, version, judged.await.ok().flatten())
}

/// Whether two plugins cannot both be at work.
fn clash(one: &Manifest, other: &Manifest) -> bool {
    one.name == other.name || one.owns_kind_of(other)
}

/// Loads a file and installs its plugin.
async fn load(loader: Arc<Loader>, path: PathBuf, version: FileVersion) -> (PathBuf, File) {
    let id = SourceId::File(path.clone());
    let (digest, failure) = match tokio::fs::read(&path).await {
        Ok(bytes) => {
            let digest = digest(&bytes);
            match settings(&loader, &path, &bytes) {
                Some(settings) => {
                    let loaded = loader.load(&id, bytes, settings).await;
                    (digest, loaded.err().map(|why| failure(&why, &loader)))
                }
                // Nothing is wrong with it: it lies beside plugins that are complete by themselves.
                None => {
                    tracing::info!(
                        source = %id,
                        "the plugin takes its kinds from its configuration, and does nothing without one; give it one with --config \
                         NAME=FILE, where NAME is the name of its file without .wasm"
                    );
                    (digest, Some(Failure::Lasting))
                }
            }
        }
        Err(error) => {
            loader.host().metrics().plugins.load_failed();
            tracing::error!(source = %id, "the plugin was not loaded: failed to read it: {error}");
            (String::new(), Some(Failure::Passing))
        }
    };
    (path, File { version, digest, failure })
}

/// The settings of a file. Where its kinds come from its configuration, that is the one that is given for the name of the file, for what the
/// plugin is called is in it; none without one.
fn settings(loader: &Loader, path: &Path, bytes: &[u8]) -> Option<PluginSettings> {
    let settings = PluginSettings::default();
    if !matches!(Declaration::read(bytes), Ok(Declaration::Configured(_))) {
        return Some(settings);
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let config = loader.host().config_of(&name, &settings)?;
    Some(PluginSettings { config: Some(config), ..settings })
}

fn failure(why: &NotLoaded, loader: &Loader) -> Failure {
    match why {
        NotLoaded::NoRoom(NoRoom { wanted, .. }) => Failure::NoRoom { wanted: *wanted },
        _ if why.is_conflict() => Failure::Blocked { changes: loader.changes() },
        _ if why.is_passing() => Failure::Passing,
        _ => Failure::Lasting,
    }
}

/// Whether a file in the directory is a plugin, by its name.
fn is_plugin(name: &str) -> bool {
    !name.starts_with('.') && name.len() > EXTENSION.len() && name.ends_with(EXTENSION)
}
