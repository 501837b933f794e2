//! `pilothouse crd`: prints the host's own CustomResourceDefinitions. Contacts no cluster.

use clap::Args;
use kube::CustomResourceExt;
use pilothouse_controller::api::Plugin;

use crate::{output, yaml};

/// Print the CustomResourceDefinitions of the host's own kinds, as YAML for `kubectl apply -f -`.
#[derive(Args)]
pub struct Crd {}

impl Crd {
    /// Runs the command.
    ///
    /// # Errors
    /// If nobody takes what it prints.
    pub fn execute(&self) -> anyhow::Result<()> {
        let crd = yaml::print(&serde_json::to_value(Plugin::crd())?)?;
        let origin = "# The kinds of the host itself. Made by `make crds`; change host/controller/src/api instead.";
        Ok(output::print(format_args!("{origin}\n{crd}"))?)
    }
}
