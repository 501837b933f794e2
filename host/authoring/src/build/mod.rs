//! From the sources of a project to its plugin file, in whatever language. It writes the file only if its content changes, so that a host
//! that watches the folder does not load it again.

mod c;
mod declaration;
mod finalizer;
mod go;
mod input;
mod kept;
pub(crate) mod python;
mod rust;
pub(crate) mod typescript;

use std::{
    io,
    path::{Path, PathBuf},
};

use pilothouse_pack::{Packed, pack};
use pilothouse_wit::{Interfaces, Manifest};

use self::{input::Input, kept::Kept};
use crate::{Language, template::COMPOSITION};

/// The folder of a project for its plugin.
const OUTPUT: &str = "build";

/// The folder in that for what its tools made, where they make other bytes each time.
const KEPT: &str = ".kept";

/// What a plugin is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be installed: small, and quick to call.
    Release,
    /// To be tried: quick to build, where the tools of the language leave the choice.
    Development,
}

/// A plugin that was built.
#[derive(Debug)]
pub struct Built {
    /// Its file.
    pub file: PathBuf,
    /// The bytes in the file.
    pub wasm: Vec<u8>,
    /// What it says about itself.
    pub manifest: Manifest,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The language of its sources.
    pub language: Language,
}

/// Why there is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder has no project in it.
    #[error("there is no plugin in '{}': it has none of {}; make one with `pilothouse new`", .0.display(), Language::markers())]
    NoProject(PathBuf),
    /// The folder has a kind without code in it.
    #[error(
        "'{}' is a kind without code, and there is nothing to build: put compose.wasm into its folder build, and go on with `pilothouse test` \
         and `pilothouse dev`; its README.md says more",
        .0.display()
    )]
    Composition(PathBuf),
    /// A tool of the language is missing.
    #[error("{what} is missing; {install}")]
    Missing {
        /// What is missing.
        what: String,
        /// What to do about it.
        install: String,
    },
    /// The file with the manifest is no YAML.
    #[error("'{}' is malformed: {reason}", path.display())]
    Declaration {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The sources have a finalizer, and the manifest does not say so.
    #[error(
        "{file} has a finalizer, and the host would never ask it; say `finalizes: true` in plugin.yaml, or take it out"
    )]
    UndeclaredFinalizer {
        /// The file with the finalizer.
        file: &'static str,
    },
    /// The manifest says that there is a finalizer, and there is none.
    #[error("plugin.yaml says `finalizes: true`, and the plugin has no finalizer; {how}, or take the line out")]
    NoFinalizer {
        /// How it gets one.
        how: &'static str,
    },
    /// A tool refused the sources. It has told why.
    #[error("{0}")]
    Tool(String),
    /// What the tools made is no plugin.
    #[error("what was built is no plugin: {0}")]
    Pack(#[from] pilothouse_pack::Error),
    /// A file cannot be read or written.
    #[error("failed to {action} '{}': {source}", path.display())]
    File {
        /// What was to be done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Builds the project in a folder. The plugin goes to `build/NAME.wasm` in it.
///
/// # Errors
/// [`BuildError`] says what to do.
pub fn build(folder: &Path, purpose: Purpose) -> Result<Built, BuildError> {
    let no_project = || BuildError::NoProject(folder.to_owned());
    // Compilers and the paths in their output want the whole path.
    let folder = folder.canonicalize().map_err(|_| no_project())?;
    let no_language = || match folder.join(COMPOSITION).is_file() {
        true => BuildError::Composition(folder.clone()),
        false => no_project(),
    };
    let language = Language::of(&folder).ok_or_else(no_language)?;
    let Compiled { module, manifest, finalizes } = compile(&folder, language, purpose)?;
    let Packed { wasm, declaration } = pack(&module, manifest.as_deref())?;
    let manifest = declaration.fixed().map_err(pilothouse_pack::Error::from)?;
    finalizer::check_plugin(language, finalizes, manifest.finalizes)?;
    let imports = Interfaces::read(&wasm).map_err(pilothouse_pack::Error::from)?.imports;
    let file = folder.join(OUTPUT).join(format!("{}.wasm", manifest.name));
    write_if_changed(&file, &wasm)?;
    Ok(Built { file, wasm, manifest, imports, language })
}

/// What the tools of a language make of the sources.
struct Compiled {
    module: Vec<u8>,
    /// The manifest as JSON text, where it is not in the module.
    manifest: Option<String>,
    /// Whether that says that there is a finalizer.
    finalizes: bool,
}

fn compile(folder: &Path, language: Language, purpose: Purpose) -> Result<Compiled, BuildError> {
    if language == Language::Rust {
        return Ok(Compiled { module: rust::compile(folder, purpose)?, manifest: None, finalizes: false });
    }
    // First, for a mistake in it is told at once.
    let manifest = declaration::manifest(folder)?;
    let file = |source| BuildError::File { action: "write in", path: std::env::temp_dir(), source };
    let scratch = tempfile::tempdir().map_err(file)?;
    let input = Input { folder, scratch: scratch.path(), manifest: &manifest };
    let finalizes = input.finalizes();
    finalizer::check_sources(folder, language, finalizes)?;
    let module = match language {
        Language::Rust => rust::compile(folder, purpose),
        Language::Go => go::compile(folder, scratch.path()),
        Language::C => c::compile(folder, scratch.path()),
        Language::Python => kept_or_compiled(&input, &python::packages(folder), python::compile),
        Language::TypeScript => kept_or_compiled(&input, &[], typescript::compile),
    }?;
    Ok(Compiled { module, manifest: Some(manifest), finalizes })
}

/// What was made last, as long as its sources are the same; else what is made now.
fn kept_or_compiled(
    input: &Input<'_>,
    others: &[String],
    compile: fn(&Input<'_>) -> Result<Vec<u8>, BuildError>,
) -> Result<Vec<u8>, BuildError> {
    let failed = |action| move |source| BuildError::File { action, path: input.folder.to_owned(), source };
    let kept = Kept::new(input.folder.join(OUTPUT).join(KEPT), input.folder, others).map_err(failed("read"))?;
    if let Some(component) = kept.component() {
        return Ok(component);
    }
    let component = compile(input)?;
    kept.keep(&component).map_err(failed("write in"))?;
    Ok(component)
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    std::fs::read(path).map_err(|source| BuildError::File { action: "read", path: path.to_owned(), source })
}

/// Writes a file beside the plugin and renames it, so that a host that watches the folder never sees half a plugin.
fn write_if_changed(file: &Path, wasm: &[u8]) -> Result<(), BuildError> {
    if std::fs::read(file).is_ok_and(|there| there == wasm) {
        return Ok(());
    }
    let partial = file.with_extension("wasm.part");
    let write = || {
        file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(&partial, wasm)?;
        std::fs::rename(&partial, file)
    };
    write().map_err(|source| BuildError::File { action: "write", path: file.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_project_is_told_so() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        for place in [folder.path().to_owned(), folder.path().join("nowhere")] {
            let refused = build(&place, Purpose::Release);
            assert!(matches!(&refused, Err(BuildError::NoProject(named)) if *named == place), "{refused:?}");
        }
        Ok(())
    }

    #[test]
    fn a_file_with_the_same_content_is_left_alone() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("build/web.wasm");
        write_if_changed(&file, b"one")?;
        let first = std::fs::metadata(&file)?.modified()?;
        write_if_changed(&file, b"one")?;
        assert_eq!(std::fs::metadata(&file)?.modified()?, first);
        write_if_changed(&file, b"two")?;
        assert_eq!(std::fs::read(&file)?, b"two");
        assert_eq!(std::fs::read_dir(folder.path().join("build"))?.count(), 1);
        Ok(())
    }
}
