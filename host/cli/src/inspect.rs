//! `pilothouse inspect`: prints what a plugin is, from a file, a registry or a cluster. Runs nothing of it.

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use pilothouse_artifact::{Image, Pulled};
use pilothouse_controller::{api::find_plugin, source::plugin_objects::MAX_BYTES};
use pilothouse_engine::{Declaration, Interfaces, digest};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, block_on},
    output,
    plugin_file::PluginFile,
    registry::RegistryArguments,
    yaml,
};

/// Print a plugin: the manifest of a file or of an image in a registry, below comments with its digest and what it imports, or the
/// Plugin object of an installed one. Runs nothing of the plugin.
#[derive(Args)]
pub struct Inspect {
    /// The file, the image with its registry and its tag or digest, or the name of an installed plugin.
    #[arg(value_name = "FILE|IMAGE|NAME")]
    plugin: String,
    /// Print as.
    #[arg(long, short, default_value = "yaml")]
    output: Output,
    #[command(flatten)]
    registry: RegistryArguments,
    #[command(flatten)]
    cluster: Cluster,
}

/// How to print.
#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// For people.
    Yaml,
    /// For programs.
    Json,
}

/// Where a plugin is.
enum Place {
    File,
    Registry(Image),
    Cluster,
}

impl Inspect {
    /// Runs the command.
    ///
    /// # Errors
    /// If it is neither a plugin file nor a plugin in a registry nor the name of an installed one. The error says what to do.
    pub fn execute(&self) -> anyhow::Result<()> {
        match place(&self.plugin)? {
            Place::Cluster => {
                let plugin = block_on(self.installed())?;
                self.print("", &plugin, &plugin)
            }
            Place::File => self.print_component(None, PluginFile::read(self.plugin.as_ref())?),
            Place::Registry(image) => {
                let Pulled { bytes, manifest_digest } = block_on(self.pull(&image))?;
                let pinned = image.with_digest(&manifest_digest).to_string();
                self.print_component(Some(&pinned), PluginFile::of(bytes, &self.plugin)?)
            }
        }
    }

    fn print_component(&self, image: Option<&str>, plugin: PluginFile) -> anyhow::Result<()> {
        let PluginFile { declaration, bytes } = plugin;
        let manifest = match &declaration {
            Declaration::Fixed(manifest) => serde_json::to_value(manifest)?,
            Declaration::Configured(template) => serde_json::to_value(template)?,
        };
        let Interfaces { imports, exports } = Interfaces::read(&bytes)?;
        let (digest, size) = (format!("sha256:{}", digest(&bytes)), bytes.len());
        let mut comments = format!("# {digest}, {size} bytes\n");
        comments.extend(image.map(|image| format!("# {image}\n")));
        if matches!(declaration, Declaration::Configured(_)) {
            comments += "# the kinds of its objects, children and lookups come from its configuration\n";
        }
        comments +=
            &format!("# imports {}\n", if imports.is_empty() { "nothing".to_owned() } else { imports.join(", ") });
        let all = json!({
            "digest": digest, "bytes": size, "image": image, "imports": imports, "exports": exports, "manifest": manifest,
        });
        self.print(&comments, &all["manifest"], &all)
    }

    /// Prints one value for people, and one for programs.
    fn print(&self, comments: &str, people: &Value, programs: &Value) -> anyhow::Result<()> {
        match self.output {
            Output::Yaml => output::print(format_args!("{comments}{}", yaml::print(people)?))?,
            Output::Json => output::print_line(programs)?,
        }
        Ok(())
    }

    async fn pull(&self, image: &Image) -> anyhow::Result<Pulled> {
        let pulled = self.registry.registry(image)?.pull(image, MAX_BYTES).await;
        pulled.with_context(|| format!("failed to pull '{image}'"))
    }

    async fn installed(&self) -> anyhow::Result<Value> {
        let name = &self.plugin;
        let found = find_plugin(self.cluster.client().await?, name).await;
        let found =
            found.with_context(|| format!("there is no file '{name}', and failed to look for such a Plugin"))?;
        let Some(plugin) = found else {
            bail!("there is neither a file nor a Plugin '{name}'; `pilothouse list` shows the installed ones");
        };
        Ok(serde_json::to_value(plugin)?)
    }
}

/// Where a plugin is that is called so. A file wins over all else.
fn place(plugin: &str) -> anyhow::Result<Place> {
    if std::path::Path::new(plugin).exists() {
        return Ok(Place::File);
    }
    if is_name(plugin) {
        return Ok(Place::Cluster);
    }
    // A path without a tag or a digest is a file that is missing, more often than an image.
    let is_image = plugin.split_once('/').is_some_and(|(_, path)| path.contains([':', '@']));
    Ok(if is_image { Place::Registry(plugin.parse()?) } else { Place::File })
}

/// Whether a text may be the name of an object, and so of an installed plugin.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_looked_for_where_its_name_leads() -> anyhow::Result<()> {
        for (plugin, expected) in [
            ("web", "a cluster"),
            ("build/web.wasm", "a file"),
            ("web.wasm", "a file"),
            ("registry.example.com:5000/web:1", "a registry"),
            (
                "localhost:5000/team/web@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "a registry",
            ),
            ("registry.example.com/web", "a file"),
        ] {
            let found = match place(plugin)? {
                Place::File => "a file",
                Place::Registry(_) => "a registry",
                Place::Cluster => "a cluster",
            };
            assert_eq!(found, expected, "{plugin}");
        }
        Ok(())
    }
}
