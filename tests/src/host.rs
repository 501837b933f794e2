//! A host as a child process with its own plugin directory. It is killed when its owner is dropped.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use pilothouse_control_plane::signal::{self, Signal};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    artifacts,
    http::{self, Answer},
    pod::Pod,
    wait::{Look, eventually},
};

/// The time limit for a host to start or stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// The setup of a host.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The cluster.
    pub kubeconfig: PathBuf,
    /// The simulated pod of the host, from which it finds its cluster instead of from a kubeconfig.
    pub pod: Option<Pod>,
    /// The folder of the control group that it runs in.
    pub cgroup: Option<PathBuf>,
    /// The only namespace that it watches; none for all.
    pub namespace: Option<String>,
    /// The cache for compiled plugins, shared by all hosts of a run.
    pub cache: PathBuf,
    /// More arguments of `pilothouse run`.
    pub arguments: Vec<String>,
    /// More variables of its environment.
    pub variables: Vec<(&'static str, PathBuf)>,
}

/// A command that runs a program in a control group.
fn in_cgroup(cgroup: &Path, program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", r#"echo $$ >"$0/cgroup.procs" && exec "$@""#]).arg(cgroup).arg(program);
    command
}

/// A host, running or stopped.
pub struct Host {
    setup: Setup,
    folder: TempDir,
    process: Option<Child>,
    starts: usize,
    /// The variable `LOG_LEVEL`, if it is set.
    log_level: Option<&'static str>,
}

impl Host {
    /// Starts a host with an empty plugin directory.
    ///
    /// # Errors
    /// If it does not start. Quotes its log.
    pub async fn start(setup: Setup) -> Result<Self> {
        let mut host = Self::prepare(setup)?;
        host.resume().await?;
        Ok(host)
    }

    /// A host that does not run yet; plugins can be installed before [`Host::resume`] starts it.
    ///
    /// # Errors
    /// If its folder cannot be made.
    pub fn prepare(setup: Setup) -> Result<Self> {
        let folder = tempfile::tempdir().context("failed to make the host's folder")?;
        std::fs::create_dir(folder.path().join("plugins"))?;
        Ok(Self { setup, folder, process: None, starts: 0, log_level: None })
    }

    /// Sets the variable `LOG_LEVEL` from the next start on.
    pub fn set_log_level(&mut self, level: Option<&'static str>) {
        self.log_level = level;
    }

    /// Starts the host, again if it was stopped, and waits until its HTTP answers.
    ///
    /// # Errors
    /// If it does not start. Quotes its log.
    pub async fn resume(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the host runs already");
        self.starts += 1;
        let log = std::fs::File::create(self.log_path())?;
        let binary = artifacts::host_binary()?;
        let mut command = match (&self.setup.pod, &self.setup.cgroup) {
            (Some(pod), _) => pod.command(binary)?,
            (None, Some(cgroup)) => in_cgroup(cgroup, &binary),
            (None, None) => Command::new(binary),
        };
        command.arg("run").arg("--plugins").arg(self.plugins());
        if self.setup.pod.is_none() {
            command.arg("--kubeconfig").arg(&self.setup.kubeconfig);
        }
        // Two addresses, as a deployed host has them.
        command.args(["--health-address", "127.0.0.1:0", "--metrics-address", "127.0.0.2:0", "--log-format", "json"]);
        command.arg("--cache-dir").arg(&self.setup.cache).args(&self.setup.arguments);
        if let Some(namespace) = &self.setup.namespace {
            command.args(["--watch-namespace", namespace]);
        }
        if let Some(level) = self.log_level {
            command.env("LOG_LEVEL", level);
        }
        command.envs(self.setup.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        self.process = Some(command.spawn().context("failed to start the host")?);
        eventually(PATIENCE, "the host to listen", async || {
            self.check_alive()?;
            Ok(self.address("health").map_or_else(|error| Look::NotYet(error.to_string()), |_| Look::Found(())))
        })
        .await
    }

    /// Waits until the host reports ready.
    ///
    /// # Errors
    /// If the host does not become ready in time. Quotes what is missing.
    pub async fn ready(&self) -> Result<()> {
        self.ready_within(PATIENCE).await
    }

    /// The same with a limit of its own, as for a host that compiles many plugins first.
    ///
    /// # Errors
    /// If the host does not become ready in time. Quotes what is missing.
    pub async fn ready_within(&self, limit: Duration) -> Result<()> {
        eventually(limit, "the host to be ready", async || {
            let (status, body) = self.get("health", "/readyz").await?;
            Ok(Look::of(status == 200, body))
        })
        .await
    }

    /// Stops the host with SIGTERM and waits for its end.
    ///
    /// # Errors
    /// If it does not end in time or with another code than 0.
    pub async fn stop(&mut self) -> Result<()> {
        self.signal(Signal::Terminate)?;
        let code = self.ended().await?;
        ensure!(code == Some(0), "the host ended with {code:?}\n{}", self.log());
        Ok(())
    }

    /// Sends a signal to the host.
    ///
    /// # Errors
    /// If it does not run.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        signal::send(self.pid()?, signal)
    }

