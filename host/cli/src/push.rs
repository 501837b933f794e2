//! `pilothouse push`: puts a plugin into an OCI registry. Runs nothing of it.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use pilothouse_artifact::{Component, Image};
use pilothouse_engine::{Interfaces, digest};

use crate::{cluster::block_on, output, plugin_file::PluginFile, registry::RegistryArguments};

/// Put a plugin into an OCI registry, as other WebAssembly tools do, and print its name with its digest.
///
/// The same plugin has the same digest wherever it is pushed. Sign that name with `cosign sign`; a Plugin with
/// spec.source.oci.image pulls it.
#[derive(Args)]
pub struct Push {
    /// The plugin.
    plugin: PathBuf,
    /// Where it goes: registry, repository and tag, such as registry.example.com/team/web:1.2.
    image: Image,
    #[command(flatten)]
    registry: RegistryArguments,
}

impl Push {
    /// Runs the command.
    ///
    /// # Errors
    /// If the file is not a plugin, or the registry does not take it.
    pub fn execute(&self) -> anyhow::Result<()> {
        let PluginFile { declaration, bytes } = PluginFile::read(&self.plugin)?;
        let Interfaces { imports, exports } = Interfaces::read(&bytes)?;
        let registry = self.registry.registry(&self.image)?;
        let (size, component) = (bytes.len(), digest(&bytes));
        let pushed = block_on(async {
            let pushed = registry.push(&self.image, Component { bytes, imports, exports }).await;
            pushed.with_context(|| format!("failed to push to '{}'", self.image))
        })?;
        let (name, version) = (declaration.name(), declaration.version());
        eprintln!("plugin {name} {version}, {size} bytes, spec.digest sha256:{component}");
        Ok(output::print_line(self.image.with_digest(&pushed))?)
    }
}
