//! `pilothouse preflight`: asks a cluster what Helm would have asked before it applied a release of the chart, for what renders charts without a
//! cluster. Writes nothing.

use anyhow::{Context, bail, ensure};
use clap::Args;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{Api, Client, ResourceExt, api::ListParams};
use pilothouse_controller::{
    api::{Plugin, list_plugins},
    labels::COMPONENT_OF,
};

use crate::{
    cluster::{Cluster, block_on},
    rbac::{host, objects::Host},
    table::printable,
};

/// The label, and its value, by which the chart's own objects are found.
const OF_CHART: (&str, &str) = ("app.kubernetes.io/name", "pilothouse");

/// Check that a release of the chart may be applied: it is the only host of the cluster, and takes no plugin out that has to clean up first.
///
/// Helm asks the cluster the same itself when it installs and upgrades. For what renders the chart without a cluster and applies it later, the
/// chart has this as a hook (preflight.enabled).
#[derive(Args)]
pub struct Preflight {
    /// The service account of the release's host.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "pilothouse/pilothouse", value_parser = host)]
    service_account: Host,
    /// A plugin of the release. Can be given several times.
    #[arg(long = "plugin", value_name = "NAME")]
    plugins: Vec<String>,
    #[command(flatten)]
    cluster: Cluster,
}

impl Preflight {
    /// Runs the command.
    ///
    /// # Errors
    /// If the release may not be applied, or the cluster does not answer. The error says what to do.
    pub fn execute(&self) -> anyhow::Result<()> {
        block_on(async {
            let client = self.cluster.client().await?;
            self.check_only_host(&client).await?;
            self.check_taken_out(client).await?;
            eprintln!("the release may be applied");
            Ok(())
        })
    }

    /// Each host of the chart has a ClusterRoleBinding, wherever it is.
    async fn check_only_host(&self, client: &Client) -> anyhow::Result<()> {
        let of_hosts = ListParams::default().labels(&format!("{}={},!{COMPONENT_OF}", OF_CHART.0, OF_CHART.1));
        let bindings = Api::<ClusterRoleBinding>::all(client.clone()).list(&of_hosts).await;
        for binding in bindings.context("failed to look for other hosts")? {
            let Host { namespace, name } = &self.service_account;
            let other = binding
                .subjects
                .iter()
                .flatten()
                .find(|subject| subject.namespace.as_ref() != Some(namespace) || subject.name != *name);
            let Some(other) = other else { continue };
            bail!(
                "the host '{}' in the namespace '{}' is in this cluster already, and a cluster takes one host: Plugins are in no namespace, \
                 and two hosts would work on each of them. Add plugins to that release; a Plugin's namespaces says where it works. If that \
                 host is gone, delete what it left, such as the ClusterRoleBinding '{}'",
                printable(&other.name),
                printable(other.namespace.as_deref().unwrap_or_default()),
                binding.name_any()
            );
        }
        Ok(())
    }

    /// With a plugin that is taken out go its account and its rights.
    async fn check_taken_out(&self, client: Client) -> anyhow::Result<()> {
        let plugins = match list_plugins(client).await {
            // Before the first release the kind is not installed.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            listed => listed.context("failed to list the Plugins")?,
        };
        let taken_out = plugins.iter().find(|plugin| {
            let is_of_chart = plugin.labels().get(OF_CHART.0).is_some_and(|name| name == OF_CHART.1);
            is_of_chart && !self.plugins.contains(&plugin.name_any()) && has_to_clean_up(plugin)
        });
        let name = taken_out.map(ResourceExt::name_any).unwrap_or_default();
        ensure!(
            taken_out.is_none(),
            "the plugin '{name}' is not in the values any more. What it has set on its objects stays on them when its rights go: run \
             `pilothouse uninstall {name}` first, then this again"
        );
        Ok(())
    }
}

/// Whether its objects may have something that only its account takes off.
fn has_to_clean_up(plugin: &Plugin) -> bool {
    plugin.status.as_ref().is_some_and(|status| status.decorates || !status.finalizers.is_empty())
}
