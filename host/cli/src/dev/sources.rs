//! The sources of projects on disk: tells when one is saved. Reads no file.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use pilothouse_authoring::is_source;
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, timeout},
};

/// How long nothing has to change until it is built. Editors save in several steps, and a checkout writes many files.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Something that changed.
pub(super) enum Change {
    /// A file or folder.
    Path(PathBuf),
    /// Nobody knows what: there were more changes than the system keeps.
    Unknown,
}

/// What changed since the sources were at rest.
pub(super) struct Changes {
    /// When the first of it did.
    pub(super) since: Instant,
    all: Vec<Change>,
}

impl Changes {
    /// Whether anything of a project changed.
    pub(super) fn concerns(&self, folder: &Path) -> bool {
        self.all.iter().any(|change| match change {
            Change::Path(path) => path.strip_prefix(folder).is_ok_and(is_source),
            Change::Unknown => true,
        })
    }
}

/// The sources of projects.
pub(super) struct Sources {
    folders: Vec<PathBuf>,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    changes: UnboundedReceiver<Change>,
}

impl Sources {
    /// Begins to watch all folders of projects that hold sources.
    ///
    /// # Errors
    /// If the system refuses to.
    pub(super) fn watch(folders: &[PathBuf]) -> anyhow::Result<Self> {
        let (sender, changes) = unbounded_channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            for change in event.map_or_else(|_| vec![Change::Unknown], changes_of) {
                // Nobody listens while the command ends.
                sender.send(change).ok();
            }
        });
        let watcher = watcher.context("failed to watch the sources")?;
        let mut sources = Self { folders: folders.to_owned(), watcher, watched: BTreeSet::new(), changes };
        sources.watch_new_folders()?;
        Ok(sources)
    }

    /// Watches the folders that came since the last time. Each is watched for itself, for what tools install or build can be a hundred
    /// thousand files.
    ///
    /// # Errors
    /// If the system refuses to.
    pub(super) fn watch_new_folders(&mut self) -> anyhow::Result<()> {
        let mut found = BTreeSet::new();
        for folder in &self.folders {
            find_folders(folder, folder, &mut found);
        }
        self.watched.retain(|folder| found.contains(folder));
        for folder in found.difference(&self.watched.clone()) {
            match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => self.watched.insert(folder.clone()),
                // Gone since it was found.
                Err(_) if !folder.exists() => continue,
                Err(error) => Err(error).with_context(|| format!("failed to watch '{}'", folder.display()))?,
            };
        }
        Ok(())
    }

    /// The next change. Loses none if it is dropped while it waits.
    ///
    /// # Errors
    /// If no further ones come.
    pub(super) async fn next(&mut self) -> anyhow::Result<Change> {
        self.changes.recv().await.context("the sources are not watched any more")
    }

    /// Waits until nothing changes any more.
    pub(super) async fn settled(&mut self, first: Change) -> Changes {
        let mut changes = Changes { since: Instant::now(), all: vec![first] };
        while let Ok(Some(change)) = timeout(DEBOUNCE, self.changes.recv()).await {
            changes.all.push(change);
        }
        for change in &changes.all {
            match change {
                // A folder that was taken away is watched no more, also if there is another one in its place.
                Change::Path(path) => drop(self.watched.remove(path)),
                Change::Unknown => self.watched.clear(),
            }
        }
        changes
    }
}

/// What an event tells of. To read a source changes nothing.
fn changes_of(event: notify::Event) -> Vec<Change> {
    if event.need_rescan() {
        return vec![Change::Unknown];
    }
    match event.kind.is_access() {
        true => Vec::new(),
        false => event.paths.into_iter().map(Change::Path).collect(),
    }
}

/// The folders of a project that hold sources, with its own. One that cannot be read holds none that a build could read.
fn find_folders(root: &Path, folder: &Path, found: &mut BTreeSet<PathBuf>) {
    found.insert(folder.to_owned());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // Not what a link leads to: that may be anything, and a circle.
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    for below in folders.filter(|path| path.strip_prefix(root).is_ok_and(is_source)) {
        find_folders(root, &below, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(changes: &Changes) -> BTreeSet<&Path> {
        let mut paths = BTreeSet::new();
        for change in &changes.all {
            if let Change::Path(path) = change {
                paths.insert(path.as_path());
            }
        }
        paths
    }

    #[tokio::test]
    async fn saved_sources_are_told_and_what_is_built_is_not() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?;
        for below in ["src", "build"] {
            std::fs::create_dir(root.join(below))?;
        }
        let mut sources = Sources::watch(std::slice::from_ref(&root))?;
        std::fs::write(root.join("build/web.wasm"), "built")?;
        std::fs::write(root.join("src/lib.rs"), "saved")?;
        let first = sources.next().await?;
        let changes = sources.settled(first).await;
        assert_eq!(paths(&changes), [root.join("src/lib.rs").as_path()].into());
        assert!(changes.concerns(&root) && !changes.concerns(&root.join("other")));
        Ok(())
    }

    #[tokio::test]
    async fn a_folder_that_comes_later_or_again_is_watched() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?;
        let mut sources = Sources::watch(std::slice::from_ref(&root))?;
        for text in ["first", "again"] {
            std::fs::create_dir(root.join("src"))?;
            let created = sources.next().await?;
            sources.settled(created).await;
            sources.watch_new_folders()?;
            std::fs::write(root.join("src/lib.rs"), text)?;
            let saved = sources.next().await?;
            assert!(paths(&sources.settled(saved).await).contains(root.join("src/lib.rs").as_path()), "{text}");
            std::fs::remove_dir_all(root.join("src"))?;
            let removed = sources.next().await?;
            sources.settled(removed).await;
        }
        Ok(())
    }
}
