//! `pilothouse preflight`: asks a cluster what Helm would have asked before it applied a release of the chart, for what renders charts without a
//! cluster. Writes nothing.

use anyhow::{Context, bail};
use clap::Args;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Subject};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams};
use pilothouse_controller::{
    api::{Plugin, list_plugins},
    kinds::{DocumentAnswer, schema_document},
    labels::COMPONENT_OF,
};
use pilothouse_engine::contract::KindRef;

use crate::{
    cluster::{Cluster, block_on},
    rbac::{host, objects::Host},
    table::printable,
};

/// The label, and its value, by which the chart's own objects are found.
const OF_CHART: (&str, &str) = ("app.kubernetes.io/name", "pilothouse");

/// The label with the name of the release that an object belongs to.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// The fields of a Plugin's status that say what it may have set on its objects.
const LEAVES: [&str; 2] = ["decorates", "finalizers"];

/// Check that a release of the chart may be applied: it is the only host of the cluster, and takes no plugin out that has to clean up first.
///
/// Helm asks the cluster the same itself when it installs and upgrades. For what renders the chart without a cluster and applies it later, the
/// chart has this as a hook (preflight.enabled).
#[derive(Args)]
pub struct Preflight {
    /// The service account of the release's host.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "pilothouse/pilothouse", value_parser = host)]
    service_account: Host,
    /// The name of the release, as `helm` has it. By it the release's own host is known that has another service account today. Without it, only
    /// a host with this service account is taken for the release's own.
    #[arg(long, value_name = "NAME")]
    release: Option<String>,
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
            let Some(other) = binding.subjects.iter().flatten().map(account).find(|host| !self.is_own(&binding, host))
            else {
                continue;
            };
            let Host { namespace, name } = &other;
            bail!(
                "the host '{}' in the namespace '{}' is in this cluster already, and a cluster takes one host: Plugins are in no namespace, \
                 and two hosts would work on each of them. {}",
                printable(name),
                printable(namespace),
                self.what_to_do(&binding, &other)
            );
        }
        Ok(())
    }

    /// Whether a host is the one of the release, as Helm's own check knows it: its name and its namespace count, not its account. What applies
    /// rendered charts may put a name of its own into the label, so that with the same account it is the same host, too.
    fn is_own(&self, binding: &ClusterRoleBinding, host: &Host) -> bool {
        let is_of_release =
            self.release.as_ref().is_some_and(|release| binding.labels().get(INSTANCE) == Some(release));
        host.namespace == self.service_account.namespace && (is_of_release || host.name == self.service_account.name)
    }

    /// What helps against another host. One that may be the release's own is not said to be deleted.
    fn what_to_do(&self, binding: &ClusterRoleBinding, other: &Host) -> String {
        if self.release.is_none() && other.namespace == self.service_account.namespace {
            let release = binding.labels().get(INSTANCE).map_or("NAME", String::as_str);
            return format!(
                "If it is the one of this release, which gets another service account, say --release {}. Else add plugins to \
                 that release; a Plugin's namespaces says where it works",
                printable(release)
            );
        }
        format!(
            "Add plugins to that release; a Plugin's namespaces says where it works. If that host is gone, delete what it left, such as the \
             ClusterRoleBinding '{}'",
            binding.name_any()
        )
    }

    /// With a plugin that is taken out go its account and its rights.
    async fn check_taken_out(&self, client: Client) -> anyhow::Result<()> {
        let plugins = match list_plugins(client.clone()).await {
            // Before the first release the kind is not installed.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            listed => listed.context("failed to list the Plugins")?,
        };
        let taken_out: Vec<_> = plugins.iter().filter(|plugin| self.takes_out(plugin)).collect();
        if let Some(name) = taken_out.iter().find(|plugin| has_to_clean_up(plugin)).map(|plugin| plugin.name_any()) {
            bail!(
                "the plugin '{name}' is not in the values any more. What it has set on its objects stays on them when its rights go: run \
                 `pilothouse uninstall {name}` first, then this again"
            );
        }
        let Some(name) = taken_out.first().map(|plugin| plugin.name_any()) else { return Ok(()) };
        let undeclared = undeclared(&client).await.context("failed to read what a Plugin's status can say")?;
        if let Some(field) = undeclared {
            bail!(
                "the plugin '{name}' is not in the values any more, and whether it has set anything on its objects that stays there when its \
                 rights go cannot be known: the CRD of Plugin in this cluster, of another version, has no status.{field}. Apply the CRD of \
                 this version first, then this again: `pilothouse crd | kubectl apply --server-side -f -`"
            );
        }
        Ok(())
    }

    fn takes_out(&self, plugin: &Plugin) -> bool {
        let is_of_chart = plugin.labels().get(OF_CHART.0).is_some_and(|name| name == OF_CHART.1);
        is_of_chart && !self.plugins.contains(&plugin.name_any())
    }
}

fn account(subject: &Subject) -> Host {
    Host { namespace: subject.namespace.clone().unwrap_or_default(), name: subject.name.clone() }
}

/// Whether its objects may have something that only its account takes off.
fn has_to_clean_up(plugin: &Plugin) -> bool {
    plugin.status.as_ref().is_some_and(|status| status.decorates || !status.finalizers.is_empty())
}

/// What the CRD in the cluster does not have of that which [`has_to_clean_up`] goes by: the host leaves such a field out.
async fn undeclared(client: &Client) -> anyhow::Result<Option<&'static str>> {
    let kind = KindRef::new(Plugin::api_version(&()).into_owned(), Plugin::kind(&()).into_owned());
    let DocumentAnswer::Document(document) = schema_document(client, &kind, None).await? else {
        bail!("the API server has no schema of Plugin");
    };
    let schema = document.schemas.schema(&kind.api_version, &kind.kind)?;
    let schema = schema.context("the API server has no schema of Plugin")?;
    let status = schema.root().field("status");
    Ok(LEAVES.into_iter().find(|field| !status.is_known() || !status.allows(field)))
}
