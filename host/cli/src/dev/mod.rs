//! `pilothouse dev`: the loop of a plugin's author. Runs a host in this process and gives it what it builds, each time that a source is saved.
//! Only assembles and waits; a round of building is in `project.rs`.

mod at_work;
mod definitions;
mod held_back;
mod input;
mod local_cluster;
mod made;
mod project;
mod sources;
mod view;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, ensure};
use clap::Args;
use futures::{FutureExt, future};
use kube::{Client, Config};
use pilothouse_controller::{
    client::{self, fence::Fence},
    clock::Clock,
    host::{Host, HostConfig},
    metrics::Metrics,
    source::loader::Loader,
};
use tokio::time::{Instant, MissedTickBehavior};
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use self::{input::Typed, local_cluster::LocalCluster, project::Project, sources::Sources, view::View};
use crate::{
    cache_dir::CacheDir, cluster::Cluster, confirm::confirm, local_engine, logging::Logging,
    plugin_configs::PluginConfigs, stop_signal,
};

/// How often what the versions at work do is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

/// What is logged unless the author says otherwise: trouble, and what the plugins log themselves. What the host does is told in fewer words.
const LOG_LEVEL: &str = "warn,plugin=info";

/// Build plugins and run them on a cluster, again each time that a source is saved, until SIGTERM or SIGINT.
///
/// In each folder: builds the plugin, applies its CustomResourceDefinitions (*.yaml and crds/*.yaml), runs its test cases, shows what the new
/// version would change of the objects that are there, and puts it to work in the place of the one before. If a step fails, the error is
/// shown and the version before goes on; failing test cases are only shown. What the plugin logs comes with the log of the host.
///
/// A kind without code is not built: composition.yaml goes to work with the compose.wasm in the folder build.
///
/// In a terminal, it takes the whole screen: a row for each plugin, and below it what happens. Elsewhere, and with --lines, it prints lines.
///
/// The host runs in this program, beside those of the cluster: a kind that a Plugin of the cluster reconciles is refused. When it ends,
/// objects and children stay as they are.
#[derive(Args)]
#[command(mut_arg("log_level", |level| level.default_value(LOG_LEVEL)))]
pub struct Dev {
    /// Folders of plugins.
    #[arg(default_value = ".", value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// The only namespace to work in. Default: all.
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    configs: PluginConfigs,
    /// Work on a cluster of its own: a control plane on this machine, without containers, that ends with the command and takes its objects
    /// along. Linux only.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    local: bool,
    /// Print lines, also in a terminal.
    #[arg(long)]
    lines: bool,
    /// Do not ask where the cluster is not on this machine.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    logging: Logging,
}

/// Where plugins are put to work.
struct Target {
    client: Client,
    loader: Arc<Loader>,
    cache_dir: CacheDir,
}

impl Target {
    fn host(&self) -> &Arc<Host> {
        self.loader.host()
    }
}

impl Dev {
    /// Runs the command.
    ///
    /// # Errors
    /// If it cannot start: a folder is missing, or there is no cluster to work on.
    pub fn execute(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
        let result = runtime.block_on(self.develop());
        // A build may be under way, or a line be awaited from the terminal.
        runtime.shutdown_background();
        result
    }

    async fn develop(&self) -> anyhow::Result<()> {
        let folders: Vec<_> = self.dirs.iter().map(|path| folder(path)).collect::<Result<_, _>>()?;
        let sources = Sources::watch(&folders)?;
        let remote = match self.local {
            true => None,
            false => Some(self.cluster.config().await?),
        };
        if let Some(config) = &remote {
            confirm_cluster(config, self.yes)?;
        }
        let labels = folders.iter().map(|folder| project::label(folder)).collect();
        let view = View::open(labels, self.lines).context("failed to use the terminal; print lines with --lines")?;
        let screen = view.follow();
        tokio::select! {
            ended = self.develop_in(&view, sources, folders, remote) => ended,
            () = screen => Ok(()),
        }
    }

