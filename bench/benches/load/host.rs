//! The host being measured: a process of its own, with what it costs and counts.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use pilothouse_bench::process::Process;
use pilothouse_tests::{
    artifacts, http,
    metrics::Samples,
    wait::{Look, eventually},
};

use crate::variant::{Build, Program, Variant};

/// How long a phase may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running host.
pub struct Host {
    process: Process,
    metrics: SocketAddr,
}

impl Host {
    /// Starts a variant, for the namespace that has its name.
    pub async fn start(variant: &Variant, kubeconfig: &Path, cache: &Path) -> Result<Self> {
        match &variant.program {
            Program::LoadHost => Self::start_load_host(variant.name, kubeconfig, cache),
            Program::Build(build) => Self::start_build(build, variant.name, kubeconfig, cache).await,
        }
    }

    fn start_load_host(name: &str, kubeconfig: &Path, cache: &Path) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_load-host"));
        command.arg(name).arg(kubeconfig).arg(name).arg(artifacts::plugin("app-service")?).arg(cache);
        let mut process = Process::start(command.stdout(Stdio::piped()))?;
        let mut line = String::new();
        BufReader::new(process.output().context("no output")?).read_line(&mut line)?;
        let metrics =
            line.trim().parse().with_context(|| format!("the host does not tell its address but '{line}'"))?;
        Ok(Self { process, metrics })
    }

    async fn start_build(build: &Build, name: &str, kubeconfig: &Path, cache: &Path) -> Result<Self> {
        let plugins = cache.join("plugins");
        fs::create_dir_all(&plugins)?;
        fs::copy(&build.plugin, plugins.join("app-service.wasm"))?;
        // A build tells its address in its log only, which costs it time. So it is told a port that was free just now.
        let metrics = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(&build.host);
        command.args(["run", "--health-address", "127.0.0.1:0", "--log-level", "warn"]);
        command.arg("--metrics-address").arg(metrics.to_string()).arg("--kubeconfig").arg(kubeconfig);
        command.args(["--watch-namespace", name, "--host-namespace", name]);
        command.arg("--plugins").arg(plugins).arg("--cache-dir").arg(cache.join("cache"));
        let host = Self { process: Process::start(&mut command)?, metrics };
        eventually(PATIENCE, "the host to be there", async || {
            Ok(host.counts().await.map_or_else(|error| Look::NotYet(error.to_string()), |_| Look::Found(())))
        })
        .await?;
        Ok(host)
    }

    /// Ends it with SIGTERM.
    pub fn stop(self) -> Result<()> {
        self.process.stop()
    }

    /// The time of processors that it has used, in seconds.
    pub fn cpu(&self) -> Result<f64> {
        self.process.cpu()
    }

    /// Its memory, and the most it had, in MiB.
    pub fn memory(&self) -> Result<(f64, f64)> {
        self.process.memory()
    }

    /// What it counts.
    pub async fn counts(&self) -> Result<Samples> {
        Samples::parse(&http::metrics(&self.metrics).await?)
    }

    /// Its writes of children and statuses.
    pub async fn writes(&self) -> Result<f64> {
        Ok(self.counts().await?.sum("rest_client_requests_total", &[("method", "PATCH")]))
    }

    /// Waits until it has made so many writes.
    pub async fn until_writes(&self, least: f64) -> Result<()> {
        eventually(PATIENCE, &format!("{least} writes"), async || {
            let writes = self.writes().await?;
            Ok(Look::of(writes >= least, writes))
        })
        .await
    }

    /// Waits until it has reconciled so often.
    pub async fn until_reconciles(&self, least: f64) -> Result<()> {
        eventually(PATIENCE, &format!("{least} reconciles"), async || {
            let reconciles = self.reconciles().await?;
            Ok(Look::of(reconciles >= least, reconciles))
        })
        .await
    }

    /// How often it has reconciled, be it without asking the plugin.
    pub async fn reconciles(&self) -> Result<f64> {
        Ok(self.counts().await?.sum("controller_runtime_reconcile_total", &[]))
    }

    /// How often it has asked the plugin, and how long it waited for the answers.
    pub async fn calls(&self) -> Result<Calls> {
        let counts = self.counts().await?;
        let sum = |end: &str| counts.sum(&format!("pilothouse_plugin_call_seconds_{end}"), &[]);
        Ok(Calls { number: sum("count"), seconds: sum("sum") })
    }
}

/// Calls of the plugin.
#[derive(Clone, Copy, Default)]
pub struct Calls {
    /// How many.
    pub number: f64,
    seconds: f64,
}

impl Calls {
    /// Those that were made since.
    pub fn since(self, before: Self) -> Self {
        Self { number: self.number - before.number, seconds: self.seconds - before.seconds }
    }

    /// How long each took, in microseconds.
    pub fn microseconds(self) -> f64 {
        self.seconds / self.number.max(1.0) * 1e6
    }
}