    /// Freezes the host and waits until all of it stands still.
    ///
    /// # Errors
    /// If it does not run.
    pub async fn freeze(&self) -> Result<()> {
        self.signal(Signal::Stop)?;
        signal::stopped(self.pid()?).await
    }

    /// Waits until the host exits and returns its exit code; none if a signal ended it.
    ///
    /// # Errors
    /// If it does not end in time.
    pub async fn ended(&mut self) -> Result<Option<i32>> {
        let mut process = self.process.take().context("the host does not run")?;
        let status = tokio::time::timeout(PATIENCE, process.wait()).await.context("the host did not end")??;
        Ok(status.code())
    }

    /// Kills the host with SIGKILL, like a crash.
    ///
    /// # Errors
    /// If it does not run.
    pub async fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the host does not run")?;
        process.kill().await.context("failed to kill the host")
    }

    /// The plugin directory.
    pub fn plugins(&self) -> PathBuf {
        self.folder.path().join("plugins")
    }

    /// Installs a plugin under a file name atomically, and replaces an existing one.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn install(&self, plugin: &Path, name: &str) -> Result<()> {
        let hidden = self.plugins().join(format!(".{name}.new"));
        std::fs::copy(plugin, &hidden).with_context(|| format!("failed to copy '{}'", plugin.display()))?;
        std::fs::rename(&hidden, self.plugins().join(name))?;
        Ok(())
    }

    /// Removes a plugin by its file name.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn remove(&self, name: &str) -> Result<()> {
        Ok(std::fs::remove_file(self.plugins().join(name))?)
    }

    /// The log since the last start.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Waits until a log line contains a text.
    ///
    /// # Errors
    /// If the line does not come in time. Quotes the log.
    pub async fn logged(&self, text: &str) -> Result<()> {
        let what = format!("the log line '{text}'");
        eventually(PATIENCE, &what, async || Ok(Look::of(self.log().contains(text), self.log()))).await
    }

    /// The process id.
    ///
    /// # Errors
    /// If it does not run.
    pub fn pid(&self) -> Result<u32> {
        self.process.as_ref().and_then(Child::id).context("the host does not run")
    }

    /// The exposition of `/metrics`, as OpenMetrics.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn metrics(&self) -> Result<String> {
        http::metrics(&self.address("metrics")?).await
    }

    /// Sends a GET to the host's `health` or `metrics` address.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn get(&self, address: &str, path: &str) -> Result<(u16, String)> {
        let Answer { status, body, .. } = self.ask(address, &format!("GET {path} HTTP/1.1\r\n"), "").await?;
        Ok((status, body))
    }

    /// Sends a raw request to the host: request line and headers, each with its line end, and a body.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn ask(&self, address: &str, head: &str, body: &str) -> Result<Answer> {
        http::ask(&self.address(address)?, head, body).await
    }

    /// The logs of all starts.
    pub fn whole_log(&self) -> String {
        (1..=self.starts).filter_map(|start| std::fs::read_to_string(self.log_of(start)).ok()).collect()
    }

    fn log_path(&self) -> PathBuf {
        self.log_of(self.starts)
    }

    fn log_of(&self, start: usize) -> PathBuf {
        self.folder.path().join(format!("host-{start}.log"))
    }

    /// The address in the first line of the log.
    ///
    /// # Errors
    /// If the host has not started yet.
    pub fn address(&self, which: &str) -> Result<SocketAddr> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains("pilothouse") && line.contains("starts"));
        let line: Value = serde_json::from_str(line.context("the host has not started yet")?)?;
        Ok(line[which].as_str().context("no address in the log")?.parse()?)
    }

    fn check_alive(&self) -> Result<()> {
        let ended = self.process.as_ref().is_none_or(|process| process.id().is_none());
        if ended {
            bail!("the host ended: {}", self.log());
        }
        Ok(())
    }
}
