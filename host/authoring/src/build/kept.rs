//! The last component of a project, for languages whose tools make other bytes each time: as long as its sources are the same, it is taken
//! as it is. It knows no language.

use std::{
    io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::is_source;

/// The component that was made last, and what it was made of.
pub(super) struct Kept {
    folder: PathBuf,
    sources: String,
}

impl Kept {
    /// That in a folder, about the sources of a project and what else decides.
    ///
    /// # Errors
    /// A source cannot be read.
    pub(super) fn new(folder: PathBuf, project: &Path, others: &[String]) -> io::Result<Self> {
        let mut files = Vec::new();
        find(project, Path::new(""), &mut files)?;
        files.sort_unstable();
        let mut digest = Sha256::new();
        let mut add = |part: &[u8]| {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        };
        add(env!("CARGO_PKG_VERSION").as_bytes());
        for other in others {
            add(other.as_bytes());
        }
        for file in files {
            add(file.as_os_str().as_encoded_bytes());
            add(&std::fs::read(project.join(file))?);
        }
        Ok(Self { folder, sources: text(&digest.finalize()) })
    }

    /// The component, if it was made of the same.
    pub(super) fn component(&self) -> Option<Vec<u8>> {
        let component = std::fs::read(self.component_file()).ok()?;
        let record = std::fs::read_to_string(self.record_file()).ok()?;
        (record == self.record(&component)).then_some(component)
    }

    /// Keeps one that was made now.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn keep(&self, component: &[u8]) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        std::fs::write(self.component_file(), component)?;
        std::fs::write(self.record_file(), self.record(component))
    }

    fn component_file(&self) -> PathBuf {
        self.folder.join("component.wasm")
    }

    fn record_file(&self) -> PathBuf {
        self.folder.join("sources")
    }

    fn record(&self, component: &[u8]) -> String {
        format!("{} {}\n", self.sources, text(&Sha256::digest(component)))
    }
}

fn text(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All files of a folder that may be sources, by their paths in it.
fn find(folder: &Path, below: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder.join(below))? {
        let name = entry?.file_name();
        let path = below.join(&name);
        if !is_source(Path::new(&name)) {
            continue;
        }
        if folder.join(&path).is_dir() {
            find(folder, &path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_kept_until_one_of_its_sources_changes() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        let source = root.join("reconciler.py");
        std::fs::write(&source, "one")?;
        let kept = |others: &[String]| Kept::new(root.join("build/.kept"), root, others);
        assert_eq!(kept(&[])?.component(), None);
        kept(&[])?.keep(b"wasm")?;
        assert_eq!(kept(&[])?.component().as_deref(), Some(&b"wasm"[..]));
        assert_eq!(kept(&["a package".to_owned()])?.component(), None);
        std::fs::write(&source, "two")?;
        assert_eq!(kept(&[])?.component(), None);
        std::fs::write(&source, "one")?;
        std::fs::write(root.join("build/.kept/component.wasm"), "half")?;
        assert_eq!(kept(&[])?.component(), None, "it was not written to its end");
        Ok(())
    }
}
