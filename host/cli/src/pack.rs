//! `pilothouse pack`: turns the output of a toolchain into a plugin. Runs nothing of it.

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
    /// If the input is not valid, or a file cannot be read or written.
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
