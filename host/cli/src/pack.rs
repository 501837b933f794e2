//! `pilothouse pack`: makes a plugin of what a toolchain built.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

/// Make a plugin of a core module or a component: check it and embed its manifest.
#[derive(Args)]
pub struct Pack {
    /// Core module with component types, or component.
    input: PathBuf,
    /// JSON file with the manifest. Default: the one that the SDK embedded.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Where the plugin goes.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Pack {
    /// Runs the command.
    ///
    /// # Errors
    /// What is wrong with the input, or which file failed.
    pub fn execute(&self) -> anyhow::Result<()> {
        let input = std::fs::read(&self.input).with_context(|| format!("failed to read '{}'", self.input.display()))?;
        let manifest = self
            .manifest
            .as_ref()
            .map(|path| std::fs::read_to_string(path).with_context(|| format!("failed to read '{}'", path.display())));
        let packed = pilothouse_pack::pack(&input, manifest.transpose()?.as_deref())
            .with_context(|| format!("failed to pack '{}'", self.input.display()))?;
        std::fs::write(&self.output, &packed.wasm)
            .with_context(|| format!("failed to write '{}'", self.output.display()))
    }
}
