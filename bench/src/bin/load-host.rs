//! A host for load benchmarks: the one of `pilothouse run` with the AppService plugin, as WebAssembly or linked natively.
//! Everything else is the same, so that what differs is the cost of WebAssembly.
//!
//!   load-host wasm|native KUBECONFIG NAMESPACE PLUGIN CACHE
//!
//! Prints the address of its metrics, then works until SIGTERM.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, Result, bail};
use pilothouse_bench::native::Native;
use pilothouse_controller::{
    client,
    host::{Host, HostConfig},
    metrics::Metrics,
    plugin::PluginSettings,
    server::{self, Addresses, LogLevel, LogLevelError},
};
use pilothouse_engine::{Compiler, Engine, EngineConfig, Limits, Reconciler};
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    rustix::thread::disable_transparent_huge_pages(true).context("failed to switch huge pages off")?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}

async fn run() -> Result<()> {
    let [_, variant, kubeconfig, namespace, plugin, cache] =
        std::env::args().collect::<Vec<_>>().try_into().map_err(|given| {
            anyhow::anyhow!("usage: load-host wasm|native KUBECONFIG NAMESPACE PLUGIN CACHE, not {given:?}")
        })?;
    // From here on SIGTERM is heard, also by a host that still compiles.
    let mut terminate = signal(SignalKind::terminate())?;
    let config = client::config(Some(&PathBuf::from(kubeconfig)), None).await?;
    let metrics = Metrics::new();
    let HostConfig { fence, clock, .. } = HostConfig::default();
    let client = client::client(&config, metrics.requests(), fence.clone(), clock.clone())?;
    let (namespace, own_namespace) = (Some(namespace.clone()), namespace);
    let config = HostConfig { namespace, own_namespace, fence, clock, ..HostConfig::default() };
    let host = Host::new(client, metrics, config);
    let any = "127.0.0.1:0".parse()?;
    let addresses = server::serve(&host, Arc::new(FixedLevel), Addresses { health: any, metrics: any }).await?;
    println!("{}", addresses.metrics);
    host.install(reconciler(&variant, &plugin, cache.into()).await?, PluginSettings::default());
    let stop = async {
        terminate.recv().await;
    };
    host.run(stop).await;
    Ok(())
}

async fn reconciler(variant: &str, plugin: &str, cache: PathBuf) -> Result<Arc<dyn Reconciler>> {
    match variant {
        "native" => Ok(Arc::new(Native::app_service()?)),
        "wasm" => {
            let bytes =
                std::fs::read(plugin).with_context(|| format!("failed to read '{plugin}': run `make plugins`"))?;
            let config = EngineConfig {
                cache,
                compiler: Compiler::InProcess,
                limits: Limits::default(),
                call_memory: usize::MAX,
            };
            Ok(Arc::new(Engine::new(config)?.load(bytes).await?))
        }
        other => bail!("'{other}' is neither wasm nor native"),
    }
}

/// A benchmark logs nothing.
struct FixedLevel;

impl LogLevel for FixedLevel {
    fn current(&self) -> String {
        "off".to_owned()
    }

    fn change(&self, _: &str) -> Result<(), LogLevelError> {
        Err(LogLevelError::NotChangeable("a benchmark's host logs nothing".to_owned()))
    }
}