    async fn develop_in(
        &self,
        view: &View,
        sources: Sources,
        folders: Vec<PathBuf>,
        remote: Option<Config>,
    ) -> anyhow::Result<()> {
        let (local, config) = match remote {
            Some(config) => (None, config),
            None => {
                let local = tokio::select! {
                    local = LocalCluster::start(view) => local?,
                    () = view.ended() => return Ok(()),
                };
                let config = local.config().await?;
                (Some(local), config)
            }
        };
        // Not before: requests to a cluster that starts fail for a while, which is logged.
        match view.log() {
            Some(lines) => self.logging.start_to(BoxMakeWriter::new(move || lines.clone()), false)?,
            None => self.logging.start()?,
        };
        let target = self.target(&config)?;
        let projects = folders.into_iter().map(|folder| Project::new(folder, view.clone())).collect();
        view.print(&format!("works on {}; Enter builds again, Ctrl-C ends", config.cluster_url));
        let host = target.host().clone();
        let stop = future::select(stop_signal::listen()?, view.ended()).map(drop);
        tokio::select! {
            () = host.run(stop) => {}
            ended = follow(sources, projects, &target, view) => ended?,
        }
        // An API server ends once nobody watches.
        drop((target, host));
        match local {
            Some(local) => local.stop().await,
            None => Ok(()),
        }
    }

    /// A host without plugins.
    fn target(&self, config: &Config) -> anyhow::Result<Target> {
        let (metrics, fence, clock) = (Metrics::new(), Fence::open(), Clock::system());
        let client = client::client(config, metrics.requests(), fence.clone(), clock.clone())?;
        let host_config = HostConfig {
            namespace: self.namespace.clone(),
            own_namespace: config.default_namespace.clone(),
            fence,
            plugin_configs: self.configs.read()?,
            clock,
            ..HostConfig::default()
        };
        let host = Host::new(client.clone(), metrics, host_config);
        let loader = Loader::new(local_engine::open(&self.cache_dir, None)?, host, usize::MAX);
        Ok(Target { client, loader, cache_dir: self.cache_dir.clone() })
    }
}

/// The whole path of a folder, which the tools of languages want.
fn folder(path: &Path) -> anyhow::Result<PathBuf> {
    let whole = path.canonicalize().with_context(|| format!("there is no folder '{}'", path.display()))?;
    ensure!(whole.is_dir(), "'{}' is no folder; name that of a plugin", path.display());
    Ok(whole)
}

/// Asks before a cluster is worked on that others may use, too.
fn confirm_cluster(config: &Config, is_confirmed: bool) -> anyhow::Result<()> {
    let host = config.cluster_url.host().unwrap_or_default();
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let question =
        format!("The cluster at {} is not on this machine. Run unfinished plugins on it?", config.cluster_url);
    confirm(&question, is_confirmed || is_here)
}

/// Builds all projects, and again each one that changes.
async fn follow(mut sources: Sources, mut projects: Vec<Project>, target: &Target, view: &View) -> anyhow::Result<()> {
    // Read all the time: what was typed before something is asked is no answer to it.
    let mut input = view.input();
    let mut looks = tokio::time::interval(LOOK_PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for project in &mut projects {
        project.round(target, Instant::now()).await;
    }
    loop {
        tokio::select! {
            change = sources.next() => {
                let changes = sources.settled(change?).await;
                // Before the build reads the sources: what is saved from here on leads to another round.
                sources.watch_new_folders()?;
                for project in projects.iter_mut().filter(|project| changes.concerns(project.folder())) {
                    project.round(target, changes.since).await;
                }
            }
            _ = looks.tick() => projects.iter_mut().for_each(|project| project.look(target)),
            typed = input.next() => {
                for project in &mut projects {
                    match typed {
                        Typed::Yes => project.confirm(target).await,
                        Typed::Again => project.round(target, Instant::now()).await,
                    }
                }
            }
        }
    }
}
