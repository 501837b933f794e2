//! `pilothouse crd`: prints the host's own CustomResourceDefinitions. Contacts no cluster.

use clap::Args;
use kube::CustomResourceExt;
use pilothouse_controller::api::Plugin;

use crate::yaml;

/// Print the CustomResourceDefinitions of the host's own kinds, as YAML for `kubectl apply -f -`.
#[derive(Args)]
pub struct Crd {}

impl Crd {
    /// Runs the command.
    ///
    /// # Errors
    /// None known.
    pub fn execute(&self) -> anyhow::Result<()> {
        println!("# The kinds of the host itself. Made by `make crds`; change host/controller/src/api instead.");
        print!("{}", yaml::print(&serde_json::to_value(Plugin::crd())?)?);
        Ok(())
    }
}
