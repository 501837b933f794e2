//! `pilothouse build`: makes the plugin of a project. Runs the tools of its language, and nothing of the plugin.

use std::path::PathBuf;

use clap::Args;
use pilothouse_authoring::{Built, Purpose, build};
use pilothouse_engine::digest;
use serde_json::json;

use crate::{offline::Output, output};

/// Build the plugin of a project, to the file build/NAME.wasm in its folder.
///
/// The language is that of the folder. What it needs and this machine lacks is named, with how one gets it. In most languages the
/// same sources give the same bytes; where they do not, it says so, and keeps what it built until a source changes.
#[derive(Args)]
pub struct Build {
    /// Folder of the project.
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Print as.
    #[arg(long, short, default_value = "text")]
    output: Output,
}

impl Build {
    /// Runs the command.
    ///
    /// # Errors
    /// If a tool is missing, the sources have a mistake, or what comes out is no plugin.
    pub fn execute(&self) -> anyhow::Result<()> {
        let built = build(&self.dir, Purpose::Release)?;
        match self.output {
            Output::Text => output::print(text(&built))?,
            Output::Json => output::print_line(json(&built))?,
        }
        Ok(())
    }
}

/// What was built, for people.
fn text(built: &Built) -> String {
    let Built { file, wasm, manifest, imports, language } = built;
    let imports = if imports.is_empty() { "nothing".to_owned() } else { imports.join(", ") };
    let mut text = format!(
        "{}\n  {} {}, in {}, for {}\n  digest   sha256:{}\n  size     {} KiB\n  imports  {imports}\n",
        file.display(),
        manifest.name,
        manifest.version,
        language.name(),
        manifest.reconciles,
        digest(wasm),
        wasm.len().div_ceil(1024),
    );
    let children: Vec<_> = manifest.children.iter().map(ToString::to_string).collect();
    text += &format!("  children {}\n", if children.is_empty() { "none".to_owned() } else { children.join(", ") });
    if !language.is_reproducible() {
        text += &format!(
            "  note     tools of {} make other bytes each time; the same sources built elsewhere have another digest\n",
            language.name()
        );
    }
    text
}

/// What was built, for programs.
fn json(built: &Built) -> serde_json::Value {
    let Built { file, wasm, manifest, imports, language } = built;
    json!({
        "file": file, "digest": format!("sha256:{}", digest(wasm)), "bytes": wasm.len(), "imports": imports,
        "language": language.name(), "reproducible": language.is_reproducible(), "manifest": manifest,
    })
}
