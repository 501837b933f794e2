//! A control plane that runs without its starter, for the demo and for working by hand: `up`, `status`, `down`.
//! Any process may call these; what runs is found through the directory alone.

use crate::layout::Layout;
use crate::probe::Probe;
use crate::running::Running;
use crate::state::State;
use crate::{ADMIN, Assets, Options, Part, Report, leftovers};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What `up` found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    /// It was up and as asked for: nothing was done.
    Already,
    /// It was started.
    Started,
    /// Some of it was missing, did not answer, or is asked for differently now: the rest was ended and all started
    /// anew, with the same objects.
    Repaired,
}

/// One part, as `status` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartStatus {
    /// The part.
    pub part: Part,
    /// Its process, if it runs.
    pub pid: Option<u32>,
    /// Whether it says that it is ready.
    pub ready: bool,
}

/// A control plane, as `status` sees it. No parts: nothing was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Its parts in the order in which they start.
    pub parts: Vec<PartStatus>,
}

impl Status {
    /// Whether all of it runs and is ready.
    pub fn is_up(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(|part| part.pid.is_some() && part.ready)
    }
}

/// Makes sure that the control plane in `options.dir` is up, and gives the administrator's kubeconfig. Harmless when
/// it is; objects survive a repair.
pub async fn up(assets: &Assets, options: &Options) -> Result<(Up, PathBuf)> {
    let layout = Layout::create(&options.dir)?;
    let _lock = layout.lock()?;
    let state = State::load(&layout)?;
    let kubeconfig = layout.kubeconfig(ADMIN);
    if let Some(state) = &state {
        if state.parts == options.parts && state.audit_log == options.audit_log && look(&layout, state).await?.is_up() {
            return Ok((Up::Already, kubeconfig));
        }
        leftovers::stop(&layout, state, &options.report).await?;
    }
    let done = if state.is_some() { Up::Repaired } else { Up::Started };
    let ports = state.map(|state| state.ports);
    Running::start(&layout, assets, options, ports, true).await?.detach();
    Ok((done, kubeconfig))
}

/// Ends the control plane in `dir` and removes its objects. Harmless when nothing runs.
pub async fn down(dir: &Path, report: impl Fn(&str) + Send + Sync + 'static) -> Result<()> {
    let layout = Layout::find(dir)?;
    let _lock = layout.lock()?;
    if let Some(state) = State::load(&layout)? {
        leftovers::stop(&layout, &state, &(Arc::new(report) as Report)).await?;
    }
    layout.remove_etcd_data()?;
    State::remove(&layout)
}

/// What runs in `dir`, without changing anything.
pub async fn status(dir: &Path) -> Result<Status> {
    if !dir.exists() {
        return Ok(Status::default());
    }
    let layout = Layout::find(dir)?;
    match State::load(&layout)? {
        Some(state) => look(&layout, &state).await,
        None => Ok(Status::default()),
    }
}

async fn look(layout: &Layout, state: &State) -> Result<Status> {
    let mut parts = Vec::new();
    for &part in state.parts.list() {
        let pid = state.pids.get(&part).copied().filter(|pid| leftovers::runs(layout, part, *pid));
        let ready = pid.is_some() && Probe::of(part, layout, &state.ports).await?.is_ready().await;
        parts.push(PartStatus { part, pid, ready });
    }
    Ok(Status { parts })
}
