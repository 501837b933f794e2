//! `pilothouse rbac`: prints the rights that the host needs for plugins, as objects for `kubectl apply`. Runs nothing of a plugin
//! and contacts no cluster.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use pilothouse_controller::plugin::rights::{Right, required_by, usual_plural};
use pilothouse_engine::Manifest;
use serde_json::{Value, json};

use crate::{plugin_file::PluginFile, yaml};

/// The API group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Print the rights that the host needs for plugins: a ClusterRole and its binding each, as YAML for `kubectl apply -f -`.
///
/// They follow from the kinds in the plugin's manifest. Resources have the plural that is usual for the kind; where a CRD has
/// another one, put that in its place. What the host needs for itself is in deploy/pilothouse.yaml.
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
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "pilothouse/pilothouse", value_parser = account)]
    service_account: Account,
}

/// A service account.
#[derive(Clone)]
struct Account {
    namespace: String,
    name: String,
}

fn account(text: &str) -> anyhow::Result<Account> {
    match text.split('/').collect::<Vec<_>>()[..] {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Ok(Account { namespace: namespace.to_owned(), name: name.to_owned() })
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
        let objects: Vec<_> = plugins.iter().flat_map(|plugin| self.grantee.rights(&plugin.manifest)).collect();
        let documents = objects.iter().map(yaml::print).collect::<anyhow::Result<Vec<_>>>()?;
        print!("{}", documents.join("---\n"));
        Ok(())
    }
}

impl Grantee {
    /// The host's own namespace.
    pub fn host_namespace(&self) -> &str {
        &self.service_account.namespace
    }

    /// The rights for a plugin: a role and its binding.
    pub fn rights(&self, manifest: &Manifest) -> [Value; 2] {
        [role(manifest), self.binding(manifest)]
    }

    /// Binds the role to the host's service account, for the whole cluster or in one namespace.
    fn binding(&self, manifest: &Manifest) -> Value {
        let (kind, mut metadata) = match &self.namespace {
            None => ("ClusterRoleBinding", json!({})),
            Some(namespace) => ("RoleBinding", json!({ "namespace": namespace })),
        };
        metadata["name"] = json!(name(manifest));
        let Account { namespace, name: account } = &self.service_account;
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": kind,
            "metadata": metadata,
            "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": name(manifest) },
            "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": account }],
        })
    }
}

fn role(manifest: &Manifest) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRole",
        "metadata": { "name": name(manifest) },
        "rules": required_by(manifest).iter().map(rule).collect::<Vec<_>>(),
    })
}

fn rule(right: &Right) -> Value {
    json!({
        "apiGroups": [right.kind.group()],
        "resources": [right.resource(&usual_plural(&right.kind))],
        "verbs": right.verbs,
    })
}

/// The name of the role and of its binding.
fn name(manifest: &Manifest) -> String {
    format!("pilothouse-plugin-{}", manifest.name)
}
