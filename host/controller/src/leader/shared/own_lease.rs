//! The Lease of this host itself, renewed for as long as it runs: with it, everything that the host has. Knows no post.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{DeleteParams, PostParams, Preconditions},
};
use tokio::time::Instant;

use crate::{
    client::fence::Fence,
    clock::Clock,
    errors::chain,
    labels::{HOST_LEASE, HOST_STATE},
    leader::{
        election::Settings,
        hosts::HostState,
        lease::{self, ObservedLease},
        names,
    },
    observable::Observable,
};

/// How long the host waits before it tells what has changed, so that it tells it once.
const GATHER: Duration = Duration::from_millis(100);

/// The Lease of this host.
pub(super) struct OwnLease {
    pub(super) api: Api<Lease>,
    pub(super) settings: Settings,
    /// Open while the Lease is this host's.
    pub(super) fence: Fence,
    pub(super) clock: Clock,
    /// What this host says of itself.
    pub(super) state: Arc<Observable<HostState>>,
    pub(super) observed: Option<ObservedLease>,
    /// What the Lease says of it.
    pub(super) told: HostState,
}

/// Why the Lease is not renewed.
enum NotRenewed {
    /// It is another's, or gone: others may have what this host had.
    Lost(String),
    /// It may be renewed yet.
    Failed(String),
}

impl OwnLease {
    /// The name of the Lease.
    pub(super) fn name(&self) -> String {
        names::host_lease(&self.settings.name, &self.settings.identity)
    }

    /// Creates the Lease, however long that takes. Returns when the successful attempt began.
    pub(super) async fn begin(&mut self) -> Instant {
        let Settings { renew_deadline, retry_period, .. } = self.settings;
        let mut last_logged = String::new();
        loop {
            let began = Instant::now();
            let why = match tokio::time::timeout(renew_deadline / 2, self.create()).await {
                Ok(Ok(())) => {
                    self.fence.open_until(began + renew_deadline);
                    return began;
                }
                Ok(Err(error)) => chain(&error),
                Err(_) => "the API server did not answer".to_owned(),
            };
            if why != last_logged {
                let lease = self.name();
                tracing::warn!(
                    lease,
                    "cannot create the Lease of this host, trying again: {why}; hosts that share the work need get, list, create, update \
                     and delete of leases.coordination.k8s.io in their namespace"
                );
                last_logged = why;
            }
            tokio::time::sleep(retry_period).await;
        }
    }

    async fn create(&mut self) -> kube::Result<()> {
        let Settings { identity, duration, .. } = &self.settings;
        let state = self.state.get();
        let first = self.with_state(lease::new_lease(&self.name(), identity, *duration, self.clock.now()), &state);
        let created = match self.api.create(&PostParams::default(), &first).await {
            // The answer to an earlier attempt was lost: the name has the identity, which no other process has.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let found = ObservedLease::observe(None, self.api.get(&self.name()).await?, Instant::now());
                let renewed = found.held_by(identity, *duration, self.clock.now());
                self.api.replace(&self.name(), &PostParams::default(), &self.with_state(renewed, &state)).await?
            }
            created => created?,
        };
        self.observe(created, state);
        Ok(())
    }

    /// Renews the Lease for as long as possible, at once when there is something to tell, and returns why it was lost.
    pub(super) async fn renew(&mut self, renewed: Instant) -> String {
        let Settings { renew_deadline, retry_period, .. } = self.settings;
        let (mut end, mut has_failed) = (renewed + renew_deadline, false);
        loop {
            let (told, state) = (self.told.clone(), self.state.clone());
            tokio::select! {
                biased;
                () = tokio::time::sleep_until((Instant::now() + retry_period).min(end)) => {}
                () = state.wait_for(|state| *state != told), if !has_failed => tokio::time::sleep(GATHER).await,
            }
            let began = Instant::now();
            // A process that was suspended past the deadline must not try: its Lease may be gone already.
            if began >= end {
                return format!("it was not renewed within {renew_deadline:?}");
            }
            let limit = end.min(began + renew_deadline / 2);
            let renewed = tokio::time::timeout_at(limit, self.attempt()).await;
            has_failed = !matches!(renewed, Ok(Ok(())));
            let why = match renewed {
                Ok(Ok(())) => {
                    end = began + renew_deadline;
                    self.fence.open_until(end);
                    continue;
                }
                Ok(Err(NotRenewed::Lost(why))) => return why,
                Ok(Err(NotRenewed::Failed(why))) => why,
                Err(_) => "the API server did not answer in time".to_owned(),
            };
            tracing::warn!(lease = self.name(), "failed to renew the Lease, trying again: {why}");
        }
    }

    async fn attempt(&mut self) -> Result<(), NotRenewed> {
        let failed = |error: kube::Error| NotRenewed::Failed(chain(&error));
        if let Some(observed) = self.observed.clone() {
            match self.write(&observed).await {
                Ok(()) => return Ok(()),
                // It is read below, as somebody has written it.
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let Some(found) = self.api.get_opt(&self.name()).await.map_err(failed)? else {
            return Err(NotRenewed::Lost("another host has deleted it, as it was not renewed in time".to_owned()));
        };
        let observed = ObservedLease::observe(self.observed.take(), found, Instant::now());
        if observed.holder() != self.settings.identity {
            return Err(NotRenewed::Lost(format!("'{}' holds it now", observed.holder())));
        }
        self.write(&observed).await.map_err(failed)
    }

    async fn write(&mut self, observed: &ObservedLease) -> kube::Result<()> {
        let Settings { identity, duration, .. } = &self.settings;
        let state = self.state.get();
        let renewed = self.with_state(observed.held_by(identity, *duration, self.clock.now()), &state);
        let written = self.api.replace(&self.name(), &PostParams::default(), &renewed).await?;
        self.observe(written, state);
        Ok(())
    }

    fn observe(&mut self, lease: Lease, told: HostState) {
        self.observed = Some(ObservedLease::observe(self.observed.take(), lease, Instant::now()));
        self.told = told;
    }

    fn with_state(&self, mut lease: Lease, state: &HostState) -> Lease {
        let labels = lease.metadata.labels.get_or_insert_default();
        labels.insert(HOST_LEASE.to_owned(), names::label(&self.settings.name));
        let text = serde_json::to_string(state).unwrap_or_default();
        lease.metadata.annotations.get_or_insert_default().insert(HOST_STATE.to_owned(), text);
        lease
    }

    /// Deletes the Lease, and with it this host has nothing any more. If that fails, the others wait until it runs out.
    pub(super) async fn end(&self) {
        let lease = self.name();
        let uid = self.observed.as_ref().and_then(|observed| observed.lease.metadata.uid.clone());
        let this = Preconditions { uid, resource_version: None };
        let delete = DeleteParams { preconditions: Some(this), ..DeleteParams::default() };
        let timeout = self.settings.renew_deadline / 2;
        match tokio::time::timeout(timeout, self.api.delete(&lease, &delete)).await {
            Ok(Ok(_)) => tracing::info!(lease, "this host gives everything up"),
            Ok(Err(error)) => tracing::warn!(lease, "failed to delete the Lease of this host: {}", chain(&error)),
            Err(_) => tracing::warn!(lease, "failed to delete the Lease of this host within {timeout:?}"),
        }
    }
}
