//! Plugins in Rust: cargo makes a core module for `wasm32-unknown-unknown`, in which the SDK has put the manifest.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{BuildError, Purpose, read};
use crate::tool::{Run, Tool};

const TARGET: &str = "wasm32-unknown-unknown";

/// The profile of the project's own for a plugin that is to be installed.
const RELEASE: &[&str] = &["--profile", "plugin"];

/// One that is built in a second or two once what it depends on is there, where the other one takes most of a minute to optimise all of it at
/// once. It has a folder of its own, so that neither has the other one built anew.
const DEVELOPMENT: &[&str] = &[
    "--config",
    r#"profile.plugin-dev.inherits="dev""#,
    "--config",
    "profile.plugin-dev.opt-level=1",
    "--config",
    "profile.plugin-dev.debug=false",
    "--config",
    "profile.plugin-dev.strip=true",
    "--config",
    r#"profile.plugin-dev.panic="abort""#,
    "--profile",
    "plugin-dev",
];

const CARGO: Tool = Tool { program: "cargo", install: "install Rust as https://rustup.rs says" };
const RUSTC: Tool = Tool { program: "rustc", install: "run `rustup target add wasm32-unknown-unknown`" };

/// The core module of a project.
///
/// # Errors
/// [`BuildError`]: a tool is missing, or refuses the sources.
pub(super) fn compile(folder: &Path, purpose: Purpose) -> Result<Vec<u8>, BuildError> {
    let cargo = CARGO.find()?;
    check_target(folder)?;
    let profile = match purpose {
        Purpose::Release => RELEASE,
        Purpose::Development => DEVELOPMENT,
    };
    let flags = [&["rustc"], profile, &["--target", TARGET, "--lib", "--crate-type", "cdylib"]].concat();
    let told = Run::new(&cargo, folder, &flags)
        // Which file it made, however the target folder is set.
        .argument("--message-format=json-render-diagnostics")
        .variable("RUSTFLAGS", rust_flags())
        // Of this crate only: what it depends on is the same wherever the project lies, and is not compiled anew.
        .argument("--")
        .argument(remap(folder, "."))
        .output()?;
    let module = module(&told).ok_or_else(|| BuildError::Tool("cargo made no .wasm of this crate".to_owned()))?;
    read(&module)
}

/// Checks that the compiler has the standard library for WebAssembly, without which it fails with errors that do not tell.
fn check_target(folder: &Path) -> Result<(), BuildError> {
    let rustc = RUSTC.find()?;
    let library = Run::new(&rustc, folder, &["--print", "target-libdir", "--target", TARGET]).output()?;
    if Path::new(library.trim()).is_dir() {
        return Ok(());
    }
    Err(RUSTC.missing(&format!("the target {TARGET}")))
}

/// The author's own flags, and the one that keeps the places of this machine out of the plugin.
fn rust_flags() -> OsString {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let mut flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    flags.push(" ");
    flags.push(remap(&cargo_home, "cargo"));
    flags
}

/// The flag by which a place has this name in the plugin.
fn remap(place: &Path, name: &str) -> OsString {
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(place);
    flag.push("=");
    flag.push(name);
    flag
}

/// The module among the messages of cargo: the last artifact that is one, for those of dependencies come before.
fn module(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let files = messages.flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let mut modules = files.filter_map(|file| Some(PathBuf::from(file.as_str()?)));
    modules.rfind(|file| file.extension().is_some_and(|end| end == "wasm"))
}

#[cfg(test)]
mod tests {
    use super::module;

    #[test]
    fn the_module_is_the_last_one_that_cargo_names() {
        let messages = r#"{"reason":"compiler-artifact","filenames":["/t/libserde.rlib"]}
{"reason":"compiler-artifact","filenames":["/t/web.wasm","/t/web.d"]}
{"reason":"build-finished","success":true}
"#;
        assert_eq!(module(messages), Some("/t/web.wasm".into()));
        assert_eq!(module("{\"reason\":\"build-finished\"}\n"), None);
    }
}
