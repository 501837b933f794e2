//! `pilothouse run`: the host itself.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Args;
use pilothouse_controller::{
    client,
    host::{Host, HostConfig},
    server::{self, Addresses},
    source::directory::Directory,
};
use pilothouse_engine::{Compiler, Engine, EngineConfig, Limits};
use tokio::signal::unix::{SignalKind, signal};

use crate::{cache_dir::CacheDir, logging::Logging};

/// Run the host: load the plugins of a directory and reconcile their objects until SIGTERM or SIGINT.
#[derive(Args)]
pub struct Run {
    /// Directory with plugins: every *.wasm in it is loaded, and followed while the host runs.
    #[arg(long, env = "PILOTHOUSE_PLUGINS", value_name = "DIR")]
    plugins: PathBuf,
    /// Kubeconfig file. Default: KUBECONFIG, else ~/.kube/config, else the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: its current context.
    #[arg(long)]
    context: Option<String>,
    /// The only namespace to watch. Default: all.
    #[arg(long, env = "WATCH_NAMESPACE", value_name = "NAMESPACE")]
    watch_namespace: Option<String>,
    /// The host's own namespace, for what must outlive it. Default: that of the pod's service account or of the context.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    host_namespace: Option<String>,
    /// Objects of one plugin that are reconciled at once.
    #[arg(long, default_value_t = HostConfig::default().concurrency, value_name = "N")]
    concurrency: usize,
    /// How often every object is reconciled without a reason, spread over that time, such as 10h or 30m.
    #[arg(long, default_value = "10h", value_name = "DURATION", value_parser = duration)]
    resync: Duration,
    /// How long a watch lasts before it is renewed, from 1s to 290s. One that is silent for 5 s longer is given up.
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration)]
    watch_renewal: Duration,
    /// Where /healthz and /readyz are served; port 0 takes a free one, which the log tells.
    #[arg(long, default_value = "0.0.0.0:8081", value_name = "ADDRESS")]
    health_address: SocketAddr,
    /// Where /metrics is served; port 0 takes a free one, which the log tells.
    #[arg(long, default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    metrics_address: SocketAddr,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    logging: Logging,
}

impl Run {
    /// Runs the command.
    ///
    /// # Errors
    /// What keeps the host from starting. What can be waited for is waited for, not an error.
    pub fn execute(&self) -> anyhow::Result<()> {
        self.logging.start()?;
        // One thread is quicker than several for work that is nearly all short answers to events: nothing changes hands.
        // What computes for long has threads of its own.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
        runtime.block_on(self.serve())
    }

    async fn serve(&self) -> anyhow::Result<()> {
        let config = client::config(self.kubeconfig.as_deref(), self.context.as_deref()).await?;
        let server_url = config.cluster_url.to_string();
        let own_namespace = self.host_namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = client::client(config)?;
        let engine = self.engine()?;
        let (namespace, concurrency) = (self.watch_namespace.clone(), self.concurrency);
        let host = Host::new(
            client,
            HostConfig {
                namespace,
                own_namespace,
                concurrency,
                resync: self.resync,
                watch_renewal: self.watch_renewal,
                ..HostConfig::default()
            },
        );
        let asked = Addresses { health: self.health_address, metrics: self.metrics_address };
        let addresses = server::serve(&host, asked).await?;
        let directory = Directory::open(&self.plugins, engine, host.clone())?;
        tracing::info!(
            api_server = server_url, plugins = %self.plugins.display(), health = %addresses.health,
            metrics = %addresses.metrics, "pilothouse {} starts", env!("CARGO_PKG_VERSION")
        );
        let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => tracing::info!("SIGTERM: ending what is under way"),
                _ = interrupt.recv() => tracing::info!("SIGINT: ending what is under way"),
            }
        };
        tokio::select! {
            () = host.run(stop) => {}
            followed = directory.follow() => followed?,
        }
        tracing::info!("pilothouse ends");
        Ok(())
    }

    fn engine(&self) -> anyhow::Result<Engine> {
        let program = std::env::current_exe().context("failed to find this program's own file, to compile plugins")?;
        let compiler = Compiler::ChildProcess { program, arguments: vec!["compile".to_owned()] };
        let config = EngineConfig { cache: self.cache_dir.path(), compiler, limits: Limits::default() };
        Ok(Engine::new(config)?)
    }
}

/// Reads a duration that is more than nothing.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|parsed| Duration::try_from(parsed).ok());
    parsed.filter(|parsed| !parsed.is_zero()).ok_or_else(|| "expected a duration such as 10h, 30m or 1h30m".to_owned())
}
