//! Reads a component from the directory that the host is given, with the signatures beside it. Whoever may write a `Plugin` names a file of that
//! directory and no other one: no name is a path, and no symbolic link leads out of it. Writes nothing.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use pilothouse_artifact::Evidence;
use tokio::task::spawn_blocking;

use super::{
    component::{BUNDLE, Fetched, MAX_BYTES, Origin},
    error::ContentError,
    packing::unpacked,
    turns::{Turn, Work},
};
use crate::{api::DirectorySource, source::folder::FileVersion};

/// What the name of a component's file ends with.
const EXTENSION: &str = ".wasm";

/// The longest name of a file.
const LONGEST_NAME: usize = 253;

/// How many signatures of one component are read.
const MAX_BUNDLES: usize = 32;

/// The most bytes of a signature; one has some 10 KiB.
const MAX_BUNDLE_BYTES: u64 = 1 << 20;

/// The component of a source, not judged yet.
pub(super) async fn fetch(
    directory: Option<&Path>,
    turn: &Turn,
    source: &DirectorySource,
    with_signatures: bool,
) -> Result<Fetched, ContentError> {
    let directory = directory.ok_or(ContentError::NoDirectory)?.to_owned();
    let name = source.file_name.clone();
    if !is_file_name(&name) {
        return Err(ContentError::FileName(name));
    }
    let place = (directory.clone(), name.clone());
    let opened = blocking(&name, move || open(&place.0, &place.1)).await?;
    if opened.length > MAX_BYTES {
        return Err(ContentError::TooLarge);
    }
    turn.take_for(opened.length, Work::Slow).await;
    let packed = blocking(&name, move || read(opened)).await?;
    let component = name.clone();
    let evidence = match with_signatures {
        true => blocking(&name, move || bundles(&directory, &component)).await?,
        false => Vec::new(),
    };
    Ok(Fetched { bytes: unpacked(packed, turn).await?, origin: Origin::Bytes, evidence })
}

/// Whether a file holds a component, or a signature of one, by its name.
pub fn is_of_components(name: &str) -> bool {
    is_file_name(name) || name.ends_with(BUNDLE)
}

/// Whether a file is the component of a source or a signature of it, by its name.
pub fn is_of(source: &DirectorySource, name: &str) -> bool {
    name == source.file_name || is_bundle_of(&source.file_name, name)
}

/// What the CRD says of the name, which may be another version's.
fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let stem = name.strip_suffix(EXTENSION).unwrap_or_default();
    name.len() <= LONGEST_NAME && stem.chars().all(is_plain) && !stem.is_empty() && !stem.starts_with(['.', '-'])
}

fn is_bundle_of(component: &str, name: &str) -> bool {
    name.strip_prefix(component).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(BUNDLE))
}

/// A file that can be read.
struct Opened {
    name: String,
    file: File,
    length: u64,
    version: FileVersion,
}

fn open(directory: &Path, name: &str) -> Result<Opened, ContentError> {
    let fail = |error: io::Error| unreadable(name, &error);
    let missing = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ContentError::NoFile(name.to_owned()),
        _ => unreadable(name, &error),
    };
    let open = || -> Result<(File, PathBuf), io::Error> {
        let path = std::fs::canonicalize(directory.join(name))?;
        // What is no file, such as a named pipe, is not opened: that could wait for ever.
        let file = if std::fs::metadata(&path)?.is_file() { File::open(&path)? } else { return Err(not_a_file()) };
        Ok((file, path))
    };
    // Where a mounted ConfigMap changes in between, what the links led to is gone.
    let (file, path) = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => open(),
        opened => opened,
    }
    .map_err(missing)?;
    if !path.starts_with(std::fs::canonicalize(directory).map_err(fail)?) {
        return Err(ContentError::OutsideFile(name.to_owned()));
    }
    let metadata = file.metadata().map_err(fail)?;
    let version = FileVersion::of(&metadata);
    Ok(Opened { name: name.to_owned(), file, length: metadata.len(), version })
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no file")
}

/// All of a file, and of one state of it.
fn read(mut opened: Opened) -> Result<Vec<u8>, ContentError> {
    let fail = |error: io::Error| unreadable(&opened.name, &error);
    let mut bytes = Vec::new();
    (&mut opened.file).take(opened.length).read_to_end(&mut bytes).map_err(fail)?;
    let version = FileVersion::of(&opened.file.metadata().map_err(fail)?);
    match version == opened.version && bytes.len() as u64 == opened.length {
        true => Ok(bytes),
        false => Err(ContentError::FileChanging(opened.name)),
    }
}

