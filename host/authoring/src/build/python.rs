//! Plugins in Python: componentize-py starts an interpreter, imports the modules, and stores it as a component. It makes other bytes each
//! time, for the interpreter is stored with what was random when it started.

use std::path::Path;

use super::{BuildError, input::Input, read};
use crate::tool::{Run, Tool};

/// The version of componentize-py that new projects name.
pub(crate) const VERSION: &str = "0.25.1";

const COMPONENTIZE: Tool = Tool {
    program: "componentize-py",
    install: "in the folder of the project run `python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1`",
};

/// The module that has the plugin.
const MODULE: &str = "reconciler";

/// The component of a project.
///
/// # Errors
/// [`BuildError`]: componentize-py is missing, or refuses the sources.
pub(super) fn compile(input: &Input<'_>) -> Result<Vec<u8>, BuildError> {
    let environment = input.folder.join(".venv");
    let program = COMPONENTIZE.find_in(&environment.join("bin"))?;
    let component = input.scratch.join("component.wasm");
    let wit = input.write_contract()?;
    Run::new(&program, input.folder, &["--quiet", "--wit-path"])
        .argument(&wit)
        .argument("--world")
        .argument(input.world())
        .argument("componentize")
        .argument(MODULE)
        .argument("--output")
        .argument(&component)
        // The packages in it can be imported.
        .variable("VIRTUAL_ENV", environment)
        // No caches among the sources.
        .variable("PYTHONDONTWRITEBYTECODE", "1")
        .output()?;
    read(&component)
}

/// What decides besides the sources: the packages that are installed, with their versions.
pub(super) fn packages(folder: &Path) -> Vec<String> {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut names = Vec::new();
    for version in entries(&folder.join(".venv/lib")) {
        let packages = entries(&version.path().join("site-packages"));
        names.extend(packages.map(|package| package.file_name().to_string_lossy().into_owned()));
    }
    names.sort_unstable();
    names
}
