//! How the node ends the process of a Pod that is being deleted, as a kubelet does: first the hook, then the signal, and at the end of the
//! grace period by force. It does not decide which Pods go.

use std::{
    process::ExitStatus,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::signal::{self, Signal};
use serde_json::Value;
use tokio::process::Child;

/// A process that is being ended.
pub struct Ending {
    begun: Instant,
    hook: Duration,
    grace: Duration,
    is_asked: bool,
}

/// How a process has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// How long it took since its Pod was deleted.
    pub after: Duration,
    /// What it ended with: a process that was killed has no exit code.
    pub status: ExitStatus,
}

impl Ending {
    /// Begins with the hook of the Pod's first container.
    ///
    /// # Errors
    /// If the hook is none that this node knows.
    pub fn begin(pod: &Value) -> Result<Self> {
        let hook = &pod["spec"]["containers"][0]["lifecycle"]["preStop"];
        let seconds = hook["sleep"]["seconds"].as_u64();
        ensure!(hook.is_null() || seconds.is_some(), "a hook that is not known: {hook}");
        let grace =
            pod["metadata"]["deletionGracePeriodSeconds"].as_u64().context("a Pod that is not being deleted")?;
        let hook = Duration::from_secs(seconds.unwrap_or_default());
        Ok(Self { begun: Instant::now(), hook, grace: Duration::from_secs(grace), is_asked: false })
    }

    /// Does what it is time for, and returns how the process has ended, once it has.
    ///
    /// # Errors
    /// If no signal can be sent.
    pub fn go_on(&mut self, process: &mut Child) -> Result<Option<Ended>> {
        let after = self.begun.elapsed();
        if let Some(status) = process.try_wait()? {
            return Ok(Some(Ended { after, status }));
        }
        if after >= self.grace {
            process.start_kill()?;
        } else if after >= self.hook && !self.is_asked {
            signal::send(process.id().context("a process without a number")?, Signal::Terminate)?;
            self.is_asked = true;
        }
        Ok(None)
    }
}
