//! `pilothouse run`: runs the host. Only assembles it; the work is in the controller and engine crates.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use clap::Args;
use futures::FutureExt;
use pilothouse_controller::{
    client,
    clock::Clock,
    host::{Host, HostConfig},
    metrics::Metrics,
    server::{self, Addresses, LogLevel},
    source::{
        directory::Directory,
        files_at_work::FilesAtWork,
        folder::Folder,
        loader::Loader,
        plugin_objects::{Folders, PluginObjects},
    },
};
use pilothouse_engine::memory_of_container;
use pilothouse_forecast::HostPlanner;

use crate::{
    cache_dir::CacheDir, cluster::Cluster, duration::duration, election::ElectionArguments, local_engine,
    logging::Logging, mebibytes::mebibytes, memory, plugin_configs::PluginConfigs, stop_signal,
};

/// Beside the memory of calls, this part of as much again is for what objects have looked up.
const PART_FOR_LOOKUPS: usize = 4;

/// The part of a container's memory that plugins may keep for as long as they are loaded. Calls have half of it, and lookups an eighth.
const PART_FOR_PLUGINS: usize = 8;

/// Run the host: load the plugins of a directory and reconcile their objects until SIGTERM or SIGINT.
#[derive(Args)]
pub struct Run {
    /// Directory with plugins: every *.wasm in it is loaded, and followed while the host runs.
    #[arg(long, env = "PILOTHOUSE_PLUGINS", value_name = "DIR", required_unless_present = "plugin_objects")]
    plugins: Option<PathBuf>,
    /// Load the plugins that Plugin objects of the cluster name (pilothouse.dev/v1alpha1), and follow them while the host runs.
    #[arg(long, env = "PILOTHOUSE_PLUGIN_OBJECTS")]
    plugin_objects: bool,
    /// Directory with the files that Plugin objects may name, in spec.source.directory. Nothing in it is loaded that no Plugin names.
    #[arg(long, env = "PILOTHOUSE_PLUGIN_FILES", value_name = "DIR", requires = "plugin_objects")]
    plugin_files: Option<PathBuf>,
    #[command(flatten)]
    configs: PluginConfigs,
    #[command(flatten)]
    cluster: Cluster,
    /// The only namespace to watch. Default: all.
    #[arg(long, env = "WATCH_NAMESPACE", value_name = "NAMESPACE")]
    watch_namespace: Option<String>,
    /// The host's own namespace, where it records child kinds. Default: that of the pod's service account or of the context.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    host_namespace: Option<String>,
    /// Objects of one plugin that are reconciled at once.
    #[arg(long, default_value_t = HostConfig::default().concurrency, value_name = "N")]
    concurrency: usize,
    /// How often every object is reconciled even without a change, spread over that time, such as 10h or 30m.
    #[arg(long, default_value = "10h", value_name = "DURATION", value_parser = duration)]
    resync: Duration,
    /// How long a watch lasts before it is renewed, from 1s to 290s. One that is silent for 5 s longer is restarted.
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration)]
    watch_renewal: Duration,
    /// How long the API server may take for a response before the request fails and is retried.
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    request_timeout: Duration,
    /// Memory in MiB that all calls of plugins may have together; a quarter as much again is for remembering what objects look up.
    /// Default: half of what the container may have.
    #[arg(long, env = "PILOTHOUSE_CALL_MEMORY", value_name = "MIB", value_parser = mebibytes)]
    call_memory: Option<usize>,
    /// Memory in MiB that plugins may keep together for as long as they are loaded, called or not; one more is refused. Default: an
    /// eighth of what the container may have.
    #[arg(long, env = "PILOTHOUSE_PLUGIN_MEMORY", value_name = "MIB", value_parser = mebibytes)]
    plugin_memory: Option<usize>,
    /// Where /healthz and /readyz are served; port 0 takes a free one, which the log shows.
    #[arg(long, default_value = "0.0.0.0:8081", value_name = "ADDRESS")]
    health_address: SocketAddr,
    /// Where /metrics is served; port 0 takes a free one, which the log shows.
    #[arg(long, default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    metrics_address: SocketAddr,
    #[command(flatten)]
    election: ElectionArguments,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    logging: Logging,
}

impl Run {
    /// Runs the command.
    ///
    /// # Errors
    /// If the host cannot start. Whatever may become available later, such as the API server, is waited for instead.
    pub fn execute(&self) -> anyhow::Result<()> {
        let level = self.logging.start()?;
        // A single thread is faster here: nearly all work is short, and no task moves between threads. Long computations have
        // threads of their own.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
        runtime.block_on(self.serve(Arc::new(level)))
    }

