//! `pilothouse rbac`: prints the rights that the host needs for plugins, as objects for `kubectl apply`. Runs nothing of a plugin
//! and contacts no cluster.

pub mod objects;
pub mod plurals;

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use pilothouse_controller::plugin::rights::Writer;

use self::{
    objects::{Host, RoleObjects},
    plurals::Plurals,
};
use crate::{output, plugin_file::PluginFile, yaml};

/// Print the rights that the host needs for plugins: a ClusterRole and its binding each, as YAML for `kubectl apply -f -`.
///
/// They follow from the kinds in the plugin's manifest. Resources have the plural that is usual for the kind; where a CRD has
/// another one, put that in its place. What the host needs for itself is in deploy/pilothouse.yaml. A plugin with an account of its own
/// gets its rights from `pilothouse install`.
#[derive(Args)]
pub struct Rbac {
    /// The plugins.
    #[arg(required = true, value_name = "PLUGIN")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    grantee: Grantee,
}

/// Who gets the rights, and where.
#[derive(Args)]
pub struct Grantee {
    /// Give the rights in this namespace only, for a host with --watch-namespace
    #[arg(long)]
    namespace: Option<String>,
    /// The host's service account.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "pilothouse/pilothouse", value_parser = host)]
    service_account: Host,
}

fn host(text: &str) -> anyhow::Result<Host> {
    match text.split('/').collect::<Vec<_>>()[..] {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Ok(Host { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => bail!("a service account is named NAMESPACE/NAME, such as pilothouse/pilothouse"),
    }
}

impl Rbac {
    /// Runs the command.
    ///
    /// # Errors
    /// If a file is not a plugin. The error names the file and says what to do.
    pub fn execute(&self) -> anyhow::Result<()> {
        let plugins = self.files.iter().map(|file| PluginFile::read(file)).collect::<anyhow::Result<Vec<_>>>()?;
        let plurals = Plurals::default();
        let objects = self.grantee.role_objects(&plurals);
        let rights = plugins.iter().flat_map(|plugin| objects.of_host(&plugin.manifest, Writer::Host));
        let documents = rights.map(|object| yaml::print(&object)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(output::print(documents.join("---\n"))?)
    }
}

impl Grantee {
    /// The host's service account.
    pub fn host(&self) -> &Host {
        &self.service_account
    }

    /// Makes the objects with the rights.
    pub fn role_objects<'a>(&'a self, plurals: &'a Plurals) -> RoleObjects<'a> {
        RoleObjects { host: &self.service_account, namespace: self.namespace.as_deref(), plurals }
    }
}
