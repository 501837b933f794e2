//! `pilothouse plan`: says what a version of a plugin would do to the objects of a cluster before it is at work. Changes nothing.

pub(crate) mod present;
pub(crate) mod text;

use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, bail, ensure};
use clap::Args;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use pilothouse_controller::{
    client::{self, fence::Fence},
    clock::Clock,
    metrics::Metrics,
    plugin::PluginSettings,
    source::plugin_objects::{Candidate, PlannedVersion},
};
use pilothouse_engine::{Manifest, Plugin, Reconciler};
use pilothouse_forecast::{self as forecast, Bounds, Depth, Forecast, Place, Report, report::Effect};

use serde_json::Value;

use self::present::{Present, settings_with};
use crate::{
    cache_dir::CacheDir,
    cluster::{Cluster, block_on},
    config_file::read_config,
    logging::Logging,
    offline::{self, NoConfiguration, Output},
    output,
};

/// The exit code of a plan with which something would change.
const CHANGES: u8 = 2;

/// Say what a version of a plugin would do to the objects of a cluster before it is at work there.
///
/// Calls the version for each object with its real children, lookups and configuration, under the host's limits, and shows which children
/// would be created, changed, created anew, deleted or held back. Values of Secrets are not shown. Nothing is written.
///
/// Exit codes: 0 nothing would change, 2 something would, 1 the plan failed, or an object would be in error that is not today.
#[derive(Args)]
pub struct Plan {
    /// The version to try.
    plugin: PathBuf,
    /// The Plugin object whose configuration, account and limits count. Default: the one that reconciles the kind, if there is one.
    #[arg(long = "plugin", value_name = "NAME")]
    object: Option<String>,
    /// Go by no Plugin object, for a host that takes its plugins from a directory. The default where the cluster has none.
    #[arg(long, conflicts_with = "object")]
    without_plugin_object: bool,
    /// YAML or JSON file with the plugin's configuration, or with a Plugin that has it. Default: that of the Plugin.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask only about the objects of this namespace. What they look up and own is looked for wherever it is.
    #[arg(long, short)]
    namespace: Option<String>,
    /// The only namespace that the host watches, if it was started so.
    #[arg(long, value_name = "NAMESPACE")]
    watch_namespace: Option<String>,
    /// The namespace of the host. Default: that of the kubeconfig's context.
    #[arg(long, value_name = "NAMESPACE")]
    host_namespace: Option<String>,
    /// Go on from each answer as if it had been carried out and the children had got ready, until the object is at rest.
    #[arg(long)]
    eventual: bool,
    /// Also ask the API server, by dry runs, whether it would take what is written first: admission, validation, permissions.
    #[arg(long)]
    server_dry_run: bool,
    /// Print as.
    #[arg(long, short, default_value = "text")]
    output: Output,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    logging: Logging,
}

impl Plan {
    /// Runs the command.
    ///
    /// # Errors
    /// If the plugin or the cluster cannot be read.
    pub fn execute(&self) -> anyhow::Result<ExitCode> {
        self.logging.start()?;
        block_on(self.plan())
    }

    async fn plan(&self) -> anyhow::Result<ExitCode> {
        let config = self.cluster.config().await?;
        let place = Place {
            watched: self.watch_namespace.clone(),
            host_namespace: self.host_namespace.clone().unwrap_or_else(|| config.default_namespace.clone()),
        };
        // It could not write if it wanted to.
        let reader = client::client(&config, Metrics::new().requests(), Fence::closed(), Clock::system())?;
        let given = self.config.as_deref().map(read_config).transpose()?;
        let (manifest, present) = self.subject(&reader, given.as_ref()).await?;
        let settings = self.settings(&manifest, present.as_ref(), &place, given.as_ref())?;
        let version = Arc::new(
            offline::load_within(&self.plugin, &self.cache_dir, &settings.limits, settings.config.as_deref()).await?,
        );
        let progress = Progress::of_terminal();
        let candidate = Candidate { digest: version.digest(), version: &version.manifest().version };
        let division = present.as_ref().and_then(|present| present.division(&candidate));
        let planned = PlannedVersion { version: version.clone(), settings, division };
        self.check_namespaces(&reader).await?;
        let cluster = forecast::Cluster::read(reader, planned, &place).await;
        let mut cluster = cluster.context("failed to read the cluster")?;
        if let Some(namespace) = &self.namespace {
            cluster = cluster.asking_only(namespace.clone())?;
        }
        if !cluster.is_recorded() {
            eprintln!(
                "note: namespace '{}' has no record of child kinds, so children of kinds that this version no longer declares are not \
                 looked for; name the host's namespace with --host-namespace",
                place.host_namespace
            );
        }
        let total = cluster.names().len();
        let depth = if self.eventual { Depth::Eventual } else { Depth::First };
        let mut forecast =
            cluster.forecast(depth, Bounds::NONE, |done| progress.show("asked about", done, total)).await;
        if self.server_dry_run {
            let writer = client::client(&config, Metrics::new().requests(), Fence::open(), Clock::system())?;
            cluster.try_out(&writer, &mut forecast, |done| progress.show("tried out", done, total)).await;
        }
        progress.end();
        self.print(&version, present.as_ref(), &forecast)
    }

