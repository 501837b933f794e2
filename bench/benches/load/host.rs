//! The host being measured: a process of its own, with what it costs and counts.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts, http,
    metrics::Samples,
    wait::{Look, eventually},
};

/// How long a phase may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Clock ticks per second of `/proc/PID/stat`: fixed on Linux.
const TICKS: f64 = 100.0;

/// A running host.
pub struct Host {
    process: Child,
    metrics: SocketAddr,
}

impl Host {
    /// Starts a variant, for the namespace that has its name.
    pub fn start(variant: &str, kubeconfig: &Path, cache: &Path) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_load-host"));
        command.arg(variant).arg(kubeconfig).arg(variant).arg(artifacts::plugin("app-service")?).arg(cache);
        let mut process = command.stdout(Stdio::piped()).spawn().context("failed to start the host")?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("no output")?).read_line(&mut line)?;
        let metrics =
            line.trim().parse().with_context(|| format!("the host does not tell its address but '{line}'"))?;
        Ok(Self { process, metrics })
    }

    /// Ends it with SIGTERM.
    pub fn stop(mut self) -> Result<()> {
        ensure!(Command::new("kill").arg(self.process.id().to_string()).status()?.success(), "failed to stop the host");
        ensure!(self.process.wait()?.success(), "the host ended badly");
        Ok(())
    }

    /// The time of processors that it has used, in seconds.
    pub fn cpu(&self) -> Result<f64> {
        cpu(self.process.id())
    }

    /// Its memory, and the most it had, in MiB.
    pub fn memory(&self) -> Result<(f64, f64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such field")?;
            anyhow::Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
        };
        Ok((field("VmRSS")?, field("VmHWM")?))
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

/// The time of processors that a process has used, in seconds.
pub fn cpu(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in parentheses, may hold spaces.
    let fields: Vec<_> = stat.rsplit_once(") ").context("a malformed stat")?.1.split(' ').collect();
    let ticks = |field: usize| anyhow::Ok(fields.get(field).context("no such field")?.parse::<f64>()?);
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}
