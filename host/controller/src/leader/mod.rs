//! Leader election by a Lease, as client-go does it: of several hosts one works, the others stand by with plugins loaded
//! and caches filled. Whoever can no longer renew stops writing and ends before the Lease can go to another.

mod lease;

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use tokio::time::Instant;

use self::lease::ObservedLease;
use crate::{
    client::fence::Fence,
    clock::{Clock, Random},
    errors::chain,
    metrics::Metrics,
};

/// How long a host that stood by lets its caches follow the last writes of the leader before it.
const SETTLE: Duration = Duration::from_millis(200);

/// How a host takes part in an election.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the Lease.
    pub name: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Names this process, and no other.
    pub identity: String,
    /// How long the others wait for a renewal before one of them takes over; counted in whole seconds.
    pub duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// How often the Lease is renewed, or asked for.
    pub retry_period: Duration,
}

/// What an election works with besides the API server.
#[derive(Clone)]
pub struct Dependencies {
    /// Opened only while this host leads.
    pub fence: Fence,
    /// Tell who leads.
    pub metrics: Arc<Metrics>,
    /// Tells the time of day.
    pub clock: Clock,
    /// Keeps hosts that began together from asking together.
    pub random: Random,
}

/// Durations that let two hosts lead at once, or none for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Of the Lease.
    #[error("the lease duration must be whole seconds, and at least one")]
    Duration,
    /// Of the renew deadline.
    #[error(
        "the renew deadline must be shorter than the lease duration, so that the leader stops before another begins"
    )]
    RenewDeadline,
    /// Of the retry period.
    #[error("the retry period must be more than nothing, and less than half of the renew deadline")]
    RetryPeriod,
}

impl Settings {
    fn check(&self) -> Result<(), SettingsError> {
        if self.duration.subsec_nanos() != 0 || self.duration.is_zero() {
            Err(SettingsError::Duration)
        } else if self.renew_deadline >= self.duration {
            Err(SettingsError::RenewDeadline)
        } else if self.retry_period.is_zero() || self.retry_period * 2 > self.renew_deadline {
            Err(SettingsError::RetryPeriod)
        } else {
            Ok(())
        }
    }
}

/// Names a process on a machine, and no other process: for people the machine, for the rest a number.
pub fn identity(machine: &str, random: &Random) -> String {
    format!("{machine}_{:016x}", random.number())
}

/// The Lease is another's, or may be soon. Nothing may be written any more.
#[derive(Debug, thiserror::Error)]
#[error("lost the Lease '{lease}', so this host ends: {why}")]
pub struct LeaseLost {
    lease: String,
    why: String,
}

/// One host's part in an election.
pub struct Election {
    api: Api<Lease>,
    settings: Settings,
    fence: Fence,
    metrics: Arc<Metrics>,
    clock: Clock,
    random: Random,
    observed: Option<ObservedLease>,
    /// What was logged last, so that it is not logged again.
    last_logged: String,
}

/// How an attempt to get or to keep the Lease ended.
enum Attempt {
    /// It is this host's.
    Held,
    /// It is somebody else's.
    HeldByOther(String),
    /// Nobody knows.
    Failed(String),
}

impl Election {
    /// Takes no part yet. `client` must not pass the fence, and should have a connection of its own: the Lease must be
    /// renewed whatever else the host does.
    ///
    /// # Errors
    /// [`SettingsError`] where the durations do not fit each other.
    pub fn new(client: Client, settings: Settings, surroundings: Dependencies) -> Result<Self, SettingsError> {
        settings.check()?;
        let Dependencies { fence, metrics, clock, random } = surroundings;
        metrics.election.register_lease(&settings.name);
        let api = Api::namespaced(client, &settings.namespace);
        Ok(Self { api, settings, fence, metrics, clock, random, observed: None, last_logged: String::new() })
    }

    /// Stands by until this host leads, then does its work until `stop` resolves and the work has ended, then gives the
    /// Lease back. The fence is open only while this host leads.
    ///
    /// # Errors
    /// [`LeaseLost`]; the work was dropped then.
    pub async fn lead<'a, W>(
        mut self,
        mut stop: BoxFuture<'a, ()>,
        work: impl FnOnce(BoxFuture<'a, ()>) -> W,
    ) -> Result<(), LeaseLost>
    where
        W: Future<Output = ()>,
    {
        let renewed = tokio::select! {
            () = &mut stop => return Ok(()),
            renewed = self.acquire() => renewed,
        };
        if !self.last_logged.is_empty() {
            tokio::time::sleep(SETTLE.min(self.settings.retry_period)).await;
        }
        let lease = self.lease();
        tracing::info!(lease, identity = self.settings.identity, "this host leads");
        self.metrics.election.started_leading(&self.settings.name);
        let ended = tokio::select! {
            () = work(stop) => Ok(()),
            why = self.renew(renewed) => Err(LeaseLost { lease, why }),
        };
        self.fence.close();
        self.metrics.election.stopped_leading(&self.settings.name);
        if ended.is_ok() {
            self.release().await;
        }
        ended
    }

    /// Asks for the Lease until it is this host's, and tells since when. Hosts that began together ask at different times.
    async fn acquire(&mut self) -> Instant {
        loop {
            let began = Instant::now();
            let seen = match self.attempt().await {
                Attempt::Held => {
                    self.fence.open_until(began + self.settings.renew_deadline);
                    return began;
                }
                Attempt::HeldByOther(holder) => format!("'{holder}' holds it"),
                Attempt::Failed(why) => why,
            };
            if seen != self.last_logged {
                tracing::info!(lease = self.lease(), "standing by: {seen}");
                self.last_logged = seen;
            }
            tokio::time::sleep(self.settings.retry_period.mul_f64(0.8 + 0.2 * self.random.fraction())).await;
        }
    }

