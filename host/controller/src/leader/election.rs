//! Leader election with a Lease, as in client-go. One of several hosts leads; the others stand by with their plugins loaded and
//! their caches synced. A leader that can no longer renew the Lease stops writing, and ends, before another host can take it. Never
//! writes anything but the Lease.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use tokio::time::Instant;

use super::{
    hosts::Hosts,
    lease::{self, ObservedLease},
    names,
};
use crate::{
    client::fence::Fence,
    clock::{Clock, Random},
    errors::chain,
    labels::HOST_LEASE,
    metrics::Metrics,
};

/// How long a new leader waits, so that its caches receive the last writes of the leader before it.
pub(super) const SETTLE: Duration = Duration::from_millis(200);

/// The settings of an election.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the Lease.
    pub name: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Identifies this process.
    pub identity: String,
    /// How long other hosts wait for a renewal before one of them takes over. Whole seconds.
    pub duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// How often a host tries to renew or to acquire the Lease.
    pub retry_period: Duration,
}

/// What an election needs besides the client.
#[derive(Clone)]
pub struct Dependencies {
    /// Opened while this host leads, and only then.
    pub fence: Fence,
    /// Expose whether this host leads.
    pub metrics: Arc<Metrics>,
    /// The source of the time of day.
    pub clock: Clock,
    /// The source of jitter, so that hosts that started together do not try at the same time.
    pub random: Random,
}

/// Why the durations are refused: two hosts could lead at once, or none for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The duration of the Lease.
    #[error("the lease duration must be whole seconds, and at least one")]
    Duration,
    /// The renew deadline.
    #[error(
        "the renew deadline must be shorter than the lease duration, so that the leader stops before another begins"
    )]
    RenewDeadline,
    /// The retry period.
    #[error("the retry period must be more than nothing, and less than half of the renew deadline")]
    RetryPeriod,
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.duration.subsec_nanos() != 0 || self.duration.is_zero() {
            Err(SettingsError::Duration)
        } else if self.renew_deadline >= self.duration {
            Err(SettingsError::RenewDeadline)
        // An attempt may take half of the renew deadline. Within this limit, a second one still starts before the deadline.
        } else if self.retry_period.is_zero() || self.retry_period * 2 > self.renew_deadline {
            Err(SettingsError::RetryPeriod)
        } else {
            Ok(())
        }
    }
}

/// An identity for a process: the name of the machine, for people, and a random number.
pub fn identity(machine: &str, random: &Random) -> String {
    format!("{machine}_{:016x}", random.number())
}

/// Another host holds the Lease, or may take it at any moment. Nothing may be written any more.
#[derive(Debug, thiserror::Error)]
#[error("lost the Lease '{lease}', so this host ends: {why}")]
pub struct LeaseLost {
    pub(super) lease: String,
    pub(super) why: String,
}

/// What the host does that leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Everything.
    Whole,
    /// What is no plugin's. Several hosts work for the plugins.
    Shared,
}

/// The participation of one host in an election.
pub struct Election {
    api: Api<Lease>,
    settings: Settings,
    fence: Fence,
    metrics: Arc<Metrics>,
    clock: Clock,
    random: Random,
    work: Work,
    observed: Option<ObservedLease>,
    /// Hosts that share the work, and have to end before this one does all of it.
    sharing: Hosts,
    /// The latest standby message in the log, which is not repeated.
    last_logged: String,
}

/// The result of an attempt to acquire or renew the Lease.
enum Attempt {
    /// This host holds the Lease.
    Held,
    /// Another host holds the Lease.
    HeldByOther(String),
    /// The holder is unknown.
    Failed(String),
}

impl Election {
    /// Prepares an election; nothing happens before [`Election::lead`]. `client` must not be fenced and should have a connection of
    /// its own, so that other requests never delay a renewal.
    ///
    /// # Errors
    /// [`SettingsError`] if the durations do not fit together.
    pub fn new(client: Client, settings: Settings, surroundings: Dependencies) -> Result<Self, SettingsError> {
        Self::of(client, settings, surroundings, Work::Whole)
    }

    /// The same for the host that leads several ones that share the work.
    pub(super) fn of_sharing(
        client: Client,
        settings: Settings,
        surroundings: Dependencies,
    ) -> Result<Self, SettingsError> {
        Self::of(client, settings, surroundings, Work::Shared)
    }

    fn of(client: Client, settings: Settings, surroundings: Dependencies, work: Work) -> Result<Self, SettingsError> {
        settings.check()?;
        let Dependencies { fence, metrics, clock, random } = surroundings;
        metrics.election.register_lease(&settings.name);
        let api = Api::namespaced(client, &settings.namespace);
        let (observed, sharing, last_logged) = (None, Hosts::default(), String::new());
        Ok(Self { api, settings, fence, metrics, clock, random, work, observed, sharing, last_logged })
    }

