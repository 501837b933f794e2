//! The cache of precompiled code: a private directory with one file per component and engine version. Only this host writes to it.
//! A file is always complete, because it is written under another name and then renamed.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs::Metadata,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// How long it is remembered that a component takes too much to compile.
const REFUSED_FOR: Duration = Duration::from_secs(3_600);

/// How long code of other versions of the engine is kept, and what a compilation left that was killed; and whatever else lies in a cache
/// directory.
pub const KEPT_FOR: Duration = Duration::from_secs(30 * 86_400);

/// How old the mark of code may be that is used: far younger than what is pruned.
const MARKED_EACH: Duration = Duration::from_secs(86_400);

/// The code that stays after nothing uses it any more when more is added, so that a version that comes back need not be compiled.
const KEPT_UNUSED: usize = 8;

/// The directory with precompiled code.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
    /// A hash of the engine's version and settings. It is part of the file name, so code of another engine is never found.
    compatibility: u64,
    uses: Mutex<Uses>,
}

/// What of the code this process uses. Code that it never used is that of other processes.
#[derive(Debug, Default)]
struct Uses {
    /// How many use the code of a digest.
    used: BTreeMap<String, usize>,
    /// What was used, the longest unused first.
    unused: VecDeque<String>,
    /// What stays although nothing uses it.
    wanted: BTreeSet<String>,
}

/// Code that is used, or is about to be: as long as this is there, its file stays.
#[derive(Debug)]
pub(crate) struct UsedCode {
    cache: Arc<Cache>,
    digest: String,
}

impl Drop for UsedCode {
    fn drop(&mut self) {
        self.cache.end_use(&self.digest);
    }
}

impl Cache {
    /// Opens the cache. Creates the directory if it is missing, with access for this user only.
    pub(crate) fn open(directory: &Path, engine: &wasmtime::Engine) -> io::Result<Self> {
        create_private(directory)?;
        prune(directory, is_unused_for_long)?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Ok(Self { directory: directory.to_owned(), compatibility: hasher.finish(), uses: Mutex::default() })
    }

    /// Keeps the code of a digest as long as the result is there, whether the code is there yet or not.
    pub(crate) fn begin_use(self: &Arc<Self>, digest: &str) -> UsedCode {
        let mut uses = self.uses();
        *uses.used.entry(digest.to_owned()).or_default() += 1;
        uses.unused.retain(|unused| unused != digest);
        UsedCode { cache: self.clone(), digest: digest.to_owned() }
    }

    /// Keeps the code of these digests also while nothing uses it.
    pub(crate) fn keep(&self, wanted: BTreeSet<String>) {
        let mut uses = self.uses();
        uses.wanted = wanted;
        self.remove_unused(&mut uses);
    }