fn bundles(directory: &Path, component: &str) -> Result<Vec<Evidence>, ContentError> {
    let fail = |error: io::Error| unreadable(component, &error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name().to_string_lossy().into_owned();
        names.extend(Some(name).filter(|name| is_bundle_of(component, name)));
    }
    names.sort();
    let mut bundles = Vec::new();
    for name in names.iter().take(MAX_BUNDLES) {
        match open(directory, name) {
            Ok(opened) if opened.length > MAX_BUNDLE_BYTES => {}
            Ok(opened) => bundles.push(Evidence::bundle(read(opened)?)),
            // It went meanwhile, or it dangles: nobody has signed with it.
            Err(ContentError::NoFile(_)) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(bundles)
}

fn unreadable(name: &str, error: &dyn std::fmt::Display) -> ContentError {
    ContentError::Unreadable { what: "file", name: name.to_owned(), why: error.to_string() }
}

/// On a thread that may wait for the disk.
async fn blocking<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> Result<T, ContentError> {
    spawn_blocking(work).await.map_err(|error| unreadable(name, &error))?
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write, os::unix::fs::symlink};

    use super::*;
    use crate::source::plugin_objects::content::turns::Turns;

    fn source(name: &str) -> DirectorySource {
        DirectorySource { file_name: name.to_owned() }
    }

    #[test]
    fn a_name_is_no_path_and_has_its_own_signatures() {
        for (name, expected) in [
            ("web.wasm", true),
            ("web-1.2_a.wasm", true),
            ("../web.wasm", false),
            ("a/web.wasm", false),
            ("/web.wasm", false),
            (".web.wasm", false),
            ("-web.wasm", false),
            (".wasm", false),
            ("web", false),
            ("web.wasm\0", false),
            (&format!("{}.wasm", "a".repeat(LONGEST_NAME)), false),
        ] {
            assert_eq!(is_file_name(name), expected, "{name:?}");
        }
        for (name, expected) in [
            ("web.wasm", true),
            ("web.wasm.sigstore.json", true),
            ("web.wasm.team.sigstore.json", true),
            ("web.sigstore.json", false),
            ("web.wasmsigstore.json", false),
            ("web2.wasm.sigstore.json", false),
            ("other.wasm", false),
        ] {
            assert_eq!(is_of(&source("web.wasm"), name), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn a_link_within_the_directory_is_what_it_leads_to() -> io::Result<()> {
        let (directory, outside) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("..2026"))?;
        fs::write(path("..2026/web.wasm"), "inside")?;
        symlink("..2026", path("..data"))?;
        symlink("..data/web.wasm", path("web.wasm"))?;
        fs::write(outside.path().join("web.wasm"), "outside")?;
        symlink(outside.path().join("web.wasm"), path("out.wasm"))?;
        symlink("nowhere.wasm", path("dangling.wasm"))?;
        symlink("round.wasm", path("round.wasm"))?;
        fs::create_dir(path("folder.wasm"))?;
        fs::File::create(path("large.wasm"))?.set_len(MAX_BYTES + 1)?;
        let turn = Turns::default().begin_look();
        for (name, expected) in [
            ("web.wasm", Ok("inside")),
            ("out.wasm", Err("SourceInvalid")),
            ("..2026/web.wasm", Err("SourceInvalid")),
            ("dangling.wasm", Err("FileMissing")),
            ("round.wasm", Err("FileUnreadable")),
            ("folder.wasm", Err("FileUnreadable")),
            ("large.wasm", Err("TooLarge")),
        ] {
            let fetched = fetch(Some(directory.path()), &turn, &source(name), false).await;
            let found = fetched.map(|it| String::from_utf8_lossy(&it.bytes).into_owned());
            assert_eq!(found.map_err(|why| why.reason()), expected.map(str::to_owned), "{name}");
        }
        let none = fetch(None, &turn, &source("web.wasm"), false).await;
        assert_eq!(none.err().map(|why| why.reason()), Some("DirectoryMissing"));
        Ok(())
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_no_component() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("web.wasm");
        fs::write(&path, "first")?;
        let opened = || open(directory.path(), "web.wasm").map_err(|why| io::Error::other(why.to_string()));
        let replaced = opened()?;
        assert_eq!(read(opened()?).ok(), Some(b"first".to_vec()));
        fs::write(directory.path().join("next"), "next!")?;
        fs::rename(directory.path().join("next"), &path)?;
        assert_eq!(read(replaced).ok(), Some(b"first".to_vec()), "a file is whole whatever takes its place");
        let growing = opened()?;
        fs::OpenOptions::new().append(true).open(&path)?.write_all(b"more")?;
        let why = read(growing).err();
        assert!(why.as_ref().is_some_and(|why| why.reason() == "FileUnreadable" && why.is_passing()), "{why:?}");
        Ok(())
    }
}
