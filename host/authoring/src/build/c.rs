//! Plugins in C: clang makes a core module for WASI preview 1, which exports and imports by the names of the contract.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{BuildError, OUTPUT, read};
use crate::tool::{Run, Tool};

const INSTALL: &str = "on Debian or Ubuntu run `apt-get install clang lld wasi-libc libclang-rt-dev-wasm32`; elsewhere install the WASI SDK \
    (https://github.com/WebAssembly/wasi-sdk), with its folder bin first in the PATH";
const CLANG: Tool = Tool { program: "clang", install: INSTALL };
const LINKER: Tool = Tool { program: "wasm-ld", install: INSTALL };

/// The core module of a project.
///
/// # Errors
/// [`BuildError`]: a tool is missing, or refuses the sources.
pub(super) fn compile(folder: &Path, scratch: &Path) -> Result<Vec<u8>, BuildError> {
    let clang = CLANG.find()?;
    LINKER.find()?;
    let module = scratch.join("module.wasm");
    let flags = ["-mexec-model=reactor", "-std=c11", "-Wall", "-Wextra", "-Os", "-flto", "-Wl,--strip-all", "-o"];
    let mut run = Run::new(&clang, folder, &flags).argument(&module);
    for argument in target(&clang)? {
        run = run.argument(argument);
    }
    let mut sources = Vec::new();
    find_sources(folder, Path::new(""), &mut sources).map_err(|source| BuildError::File {
        action: "read",
        path: folder.to_owned(),
        source,
    })?;
    // In an order of their own, and by paths in the folder: the same module wherever that lies.
    sources.sort_unstable();
    for source in sources {
        run = run.argument(source);
    }
    run.variable("SOURCE_DATE_EPOCH", "0").output()?;
    read(&module)
}

/// The target, and where its C library is: the WASI SDK's compiler knows it, that of a distribution has it in /usr.
fn target(clang: &Path) -> Result<Vec<String>, BuildError> {
    let real = clang.canonicalize().unwrap_or_else(|_| clang.to_owned());
    let own = real.parent().map(|programs| programs.join("../share/wasi-sysroot"));
    if own.is_some_and(|own| own.is_dir()) {
        return Ok(vec!["--target=wasm32-wasip1".to_owned()]);
    }
    let targets = ["wasm32-wasi", "wasm32-wasip1"];
    let found = targets.into_iter().find(|target| Path::new("/usr/lib").join(target).join("libc.a").is_file());
    let target = found.ok_or_else(|| CLANG.missing("the C library for WASI"))?;
    Ok(vec![format!("--target={target}"), "--sysroot=/usr".to_owned()])
}

/// All sources of a folder, by their paths in it.
fn find_sources(folder: &Path, below: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder.join(below))? {
        let path = below.join(entry?.file_name());
        if folder.join(&path).is_dir() && path != Path::new(OUTPUT) {
            find_sources(folder, &path, found)?;
        } else if path.extension().is_some_and(|end| end == "c") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_found_wherever_they_are_but_in_what_was_built() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        for file in ["plugin.c", "lib/json.c", "lib/json.h", "build/old.c"] {
            let path = folder.path().join(file);
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(path, "")?;
        }
        let mut found = Vec::new();
        find_sources(folder.path(), Path::new(""), &mut found)?;
        found.sort_unstable();
        assert_eq!(found, [PathBuf::from("lib/json.c"), PathBuf::from("plugin.c")]);
        Ok(())
    }
}