    /// Marks what is used, or kept, as used now, where its mark is old: a host may run for longer than code stays that nobody uses.
    pub(crate) fn mark_used(&self) {
        let digests: BTreeSet<_> = {
            let uses = self.uses();
            uses.used.keys().chain(&uses.wanted).cloned().collect()
        };
        for path in digests.iter().map(|digest| self.path(digest)) {
            let marked = mark_if_old(&path);
            if let Err(error) = marked
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!("failed to mark '{}' as used, so it may be compiled again: {error}", path.display());
            }
        }
    }

    fn end_use(&self, digest: &str) {
        let mut uses = self.uses();
        let Some(users) = uses.used.get_mut(digest) else { return };
        *users -= 1;
        if *users > 0 {
            return;
        }
        uses.used.remove(digest);
        // What was never compiled takes no place from what was. Nothing is removed here: a host that ends uses nothing any more, but
        // needs all of it at its next start.
        if self.path(digest).exists() {
            uses.unused.push_back(digest.to_owned());
        }
    }

    /// Removes what has been unused for the longest time, if there is more of it than is kept.
    fn remove_unused(&self, uses: &mut Uses) {
        let Uses { unused, wanted, .. } = uses;
        let mut surplus = unused.iter().filter(|digest| !wanted.contains(*digest)).count().saturating_sub(KEPT_UNUSED);
        unused.retain(|digest| {
            if surplus == 0 || wanted.contains(digest) {
                return true;
            }
            surplus -= 1;
            let path = self.path(digest);
            if let Err(error) = std::fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!("failed to remove '{}', which nothing uses any more: {error}", path.display());
            }
            false
        });
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file for the code of the component with this digest.
    pub(crate) fn path(&self, digest: &str) -> PathBuf {
        self.directory.join(format!("{digest}-{:016x}.cwasm", self.compatibility))
    }

    /// Whether there is code for the component with this digest. That it is used keeps it from being pruned.
    ///
    /// # Errors
    /// If somebody else could have written the file: machine code of others is never run.
    pub(crate) fn has(&self, digest: &str) -> io::Result<bool> {
        let path = self.path(digest);
        let metadata = match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            found => found?,
        };
        check_private(&path, &metadata)?;
        mark(&path)?;
        Ok(true)
    }

    /// Why the component with this digest was not compiled a while ago; none if it is worth a try. It costs so much to find out that
    /// nobody shall pay for it at each start.
    pub(crate) fn refusal(&self, digest: &str) -> Option<String> {
        let path = self.refusal_path(digest);
        let age = path.metadata().ok()?.modified().ok()?.elapsed().unwrap_or_default();
        let why = std::fs::read_to_string(&path).ok().filter(|_| age < REFUSED_FOR)?;
        let minutes = (REFUSED_FOR - age).as_secs() / 60;
        Some(format!("{why}; it is tried again after {minutes} min, or when '{}' is removed", path.display()))
    }

    /// Remembers for a while why a component was not compiled.
    pub(crate) fn remember_refusal(&self, digest: &str, why: &str) -> io::Result<()> {
        prune(&self.directory, is_past_refusal)?;
        std::fs::write(self.refusal_path(digest), why)
    }

    fn refusal_path(&self, digest: &str) -> PathBuf {
        self.path(digest).with_extension(REFUSED)
    }

    /// A temporary directory in the cache, for code before [`Cache::commit`]. On the same file system, a rename is atomic.
    pub(crate) fn scratch(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix(SCRATCH).tempdir_in(&self.directory)
    }

    /// Moves finished code to its file, atomically. It may take the place of what nothing uses any more.
    pub(crate) fn commit(&self, finished: &Path, digest: &str) -> io::Result<()> {
        std::fs::rename(finished, self.path(digest))?;
        self.remove_unused(&mut self.uses());
        Ok(())
    }
}

/// The extension of files that say why a component was not compiled.
const REFUSED: &str = "refused";

/// What the names of temporary directories begin with.
const SCRATCH: &str = ".compiling-";

/// Whether nobody has used an entry for long. Another directory is not the cache's own.
fn is_unused_for_long(path: &Path, metadata: &Metadata, age: Duration) -> bool {
    let is_scratch = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SCRATCH));
    age > KEPT_FOR && (is_scratch || !metadata.is_dir())
}

/// Whether an entry says why something was not compiled, and does not count any more.
fn is_past_refusal(path: &Path, _: &Metadata, age: Duration) -> bool {
    age > REFUSED_FOR && path.extension().is_some_and(|extension| extension == REFUSED)
}

/// Removes entries by their paths, what is known of them, and the time since they were used.
fn prune(directory: &Path, is_pruned: fn(&Path, &Metadata, Duration) -> bool) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = match entry.metadata() {
            // Another process with this cache was done with it in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        let path = entry.path();
        if !metadata.modified()?.elapsed().is_ok_and(|age| is_pruned(&path, &metadata, age)) {
            continue;
        }
        let removed = match metadata.is_dir() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
        if let Err(error) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("failed to remove '{}', which nobody has used for long: {error}", path.display());
        }
    }
    Ok(())
}