    async fn serve(&self, level: Arc<dyn LogLevel>) -> anyhow::Result<()> {
        let mut config = self.cluster.config().await?;
        config.read_timeout = Some(self.request_timeout);
        let own_namespace = self.host_namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let fence = self.election.fence();
        let (metrics, clock) = (Metrics::new(), Clock::system());
        let client = client::client(&config, metrics.requests(), fence.clone(), clock.clone())?;
        let engine = local_engine::open(&self.cache_dir, self.call_memory)?;
        let host = Host::new(
            client.clone(),
            metrics,
            HostConfig {
                namespace: self.watch_namespace.clone(),
                own_namespace: own_namespace.clone(),
                fence: fence.clone(),
                posts: self.election.posts(&fence),
                concurrency: self.concurrency,
                resync: self.resync,
                watch_renewal: self.watch_renewal,
                needs_plugin: !self.plugin_objects,
                plugin_configs: self.configs.read()?,
                clock,
                lookup_memory: engine.call_memory() / PART_FOR_LOOKUPS,
                ..HostConfig::default()
            },
        );
        let participation = self.election.participation(&config, own_namespace.clone(), fence, &host)?;
        let requested = Addresses { health: self.health_address, metrics: self.metrics_address };
        // Before the plugins are loaded, which takes seconds if they have to be compiled: probes and scrapes are answered from here
        // on.
        let addresses = server::serve(&host, level, requested).await?;
        let loader = Loader::new(engine.clone(), host.clone(), self.plugin_memory());
        let (plugins, files) = self.directories()?;
        let cache = self.cache_dir.path()?;
        let directory = plugins.map(|folder| {
            let at_work = FilesAtWork::read(&cache.join("files"), folder.path());
            Directory::new(folder, loader.clone(), at_work)
        });
        let folders = Folders { kept: cache.join("components"), files };
        let planner = Arc::new(HostPlanner::new(host.clone()));
        let objects = self.plugin_objects.then(|| PluginObjects::new(client, &own_namespace, loader, folders, planner));
        let plugins = self.plugins.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
        tracing::info!(
            api_server = %config.cluster_url, plugins, plugin_objects = self.plugin_objects, health = %addresses.health,
            metrics = %addresses.metrics, "pilothouse {} starts", env!("CARGO_PKG_VERSION")
        );
        let stop = stop_signal::listen()?;
        let work = participation.run(&host, stop);
        tokio::select! {
            ended = work => ended.inspect_err(|lost| tracing::error!("{lost}"))?,
            () = or_never(directory.map(Directory::follow)) => {}
            () = engine.keep_order() => {}
            () = memory::give_back_at_rest() => {}
            () = host.take_up_departed().then(|()| std::future::pending()) => {}
            () = or_never(objects.map(PluginObjects::follow)) => {}
        }
        tracing::info!("pilothouse ends");
        Ok(())
    }

    /// What plugins may keep together, in bytes.
    fn plugin_memory(&self) -> usize {
        let of_container = || memory_of_container().map_or(usize::MAX, |all| all / PART_FOR_PLUGINS);
        let bytes = self.plugin_memory.unwrap_or_else(of_container);
        tracing::info!("all plugins together may keep {} MiB of memory for as long as they are loaded", bytes >> 20);
        bytes
    }

    /// The directory whose files are plugins, and that of files that a `Plugin` has to name. They are two: what a `Plugin` does not name any
    /// more would get the host's own rights.
    fn directories(&self) -> anyhow::Result<(Option<Folder>, Option<Folder>)> {
        let open = |path: &Option<PathBuf>, flag| path.as_deref().map(|path| Folder::open(path, flag)).transpose();
        let (plugins, files) = (open(&self.plugins, "--plugins")?, open(&self.plugin_files, "--plugin-files")?);
        if let (Some(plugins), Some(files)) = (&plugins, &files) {
            anyhow::ensure!(
                !plugins.is_same(files),
                "--plugins and --plugin-files name one directory, '{}'; every file of the former is loaded by itself, and none of the latter: \
                 name another directory for one of them",
                files.path().display()
            );
        }
        Ok((plugins, files))
    }
}

/// The result of a task; never anything if there is none.
async fn or_never<T>(task: Option<impl Future<Output = T>>) -> T {
    match task {
        Some(task) => task.await,
        None => std::future::pending().await,
    }
}