    /// Renews the Lease while that succeeds; says why it does no longer.
    async fn renew(&mut self, renewed: Instant) -> String {
        let Settings { renew_deadline, retry_period, .. } = self.settings;
        let mut end = renewed + renew_deadline;
        loop {
            tokio::time::sleep_until((Instant::now() + retry_period).min(end)).await;
            let began = Instant::now();
            // A process that was stopped for long finds the deadline behind it, and must not ask.
            if began >= end {
                return format!("it was not renewed within {renew_deadline:?}");
            }
            match tokio::time::timeout_at(end, self.attempt()).await {
                Ok(Attempt::Held) => {
                    end = began + renew_deadline;
                    self.fence.open_until(end);
                }
                Ok(Attempt::HeldByOther(holder)) => return format!("'{holder}' holds it now"),
                Ok(Attempt::Failed(why)) => {
                    tracing::warn!(lease = self.lease(), "failed to renew the Lease, trying again: {why}");
                }
                Err(_) => tracing::warn!(lease = self.lease(), "failed to renew the Lease in time"),
            }
        }
    }

    /// Gets or keeps the Lease. An attempt that is not answered leaves time for another.
    async fn attempt(&mut self) -> Attempt {
        let timeout = self.settings.renew_deadline / 2;
        match tokio::time::timeout(timeout, self.acquire_or_renew()).await {
            Ok(Ok(attempt)) => attempt,
            Ok(Err(error)) => Attempt::Failed(self.explain(&error)),
            Err(_) => Attempt::Failed(format!("the API server did not answer within {timeout:?}")),
        }
    }

    async fn acquire_or_renew(&mut self) -> kube::Result<Attempt> {
        // The leader knows the Lease as it wrote it itself, so one request is enough.
        if let Some(mine) = self.observed.clone().filter(|observed| observed.holder() == self.settings.identity) {
            match self.write(&mine).await {
                Ok(()) => return Ok(Attempt::Held),
                Err(error) => tracing::debug!("the Lease was not as it was written last: {}", chain(&error)),
            }
        }
        let Some(lease) = self.api.get_opt(&self.settings.name).await? else {
            let Settings { name, identity, duration, .. } = &self.settings;
            let first = lease::new_lease(name, identity, *duration, self.clock.now());
            let created = self.api.create(&PostParams::default(), &first).await?;
            self.observe(created);
            return Ok(Attempt::Held);
        };
        let observed = self.observe(lease);
        if observed.belongs_to_another(&self.settings.identity, Instant::now()) {
            return Ok(Attempt::HeldByOther(observed.holder().to_owned()));
        }
        if observed.holder() == self.settings.identity {
            self.metrics.election.slow_path(&self.settings.name);
        }
        self.write(&observed).await?;
        Ok(Attempt::Held)
    }

    /// Writes this host's claim over exactly the Lease that was observed.
    async fn write(&mut self, observed: &ObservedLease) -> kube::Result<()> {
        let Settings { name, identity, duration, .. } = &self.settings;
        let claim = observed.held_by(identity, *duration, self.clock.now());
        let written = self.api.replace(name, &PostParams::default(), &claim).await?;
        self.observe(written);
        Ok(())
    }

    fn observe(&mut self, lease: Lease) -> ObservedLease {
        let observed = ObservedLease::observe(self.observed.take(), lease, Instant::now());
        self.observed = Some(observed.clone());
        observed
    }

    /// Lets another take the Lease at once. If that fails, the others wait for the Lease to run out.
    async fn release(&self) {
        let (lease, timeout) = (self.lease(), self.settings.renew_deadline / 2);
        match tokio::time::timeout(timeout, self.write_release()).await {
            Ok(Ok(())) => tracing::info!(lease, "the Lease is given back"),
            Ok(Err(error)) => tracing::warn!(lease, "failed to give the Lease back: {}", chain(&error)),
            Err(_) => tracing::warn!(lease, "failed to give the Lease back within {timeout:?}"),
        }
    }

    async fn write_release(&self) -> kube::Result<()> {
        let lease = self.api.get(&self.settings.name).await?;
        let observed = ObservedLease::observe(None, lease, Instant::now());
        if observed.holder() == self.settings.identity {
            let released = observed.released(self.clock.now());
            self.api.replace(&self.settings.name, &PostParams::default(), &released).await?;
        }
        Ok(())
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.settings.namespace, self.settings.name)
    }

    fn explain(&self, error: &kube::Error) -> String {
        let forbidden = matches!(error, kube::Error::Api(status) if status.code == 403);
        let hint = "; grant get, create and update of leases.coordination.k8s.io in that namespace";
        format!("{}{}", chain(error), if forbidden { hint } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_do_not_fit_each_other_are_refused() {
        let check = |duration, renew_deadline, retry_period| {
            let millis = Duration::from_millis;
            Settings {
                name: "l".to_owned(),
                namespace: "ns".to_owned(),
                identity: "me".to_owned(),
                duration: millis(duration),
                renew_deadline: millis(renew_deadline),
                retry_period: millis(retry_period),
            }
            .check()
        };
        for (durations, expected) in [
            ((15_000, 10_000, 2_000), Ok(())),
            ((1_500, 1_000, 500), Err(SettingsError::Duration)),
            ((0, 0, 0), Err(SettingsError::Duration)),
            ((15_000, 15_000, 2_000), Err(SettingsError::RenewDeadline)),
            ((15_000, 10_000, 6_000), Err(SettingsError::RetryPeriod)),
            ((15_000, 10_000, 0), Err(SettingsError::RetryPeriod)),
        ] {
            assert_eq!(check(durations.0, durations.1, durations.2), expected, "{durations:?}");
        }
    }
}