    /// Stands by until this host leads, then runs `work` until it ends after `stop`, then releases the Lease. The fence is open
    /// only while this host leads.
    ///
    /// # Errors
    /// [`LeaseLost`]; `work` was dropped in that case.
    pub async fn lead<'a, W>(
        mut self,
        mut stop: BoxFuture<'a, ()>,
        work: impl FnOnce(BoxFuture<'a, ()>) -> W,
    ) -> Result<(), LeaseLost>
    where
        W: Future<Output = ()>,
    {
        let renewed = tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            renewed = self.acquire() => renewed,
        };
        // A message was logged, so this host stood by, and its caches may lag behind the last leader's writes.
        if !self.last_logged.is_empty() {
            tokio::time::sleep(SETTLE.min(self.settings.retry_period)).await;
        }
        let lease = self.lease();
        tracing::info!(lease, identity = self.settings.identity, "this host leads");
        self.metrics.election.started_leading(&self.settings.name);
        // The Lease is renewed until `work` ends, also after `stop`, because the last writes need an open fence.
        let ended = tokio::select! {
            biased;
            () = work(stop) => Ok(()),
            why = self.renew(renewed) => Err(LeaseLost { lease, why }),
        };
        // Before anything else: tasks outside of `work`, such as the one that writes Events, may still send requests.
        self.fence.close();
        self.metrics.election.stopped_leading(&self.settings.name);
        // A lost Lease is not released, because another host may hold it.
        if ended.is_ok() {
            self.release().await;
        }
        ended
    }

    /// Tries until this host holds the Lease, and returns the start of the successful attempt. Jitter spreads the attempts of
    /// several hosts.
    async fn acquire(&mut self) -> Instant {
        loop {
            let began = Instant::now();
            let status = match self.attempt().await {
                Attempt::Held => match self.obstacle().await {
                    None => {
                        self.fence.open_until(began + self.settings.renew_deadline);
                        // Counted from before the request, because the others may have seen the renewal at any time since then.
                        return began;
                    }
                    Some(why) => why,
                },
                Attempt::HeldByOther(holder) => format!("'{holder}' holds it"),
                Attempt::Failed(why) => why,
            };
            if status != self.last_logged {
                tracing::info!(lease = self.lease(), "standing by: {status}");
                self.last_logged = status;
            }
            tokio::time::sleep(self.settings.retry_period.mul_f64(0.8 + 0.2 * self.random.fraction())).await;
        }
    }

    /// Why this host may not work yet although it holds the Lease: others share the work. They end once they see who holds it.
    async fn obstacle(&mut self) -> Option<String> {
        if self.work == Work::Shared {
            return None;
        }
        let timeout = self.settings.renew_deadline / 2;
        let looked = self.sharing.look(&self.api, &self.settings.name);
        match tokio::time::timeout(timeout, looked).await {
            Ok(Ok(())) => {}
            // Who may not list Leases has never shared the work: it needs that.
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => return None,
            Ok(Err(error)) => return Some(format!("cannot see whether other hosts share the work: {}", chain(&error))),
            Err(_) => return Some(format!("the API server did not answer within {timeout:?}")),
        }
        let others = self.sharing.alive();
        let names = || others.keys().map(String::as_str).collect::<Vec<_>>().join("', '");
        (!others.is_empty()).then(|| format!("waits for the end of hosts that share the work by plugin: '{}'", names()))
    }

    /// Renews the Lease for as long as possible, and returns why it was lost.
    async fn renew(&mut self, renewed: Instant) -> String {
        let Settings { renew_deadline, retry_period, .. } = self.settings;
        let mut end = renewed + renew_deadline;
        loop {
            tokio::time::sleep_until((Instant::now() + retry_period).min(end)).await;
            let began = Instant::now();
            // A process that was suspended past the deadline must not try: another host may lead already.
            if began >= end {
                return format!("it was not renewed within {renew_deadline:?}");
            }
            match tokio::time::timeout_at(end, self.attempt()).await {
                Ok(Attempt::Held) => {
                    end = began + renew_deadline;
                    self.fence.open_until(end);
                }
                // At once, and not at the deadline as in client-go: the other host may have begun to write.
                Ok(Attempt::HeldByOther(holder)) => return format!("'{holder}' holds it now"),
                Ok(Attempt::Failed(why)) => {
                    tracing::warn!(lease = self.lease(), "failed to renew the Lease, trying again: {why}");
                }
                Err(_) => tracing::warn!(lease = self.lease(), "failed to renew the Lease in time"),
            }
        }
    }

    /// Acquires or renews the Lease. The timeout of an attempt leaves time for a second one before the deadline.
    async fn attempt(&mut self) -> Attempt {
        let timeout = self.settings.renew_deadline / 2;
        match tokio::time::timeout(timeout, self.acquire_or_renew()).await {
            Ok(Ok(attempt)) => attempt,
            Ok(Err(error)) => Attempt::Failed(self.describe(&error)),
            Err(_) => Attempt::Failed(format!("the API server did not answer within {timeout:?}")),
        }
    }

    async fn acquire_or_renew(&mut self) -> kube::Result<Attempt> {
        // The fast path of client-go: the leader knows the Lease that it wrote itself, so one request is enough.
        if let Some(mine) = self.observed.clone().filter(|observed| observed.holder() == self.settings.identity) {
            match self.write(&mine).await {
                Ok(()) => return Ok(Attempt::Held),
                // Usually a conflict: somebody has changed the Lease. Then it is read below, as if this host had never held it.
                Err(error) => tracing::debug!("the Lease was not as it was written last: {}", chain(&error)),
            }
        }
        let Some(lease) = self.api.get_opt(&self.settings.name).await? else {
            let Settings { name, identity, duration, .. } = &self.settings;
            let first = self.marked(lease::new_lease(name, identity, *duration, self.clock.now()));
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

    /// Makes this host the holder. The resource version ensures that nobody has changed the observed Lease.
    async fn write(&mut self, observed: &ObservedLease) -> kube::Result<()> {
        let Settings { name, identity, duration, .. } = &self.settings;
        let claim = self.marked(observed.held_by(identity, *duration, self.clock.now()));
        let written = self.api.replace(name, &PostParams::default(), &claim).await?;
        self.observe(written);
        Ok(())
    }

    /// The Lease with the label that tells whether the work is shared.
    fn marked(&self, mut lease: Lease) -> Lease {
        let labels = lease.metadata.labels.get_or_insert_default();
        match self.work {
            Work::Shared => drop(labels.insert(HOST_LEASE.to_owned(), names::label(&self.settings.name))),
            Work::Whole => drop(labels.remove(HOST_LEASE)),
        }
        lease.metadata.labels = lease.metadata.labels.filter(|labels| !labels.is_empty());
        lease
    }

    fn observe(&mut self, lease: Lease) -> ObservedLease {
        let observed = ObservedLease::observe(self.observed.take(), lease, Instant::now());
        self.observed = Some(observed.clone());
        observed
    }

    /// Releases the Lease, so that another host takes it at once. If that fails, the others wait until it expires.
    async fn release(&self) {
        let (lease, timeout) = (self.lease(), self.settings.renew_deadline / 2);
        let released = async {
            match self.write_release().await {
                // A renewal that was under way when the work ended came in between. There is no second one.
                Err(kube::Error::Api(status)) if status.code == 409 => self.write_release().await,
                released => released,
            }
        };
        match tokio::time::timeout(timeout, released).await {
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

    fn describe(&self, error: &kube::Error) -> String {
        let forbidden = matches!(error, kube::Error::Api(status) if status.code == 403);
        let hint = "; grant get, create and update of leases.coordination.k8s.io in that namespace";
        format!("{}{}", chain(error), if forbidden { hint } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Mutex, PoisonError},
    };

    use http::{Method, Request, Response, StatusCode};
    use kube::client::Body;

    use super::*;

    /// An election of "me", who holds the Lease. The writes of the Lease have these codes, and which ones there were is kept.
    fn held(codes: Vec<u16>) -> (Election, Arc<Mutex<Vec<u16>>>) {
        let lease = serde_json::json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
        let (answers, codes) = (Arc::<Mutex<Vec<u16>>>::default(), Mutex::new(codes.into_iter()));
        let given = answers.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_read = request.method() == Method::GET;
            let next = || codes.lock().unwrap_or_else(PoisonError::into_inner).next().unwrap_or(500);
            let code = if is_read { 200 } else { next() };
            if !is_read {
                given.lock().unwrap_or_else(PoisonError::into_inner).push(code);
            }
            let body = if code == 200 { lease.to_string() } else { format!(r#"{{"code": {code}}}"#) };
            let mut answer = Response::new(Body::from(body.into_bytes()));
            *answer.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
            async move { Ok::<_, Infallible>(answer) }
        });
        let settings = Settings {
            name: "l".to_owned(),
            namespace: "ns".to_owned(),
            identity: "me".to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        };
        let election = Election {
            api: Api::namespaced(Client::new(service, "default"), "ns"),
            settings,
            fence: Fence::closed(),
            metrics: Metrics::new(),
            clock: Clock::system(),
            random: Random::seeded(1),
            work: Work::Whole,
            observed: None,
            sharing: Hosts::default(),
            last_logged: String::new(),
        };
        (election, answers)
    }

    #[tokio::test]
    async fn a_lease_that_a_last_renewal_has_changed_is_given_back_all_the_same() {
        for (codes, expected) in [
            (vec![409, 200], vec![409, 200]),
            (vec![200], vec![200]),
            // Somebody else is at it.
            (vec![409, 409, 200], vec![409, 409]),
            (vec![500, 200], vec![500]),
        ] {
            let (election, answers) = held(codes);
            election.release().await;
            let given = answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
            assert_eq!(given, expected);
        }
    }

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
