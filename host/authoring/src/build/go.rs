//! Plugins in Go: its own compiler makes a core module for WASI preview 1, which exports and imports by the names of the contract.

use std::path::Path;

use super::{BuildError, read};
use crate::tool::{Run, Tool};

const GO: Tool = Tool { program: "go", install: "install Go 1.24 or newer as https://go.dev/doc/install says" };

/// The core module of a project.
///
/// # Errors
/// [`BuildError`]: Go is missing, or refuses the sources.
pub(super) fn compile(folder: &Path, scratch: &Path) -> Result<Vec<u8>, BuildError> {
    let module = scratch.join("module.wasm");
    // Without what only this machine has: paths, the commit, the identity of the build.
    let flags = ["build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o"];
    Run::new(&GO.find()?, folder, &flags)
        .argument(&module)
        .argument(".")
        .variable("GOOS", "wasip1")
        .variable("GOARCH", "wasm")
        .variable("CGO_ENABLED", "0")
        .output()?;
    read(&module)
}
