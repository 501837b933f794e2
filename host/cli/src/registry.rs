//! How commands reach registries: their arguments, and the credentials that container tools have stored. Sends nothing.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use pilothouse_artifact::{Credentials, Image, Registry, RegistrySettings};

/// How to reach a registry.
#[derive(Args)]
pub struct RegistryArguments {
    /// Speak to the registry without TLS.
    #[arg(long)]
    plain_http: bool,
    /// PEM file with certificate authorities to trust beside those of the system.
    #[arg(long, value_name = "FILE")]
    registry_ca: Option<PathBuf>,
    /// File with credentials, as `docker login` writes it. Default: config.json in DOCKER_CONFIG or ~/.docker, if it is there.
    #[arg(long, value_name = "FILE")]
    docker_config: Option<PathBuf>,
}

impl RegistryArguments {
    /// A client for the registry of an image.
    ///
    /// # Errors
    /// If a file that is named cannot be read.
    pub fn registry(&self, image: &Image) -> anyhow::Result<Registry> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).with_context(|| format!("failed to read '{}'", path.display()))
        };
        let certificate_authorities = self.registry_ca.as_ref().map(read).transpose()?;
        let config = self.docker_config.clone().or_else(|| default_docker_config().filter(|path| path.exists()));
        let credentials = match &config {
            Some(path) => Credentials::of_docker_config(read(path)?.as_bytes(), image)
                .with_context(|| format!("'{}'", path.display()))?,
            None => Credentials::Anonymous,
        };
        let settings = RegistrySettings { plain_http: self.plain_http, certificate_authorities };
        Ok(Registry::new(&settings, credentials)?)
    }
}

/// Where container tools store credentials.
fn default_docker_config() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("DOCKER_CONFIG").or_else(|| set("HOME").map(|home| home.join(".docker")))?;
    Some(folder.join("config.json"))
}
