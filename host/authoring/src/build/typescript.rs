//! Plugins in TypeScript: its own compiler checks the types and makes JavaScript, and componentize-qjs stores a QuickJS that has loaded that
//! as a component. It makes other bytes each time, for QuickJS is stored with what was random when it started.

use super::{BuildError, input::Input, read};
use crate::tool::{Run, Tool};

/// The version of componentize-qjs that new projects name.
pub(crate) const VERSION: &str = "0.4.5";

/// The version of TypeScript that new projects name.
pub(crate) const TYPESCRIPT: &str = "7.0.2";

const INSTALL: &str = "in the folder of the project run `npm install` (Node.js 18 or newer: https://nodejs.org)";
const TSC: Tool = Tool { program: "tsc", install: INSTALL };
const COMPONENTIZE: Tool = Tool { program: "componentize-qjs", install: INSTALL };

/// The file that has the plugin, as JavaScript.
const MODULE: &str = "plugin.js";

/// The component of a project.
///
/// # Errors
/// [`BuildError`]: a tool is missing, or refuses the sources.
pub(super) fn compile(input: &Input<'_>) -> Result<Vec<u8>, BuildError> {
    let programs = input.folder.join("node_modules/.bin");
    let (tsc, componentize) = (TSC.find_in(&programs)?, COMPONENTIZE.find_in(&programs)?);
    let modules = input.scratch.join("modules");
    Run::new(&tsc, input.folder, &["--project", ".", "--pretty", "false", "--outDir"])
        .argument(&modules)
        .shown()
        .output()?;
    let component = input.scratch.join("component.wasm");
    Run::new(&componentize, input.folder, &["--sync", "--world", input.world(), "--wit"])
        .argument(input.write_contract()?)
        .argument("--js")
        .argument(modules.join(MODULE))
        .argument("--module-root")
        .argument(&modules)
        .argument("--output")
        .argument(&component)
        .output()?;
    read(&component)
}
