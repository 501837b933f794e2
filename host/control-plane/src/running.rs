//! The processes of one control plane, and how each is started and awaited. It starts and stops; it keeps no policy
//! about directories or repeated runs.

use crate::guard::Guard;
use crate::layout::{Layout, write_private};
use crate::ports::Ports;
use crate::probe::Probe;
use crate::process::{Process, tail};
use crate::state::State;
use crate::wait::{self, Waited};
use crate::{ADMIN, Assets, Options, Part, arguments, audit, certificates, kubeconfig, node, stages, users};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a part may take to become ready, on a machine that is busy with other work.
const READY: Duration = Duration::from_secs(120);
/// How often a start is repeated when a port was taken.
const ATTEMPTS: u32 = 4;

pub(crate) struct Running {
    pub(crate) layout: Layout,
    pub(crate) ports: Ports,
    pub(crate) tokens: BTreeMap<String, String>,
    options: Options,
    assets: Assets,
    processes: Vec<Process>,
    /// None when the processes are to outlive this one.
    guard: Option<Guard>,
}

impl Running {
    /// Starts everything and waits until it works. Repeats with other ports when somebody took one.
    pub(crate) async fn start(
        layout: &Layout,
        assets: &Assets,
        options: &Options,
        ports: Option<Ports>,
        detached: bool,
    ) -> Result<Self> {
        let mut ports = Ports::again_or_choose(ports)?;
        let mut attempt = 1;
        loop {
            let mut running = Self::prepare(layout, assets, options, ports, detached)?;
            match running.start_all().await {
                Ok(()) => return Ok(running),
                Err(error) if attempt < ATTEMPTS && port_was_taken(&error) => {
                    (options.report)(&format!("a port was taken meanwhile, starting again with others: {error:#}"));
                    running.stop().await?;
                    ports = Ports::choose()?;
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn prepare(layout: &Layout, assets: &Assets, options: &Options, ports: Ports, detached: bool) -> Result<Self> {
        layout.clear_logs()?;
        certificates::ensure(layout)?;
        stages::write(layout)?;
        write_private(&layout.audit_policy(), &audit::policy())?;
        let tokens = users::write_tokens(layout, &options.users)?;
        let url = format!("https://127.0.0.1:{}", ports.api_server);
        for (user, token) in &tokens {
            kubeconfig::write(layout, user, &url, token)?;
        }
        Ok(Running {
            layout: layout.clone(),
            ports,
            tokens,
            options: options.clone(),
            assets: assets.clone(),
            processes: Vec::new(),
            guard: if detached { None } else { Some(Guard::start()?) },
        })
    }

    async fn start_all(&mut self) -> Result<()> {
        for part in [Part::Etcd, Part::ApiServer] {
            self.start_part(part).await?;
        }
        let others = self.options.parts.list().iter().copied().filter(|part| *part > Part::ApiServer);
        for part in others.clone() {
            self.spawn(part)?;
        }
        for part in others {
            self.ready(part).await?;
        }
        self.settle().await
    }

    /// What a test relies on and the parts' own readiness does not tell.
    async fn settle(&mut self) -> Result<()> {
        let client = kubeconfig::client(&self.layout.kubeconfig(ADMIN)).await?;
        if self.options.parts.contains(Part::ControllerManager) {
            let account = async || node::has_default_account(&client).await;
            self.hold(Part::ControllerManager, "making the default service account", account).await?;
        }
        if self.options.parts.contains(Part::Kwok) {
            node::create(&client).await?;
            self.hold(Part::Kwok, "making the node ready", async || node::is_ready(&client).await).await?;
        }
        Ok(())
    }

    pub(crate) fn pid(&self, part: Part) -> Result<u32> {
        let process = self.processes.iter().find(|process| process.part() == part);
        process.map(Process::pid).with_context(|| format!("{part} is not running"))
    }

    /// Starts one part and waits until it is ready.
    pub(crate) async fn start_part(&mut self, part: Part) -> Result<()> {
        self.spawn(part)?;
        self.ready(part).await
    }

    /// Ends one part in good order.
    pub(crate) async fn stop_part(&mut self, part: Part) -> Result<()> {
        self.take(part)?.stop().await?;
        self.record()
    }

    /// Ends one part as a crash would.
    pub(crate) fn kill_part(&mut self, part: Part) -> Result<()> {
        self.take(part)?.kill()?;
        self.record()
    }

    /// Ends all parts, last started first, so that none is left without what it depends on.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        while let Some(process) = self.processes.pop() {
            process.stop().await?;
            self.record()?;
        }
        State::remove(&self.layout)
    }

    /// Lets all parts run on without this process.
    pub(crate) fn detach(mut self) {
        self.processes.drain(..).for_each(Process::detach);
    }

    fn take(&mut self, part: Part) -> Result<Process> {
        let index = self.processes.iter().position(|process| process.part() == part);
        Ok(self.processes.remove(index.with_context(|| format!("{part} is not running"))?))
    }

    fn spawn(&mut self, part: Part) -> Result<()> {
        if self.pid(part).is_ok() {
            bail!("{part} is already running");
        }
        let arguments = arguments::of(part, &self.layout, &self.ports, &self.options);
        let process = Process::spawn(part, self.assets.path(part)?, &arguments, &self.layout.log(part))?;
        self.processes.push(process);
        self.processes.sort_by_key(Process::part);
        self.record()
    }

    /// Tells the guard and the state file which processes there are.
    fn record(&mut self) -> Result<()> {
        if let Some(guard) = self.guard.as_mut() {
            guard.watch(self.processes.iter().map(Process::pid))?;
        }
        let state = State {
            detached: self.guard.is_none(),
            parts: self.options.parts,
            audit_log: self.options.audit_log,
            ports: self.ports.clone(),
            pids: self.processes.iter().map(|process| (process.part(), process.pid())).collect(),
        };
        state.save(&self.layout)
    }

    async fn ready(&mut self, part: Part) -> Result<()> {
        let probe = Probe::of(part, &self.layout, &self.ports).await?;
        self.hold(part, "becoming ready", async || probe.is_ready().await).await
    }

    /// Waits for `condition`; an error with the part's last words when it ends or takes too long instead.
    async fn hold(&mut self, part: Part, doing: &str, condition: impl AsyncFn() -> bool) -> Result<()> {
        let index = self.processes.iter().position(|process| process.part() == part);
        let index = index.with_context(|| format!("{part} is not running"))?;
        let process = &mut self.processes[index];
        let mut ended = None;
        let waited = wait::until(READY, async || {
            ended = process.ended()?;
            Ok(ended.is_some() || condition().await)
        });
        let waited = waited.await?;
        let log = self.layout.log(part);
        let last_words = || format!("last lines of {}:\n{}", log.display(), tail(&log));
        match (ended, waited) {
            (Some(status), _) => bail!("{part} ended instead of {doing} ({status}); {}", last_words()),
            (None, Waited::TimedOut) => {
                bail!("{part} takes over {READY:?} for {doing}; {}", last_words())
            }
            (None, Waited::Held) => Ok(()),
        }
    }
}

/// Every part says it in these words, as Go does.
fn port_was_taken(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}

impl Drop for Running {
    /// Last started first, so that parts do not log errors about what they lost.
    fn drop(&mut self) {
        while self.processes.pop().is_some() {}
    }
}
