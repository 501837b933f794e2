//! Components that were loaded, kept on disk under their digests: a `Plugin` that names its digest starts from there while its source is
//! away. What is read is judged like anything else. Never keeps what was not loaded.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pilothouse_artifact::Evidence;
use pilothouse_engine::digest;
use serde::{Deserialize, Serialize};

use super::component::{Component, Fetched, Origin};
use crate::source::plugin_objects::digest_text;

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

    /// Keeps a component.
    pub(super) fn put(&self, component: &Component) {
        self.own().insert(component.digest.clone());
        let record =
            Record { manifest_digest: component.manifest_digest.clone(), evidence: component.evidence.clone() };
        if let Err(error) = self.write(component, &record) {
            tracing::warn!("the component cannot be kept for a time when its source is away: {error}");
        }
    }

    /// Removes all but these, by their digests as hexadecimal digits.
    pub fn retain(&self, digests: &BTreeSet<String>) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let is_wanted = path.file_stem().is_some_and(|stem| digests.contains(&*stem.to_string_lossy()));
            if !is_wanted && let Err(error) = std::fs::remove_file(&path) {
                tracing::debug!("failed to remove {}: {error}", path.display());
            }
        }
    }

    /// Removes all but these of those that this host has kept since it started. Others may be of another host.
    pub fn retain_own(&self, digests: &BTreeSet<String>) {
        let gone: Vec<_> = self.own().extract_if(.., |digest| !digests.contains(digest)).collect();
        for path in gone.iter().flat_map(|name| [self.component(name), self.record(name)]) {
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::debug!("failed to remove {}: {error}", path.display());
            }
        }
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

    fn component(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("wasm")
    }

    fn record(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("json")
    }
}

/// Writes a file that is whole or not there.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    let unfinished = path.with_extension("unfinished");
    std::fs::write(&unfinished, bytes)?;
    std::fs::rename(&unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(bytes: &[u8]) -> Component {
        Component {
            bytes: bytes.to_vec(),
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
        std::fs::write(kept.component(&first.digest), "f")?;
        assert_eq!(found(&first), None);
        kept.put(&first);
        kept.retain(&[first.digest.clone()].into());
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
        kept.retain_own(&[needed.digest.clone()].into());
        let is_there = |component: &Component| kept.get(&format!("sha256:{}", component.digest)).is_some();
        assert_eq!([&needed, &replaced, &foreign].map(is_there), [true, false, true]);
        assert!(!kept.record(&replaced.digest).exists());
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