    /// What the version says of itself, and the `Plugin` in whose place it would be.
    async fn subject(&self, reader: &Client, given: Option<&Value>) -> anyhow::Result<(Manifest, Option<Present>)> {
        let named = match &self.object {
            Some(name) => Some(Present::named(reader, name).await?),
            None => None,
        };
        // Its kinds may come from the configuration.
        let own = match (given, &named) {
            (None, Some(present)) => present.config()?,
            _ => None,
        };
        let manifest = offline::manifest(&self.plugin, &self.cache_dir, given.or(own.as_ref())).await;
        let manifest = manifest.map_err(|error| match &self.object {
            Some(name) if error.is::<NoConfiguration>() => {
                error.context(format!("the Plugin '{name}' has no configuration"))
            }
            None if error.is::<NoConfiguration>() => error.context("no Plugin is named with --plugin"),
            _ => error,
        })?;
        let present = match named {
            Some(present) => {
                present.is_for(&manifest)?;
                Some(present)
            }
            None if self.without_plugin_object => None,
            None => Present::of_kind(reader, &manifest).await?,
        };
        Ok((manifest, present))
    }

    /// What the cluster says of the plugin, with the configuration of the command line if it has one.
    fn settings(
        &self,
        manifest: &Manifest,
        present: Option<&Present>,
        place: &Place,
        given: Option<&Value>,
    ) -> anyhow::Result<PluginSettings> {
        let settings = settings_with(present, &place.host_namespace, given);
        settings.grants.check(manifest).context("the Plugin would not load this version")?;
        manifest.check_config(settings.config.as_deref())?;
        Ok(settings)
    }

    /// Checks the namespaces that say which objects are asked about: one that is misspelt has none, so that nothing would change.
    async fn check_namespaces(&self, reader: &Client) -> anyhow::Result<()> {
        for namespace in self.watch_namespace.iter().chain(&self.namespace) {
            is_there(reader, namespace).await?;
        }
        if let (Some(watched), Some(asked)) = (&self.watch_namespace, &self.namespace) {
            ensure!(watched == asked, "a host that watches the namespace '{watched}' has no objects of '{asked}'");
        }
        Ok(())
    }

    fn print(&self, version: &Plugin, present: Option<&Present>, forecast: &Forecast) -> anyhow::Result<ExitCode> {
        let report = Report::of(version, present.map(Present::version), forecast);
        match self.output {
            Output::Json => output::print_line(serde_json::to_string(&report)?)?,
            Output::Text => text::print(&report)?,
        }
        Ok(match report.counts.effect() {
            Effect::Nothing => ExitCode::SUCCESS,
            Effect::Changes => ExitCode::from(CHANGES),
            Effect::Trouble => ExitCode::FAILURE,
        })
    }
}

/// Checks that there is such a namespace.
async fn is_there(client: &Client, namespace: &str) -> anyhow::Result<()> {
    match Api::<Namespace>::all(client.clone()).get_metadata_opt(namespace).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => bail!("there is no namespace '{namespace}'"),
        // Who may read what is in it need not be allowed to read the namespace itself.
        Err(kube::Error::Api(refused)) if refused.code == 403 => Ok(()),
        Err(error) => Err(error).context(format!("failed to look for namespace '{namespace}'")),
    }
}

/// Shows on a terminal how far it is.
struct Progress {
    is_terminal: bool,
}

impl Progress {
    fn of_terminal() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal() }
    }

    fn show(&self, what: &str, done: usize, total: usize) {
        if self.is_terminal && (done.is_multiple_of(10) || done == total) {
            eprint!("\r{what} {done} of {total} objects");
            // What is not shown at once is shown with the next one.
            std::io::stderr().flush().ok();
        }
    }

    fn end(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
