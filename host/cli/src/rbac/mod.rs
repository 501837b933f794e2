//! `pilothouse rbac`: prints the rights that the host needs for plugins, as objects for `kubectl apply`. Reconciles nothing and
//! contacts no cluster.

pub mod impersonation;
pub mod objects;
pub mod resources;

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{bail, ensure};
use clap::Args;
use pilothouse_controller::plugin::rights::Writer;
use pilothouse_engine::Manifest;

use self::{
    objects::{Host, RoleObjects},
    resources::Resources,
};
use crate::{
    cache_dir::CacheDir, cluster::block_on, kind_name::kind_name, offline, output, plugin_configs::PluginConfigs, yaml,
};

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
    configs: PluginConfigs,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    grantee: Grantee,
}

/// Who gets the rights, and where.
#[derive(Args)]
pub struct Grantee {
    /// Give the rights in this namespace only, for a host with --watch-namespace
    #[arg(long)]
    namespace: Option<String>,
    /// A kind that plugins look up and whose objects are in no namespace: rights on them are given in the cluster. Where a cluster is asked, it
    /// says so itself of the kinds that are installed. Can be given several times.
    #[arg(long = "cluster-scoped", value_name = "KIND[.GROUP]", requires = "namespace")]
    cluster_scoped: Vec<String>,
    /// The host's service account.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "pilothouse/pilothouse", value_parser = host)]
    service_account: Host,
}

/// A service account, as arguments name it.
///
/// # Errors
/// If it has another form.
pub fn host(text: &str) -> anyhow::Result<Host> {
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
        let manifests = block_on(self.manifests())?;
        let resources = self.grantee.resources(&manifests)?;
        let objects = self.grantee.role_objects(&resources);
        let rights = manifests.iter().flat_map(|manifest| objects.of_host(manifest, Writer::Host));
        let documents = rights.map(|object| yaml::print(&object)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(output::print(documents.join("---\n"))?)
    }

    /// What the plugins ask for. One whose kinds come from its configuration is named by its file.
    async fn manifests(&self) -> anyhow::Result<Vec<Manifest>> {
        let mut manifests = Vec::new();
        for file in &self.files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            let config = self.configs.of(&name)?;
            manifests.push(offline::manifest(file, &self.cache_dir, config.as_ref()).await?);
        }
        Ok(manifests)
    }
}

impl Grantee {
    /// The host's service account.
    pub fn host(&self) -> &Host {
        &self.service_account
    }

    /// The resources of the kinds of plugins, as the arguments say of them.
    ///
    /// # Errors
    /// If an argument names a kind that no plugin looks up.
    pub fn resources<'m>(&self, plugins: impl IntoIterator<Item = &'m Manifest>) -> anyhow::Result<Resources> {
        let looked_up: BTreeSet<_> =
            plugins.into_iter().flat_map(|manifest| &manifest.lookups).map(|lookup| kind_name(&lookup.kind)).collect();
        let unknown = self.cluster_scoped.iter().find(|kind| !looked_up.contains(*kind));
        ensure!(
            unknown.is_none(),
            "no plugin looks up {}; leave out --cluster-scoped",
            unknown.map(String::as_str).unwrap_or_default()
        );
        Ok(Resources::usual(&self.cluster_scoped))
    }

    /// Makes the objects with the rights.
    pub fn role_objects<'a>(&'a self, resources: &'a Resources) -> RoleObjects<'a> {
        RoleObjects { host: &self.service_account, namespace: self.namespace.as_deref(), resources }
    }
}