/// Marks a file as used now.
fn mark(path: &Path) -> io::Result<()> {
    std::fs::File::open(path)?.set_modified(SystemTime::now())
}

fn mark_if_old(path: &Path) -> io::Result<()> {
    let is_old = std::fs::metadata(path)?.modified()?.elapsed().is_ok_and(|age| age > MARKED_EACH);
    if is_old { mark(path) } else { Ok(()) }
}

fn create_private(directory: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // The directory may have existed before, and then `create` leaves its mode as it is.
    check_private(directory, &std::fs::metadata(directory)?)
}

/// Whether only this user may write something from which machine code is loaded.
fn check_private(path: &Path, metadata: &Metadata) -> io::Result<()> {
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    let problem = if owner != user {
        format!("belongs to user {owner}, and this is user {user}")
    } else if metadata.is_symlink() {
        "is a symbolic link".to_owned()
    } else if metadata.permissions().mode() & 0o022 != 0 {
        "can be written by others (`chmod go-w` on it)".to_owned()
    } else {
        return Ok(());
    };
    let message =
        format!("'{}' {problem}; machine code is loaded from it, so choose another cache directory", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

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

    #[test]
    fn code_that_others_could_have_written_is_not_used() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let cache = Cache::open(folder.path(), &wasmtime::Engine::default())?;
        assert!(!cache.has("digest")?, "there is none");
        std::fs::write(cache.path("digest"), b"code")?;
        assert!(cache.has("digest")?);
        std::fs::set_permissions(cache.path("digest"), std::fs::Permissions::from_mode(0o666))?;
        let refused = cache.has("digest").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("can be written by others"), "{refused}");
        std::fs::write(folder.path().join("elsewhere"), b"code")?;
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), cache.path("link"))?;
        assert!(cache.has("link").is_err(), "a link may lead anywhere");
        Ok(())
    }

    #[test]
    fn what_takes_too_much_to_compile_is_not_tried_for_a_while() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let cache = Cache::open(folder.path(), &wasmtime::Engine::default())?;
        assert_eq!(cache.refusal("digest"), None);
        cache.remember_refusal("digest", "it needs too much")?;
        let refused = cache.refusal("digest").unwrap_or_default();
        assert!(refused.starts_with("it needs too much; it is tried again after 59 min"), "{refused}");
        let long_ago = SystemTime::now() - REFUSED_FOR;
        std::fs::File::open(cache.refusal_path("digest"))?.set_modified(long_ago)?;
        assert_eq!(cache.refusal("digest"), None, "it is tried again");
        Ok(())
    }

    #[test]
    fn code_of_versions_that_were_replaced_goes_but_for_the_last_ones() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let cache = Arc::new(Cache::open(folder.path(), &wasmtime::Engine::default())?);
        std::fs::write(cache.path("of-another-process"), b"code")?;
        let compiled = |number: usize| {
            let (scratch, used) = (cache.scratch()?, cache.begin_use(&format!("{number}")));
            std::fs::write(scratch.path().join("code"), b"code")?;
            cache.commit(&scratch.path().join("code"), &format!("{number}")).map(|()| used)
        };
        let there = || (0..40).filter(|number| cache.path(&format!("{number}")).exists()).collect::<Vec<_>>();
        cache.keep(["3".to_owned()].into());
        let at_work = compiled(0)?;
        let also_at_work = cache.begin_use("0");
        for number in 1..40 {
            drop(compiled(number)?);
        }
        assert_eq!(there(), [0, 3, 31, 32, 33, 34, 35, 36, 37, 38, 39]);
        drop(at_work);
        let back = cache.begin_use("32");
        drop(compiled(1)?);
        assert_eq!(there(), [0, 1, 3, 31, 32, 33, 34, 35, 36, 37, 38, 39], "those that are used count no longer");
        drop((also_at_work, back));
        drop(compiled(2)?);
        assert_eq!(
            there(),
            [0, 1, 2, 3, 32, 35, 36, 37, 38, 39],
            "it is the one that was not used for the longest time"
        );
        cache.keep(BTreeSet::new());
        assert_eq!(there(), [0, 1, 2, 32, 36, 37, 38, 39]);
        assert!(cache.path("of-another-process").exists());
        Ok(())
    }

    #[test]
    fn a_host_that_ends_leaves_all_code_to_its_next_start() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let cache = Arc::new(Cache::open(folder.path(), &wasmtime::Engine::default())?);
        let used: Vec<_> = (0..40).map(|number| cache.begin_use(&format!("{number}"))).collect();
        for number in 0..40 {
            std::fs::write(cache.path(&format!("{number}")), b"code")?;
        }
        drop(used);
        assert!((0..40).all(|number| cache.path(&format!("{number}")).exists()));
        Ok(())
    }

    #[test]
    fn what_was_refused_long_ago_is_removed_when_something_else_is() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let cache = Cache::open(folder.path(), &wasmtime::Engine::default())?;
        cache.remember_refusal("old", "it needs too much")?;
        cache.remember_refusal("new", "it needs too much")?;
        let long_ago = SystemTime::now() - REFUSED_FOR - Duration::from_secs(1);
        std::fs::File::open(cache.refusal_path("old"))?.set_modified(long_ago)?;
        cache.remember_refusal("newest", "it needs too much")?;
        assert!(!cache.refusal_path("old").exists() && cache.refusal_path("new").exists());
        Ok(())
    }

    #[test]
    fn what_nobody_has_used_for_long_is_removed() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (engine, long_ago) = (wasmtime::Engine::default(), SystemTime::now() - KEPT_FOR - Duration::from_secs(1));
        let cache = Cache::open(folder.path(), &engine)?;
        for name in ["old", "used"] {
            std::fs::write(cache.path(name), b"code")?;
            std::fs::File::open(cache.path(name))?.set_modified(long_ago)?;
        }
        assert!(cache.has("used")?);
        Cache::open(folder.path(), &engine)?;
        assert!(!cache.has("old")? && cache.has("used")?);
        Ok(())
    }

    #[test]
    fn what_is_used_for_long_stays() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (engine, long_ago) = (wasmtime::Engine::default(), SystemTime::now() - KEPT_FOR - Duration::from_secs(1));
        let cache = Arc::new(Cache::open(folder.path(), &engine)?);
        let _used = cache.begin_use("used");
        cache.keep(["wanted".to_owned()].into());
        for name in ["used", "wanted", "old"] {
            std::fs::write(cache.path(name), b"code")?;
            std::fs::File::open(cache.path(name))?.set_modified(long_ago)?;
        }
        cache.mark_used();
        let recently = SystemTime::now() - MARKED_EACH / 2;
        std::fs::File::open(cache.path("used"))?.set_modified(recently)?;
        cache.mark_used();
        assert_eq!(cache.path("used").metadata()?.modified()?, recently, "it is not written all the time");
        Cache::open(folder.path(), &engine)?;
        assert!(cache.path("used").exists() && cache.path("wanted").exists() && !cache.path("old").exists());
        Ok(())
    }

    #[test]
    fn a_cache_opens_while_another_process_compiles_into_it() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (engine, done) = (wasmtime::Engine::default(), AtomicBool::new(false));
        let cache = Cache::open(folder.path(), &engine)?;
        std::thread::scope(|scope| {
            let compiling = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let scratches = (0..16).map(|_| cache.scratch()).collect::<io::Result<Vec<_>>>()?;
                    drop(scratches);
                }
                io::Result::Ok(())
            });
            let opened = (0..500).try_for_each(|_| Cache::open(folder.path(), &engine).map(drop));
            done.store(true, Ordering::Relaxed);
            compiling.join().map_err(|_| io::Error::other("the other thread panicked"))?.and(opened)
        })
    }
}
