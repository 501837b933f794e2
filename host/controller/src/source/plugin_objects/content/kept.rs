//! Components that were loaded, kept on disk under their digests: a `Plugin` that names its digest starts from there while its source is
//! away. What is read is judged like anything else. Hosts of several clusters may share the directory, so none removes what another one may
//! need. Never keeps what was not loaded.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use pilothouse_artifact::Evidence;
use pilothouse_engine::{KEPT_FOR, digest};
use serde::{Deserialize, Serialize};

use super::component::{Component, Fetched, Origin};
use crate::source::{plugin_objects::digest_text, whole_file::write_whole};

/// The components in a directory.
#[derive(Clone)]
pub struct KeptComponents {
    directory: PathBuf,
    /// The digests of those that this host has kept since it started.
    own: Arc<Mutex<BTreeSet<String>>>,
}

/// What is kept beside the bytes.
#[derive(Serialize, Deserialize)]
struct Record {
    manifest_digest: Option<String>,
    evidence: Vec<Evidence>,
}

impl KeptComponents {
    /// Keeps components in this directory, which nobody else may write.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, own: Arc::default() }
    }

    /// The component with this digest, `sha256:` and hexadecimal digits, if it is kept and whole.
    pub(super) fn get(&self, digest_of_component: &str) -> Option<Fetched> {
        let name = digest_text::digits(digest_of_component)?;
        let bytes = std::fs::read(self.component(name)).ok()?;
        let record: Record = serde_json::from_slice(&std::fs::read(self.record(name)).ok()?).ok()?;
        // A file may have been damaged since.
        (digest(&bytes) == name).then(|| Fetched {
            bytes,
            origin: record.manifest_digest.map_or(Origin::Bytes, Origin::Manifest),
            evidence: record.evidence,
        })
    }

    /// How many bytes the component with this digest has, if it is kept.
    pub(super) fn size(&self, digest_of_component: &str) -> Option<u64> {
        let name = digest_text::digits(digest_of_component)?;
        Some(std::fs::metadata(self.component(name)).ok()?.len())
    }

    /// Keeps a component.
    pub(super) fn put(&self, component: &Component) {
        self.own().insert(component.digest.clone());
        let record =
            Record { manifest_digest: component.manifest_digest.clone(), evidence: component.evidence.clone() };
        if let Err(error) = self.write(component, &record) {
            tracing::warn!("the component cannot be kept for a time when its source is away: {error}");
        }
    }

    /// Removes what no host has needed for as long as compiled code is kept.
    pub fn remove_unneeded(&self) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        for entry in entries.flatten() {
            let needed = entry.metadata().and_then(|metadata| metadata.modified());
            if needed.is_ok_and(|needed| needed.elapsed().is_ok_and(|age| age > KEPT_FOR)) {
                remove(&entry.path());
            }
        }
    }

    /// Removes what this host has kept since it started and needs no longer, and says of the rest that it is needed. Digests are hexadecimal
    /// digits.
    pub fn renew(&self, needed: &BTreeSet<String>) {
        let gone: Vec<_> = self.own().extract_if(.., |digest| !needed.contains(digest)).collect();
        gone.iter().flat_map(|name| self.files(name)).for_each(|path| remove(&path));
        needed.iter().flat_map(|name| self.files(name)).for_each(|path| touch(&path));
    }

    fn own(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, component: &Component, record: &Record) -> io::Result<()> {
        let (bytes, about) = (self.component(&component.digest), self.record(&component.digest));
        std::fs::create_dir_all(&self.directory)?;
        write_whole(&about, &serde_json::to_vec(record)?)?;
        write_whole(&bytes, &component.bytes)
    }

    fn files(&self, name: &str) -> [PathBuf; 2] {
        [self.component(name), self.record(name)]
    }

    fn component(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("wasm")
    }

    fn record(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("json")
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::debug!("failed to remove {}: {error}", path.display());
    }
}

/// Has a file be of now, if it is there.
fn touch(path: &Path) {
    let touched = std::fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    if let Err(error) = touched
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!("failed to touch {}: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn component(bytes: &[u8]) -> Component {
        Component {
            bytes: bytes.into(),
            digest: digest(bytes),
            manifest_digest: Some("sha256:1".to_owned()),
            evidence: vec![Evidence::bundle(b"{}".to_vec())],
        }
    }

    #[test]
    fn what_is_kept_is_found_until_it_is_damaged_or_removed() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let kept = KeptComponents::new(directory.path().join("components"));
        let (first, second) = (component(b"first"), component(b"second"));
        let found = |component: &Component| kept.get(&format!("sha256:{}", component.digest)).map(|found| found.bytes);
        assert_eq!(found(&first), None);
        kept.put(&first);
        kept.put(&second);
        assert_eq!((found(&first), found(&second)), (Some(b"first".to_vec()), Some(b"second".to_vec())));
        assert_eq!((kept.size(&format!("sha256:{}", first.digest)), kept.size("sha256:00")), (Some(5), None));
        std::fs::write(kept.component(&first.digest), "f")?;
        assert_eq!(found(&first), None);
        kept.put(&first);
        kept.renew(&[first.digest.clone()].into());
        assert_eq!((found(&first), found(&second)), (Some(b"first".to_vec()), None));
        Ok(())
    }

    #[test]
    fn what_this_host_has_kept_goes_when_nobody_needs_it() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let (kept, other) =
            (KeptComponents::new(directory.path().to_owned()), KeptComponents::new(directory.path().to_owned()));
        let [needed, replaced, foreign] = [&b"needed"[..], b"replaced", b"foreign"].map(component);
        [&needed, &replaced].into_iter().for_each(|component| kept.put(component));
        other.put(&foreign);
        kept.renew(&[needed.digest.clone()].into());
        let is_there = |component: &Component| kept.get(&format!("sha256:{}", component.digest)).is_some();
        assert_eq!([&needed, &replaced, &foreign].map(is_there), [true, false, true]);
        assert!(!kept.record(&replaced.digest).exists());
        Ok(())
    }

    #[test]
    fn a_host_that_starts_removes_only_what_no_host_has_needed_for_long() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let kept = || KeptComponents::new(directory.path().to_owned());
        let (starting, other) = (kept(), kept());
        let [needed, old, of_other] = [&b"needed"[..], b"old", b"of another host"].map(component);
        [&needed, &old, &of_other].into_iter().for_each(|component| other.put(component));
        for path in [&needed, &old].into_iter().flat_map(|component| other.files(&component.digest)) {
            std::fs::File::open(path)?.set_modified(SystemTime::now() - KEPT_FOR - Duration::from_secs(1))?;
        }
        kept().renew(&[needed.digest.clone(), "never kept".to_owned()].into());
        starting.remove_unneeded();
        let is_there = |component: &Component| starting.get(&format!("sha256:{}", component.digest)).is_some();
        assert_eq!([&needed, &old, &of_other].map(is_there), [true, false, true]);
        assert!(!starting.record(&old.digest).exists());
        Ok(())
    }

    #[test]
    fn a_digest_is_no_path() {
        let kept = KeptComponents::new("/".into());
        for digest in ["sha256:../etc/passwd", "sha256:", "etc/passwd"] {
            assert!(kept.get(digest).is_none(), "{digest}");
        }
    }
}
