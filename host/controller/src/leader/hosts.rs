//! The Leases of hosts that share the work: which of them are alive, and what they say of themselves. One that has not renewed its Lease
//! in time loses it for good, so that it can never renew it again. Takes nothing else from anybody.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{lease::ObservedLease, names};
use crate::labels::{HOST_LEASE, HOST_STATE};

/// What a host says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HostState {
    /// How many posts it could have at once.
    pub(super) ready: usize,
    /// How often it has taken or given up posts: the others look at them only when something has happened.
    pub(super) changes: u64,
    /// The Leases that it would like to have from hosts with more.
    pub(super) asks_for: Vec<String>,
}

/// The hosts, as they were seen last.
#[derive(Default)]
pub(super) struct Hosts {
    /// By the names of their Leases.
    seen: BTreeMap<String, ObservedLease>,
    /// The Lease of the host that leads, if the work is shared.
    lead: Option<Lease>,
}

impl Hosts {
    /// Looks who is there. The Leases of those that did not renew them in time are deleted.
    pub(super) async fn look(&mut self, api: &Api<Lease>, lease: &str) -> kube::Result<()> {
        let selected = ListParams::default().labels(&format!("{HOST_LEASE}={}", names::label(lease)));
        let listed = api.list(&selected).await?;
        self.observe(listed.items, lease, Instant::now());
        self.bury(api).await
    }

    fn observe(&mut self, leases: Vec<Lease>, lead: &str, now: Instant) {
        let mut before = std::mem::take(&mut self.seen);
        self.lead = None;
        for lease in leases {
            let name = lease.name_any();
            match name == lead {
                true => self.lead = Some(lease),
                false => {
                    let observed = ObservedLease::observe(before.remove(&name), lease, now);
                    self.seen.insert(name, observed);
                }
            }
        }
    }

    /// Deletes the Leases that have run out, exactly as they were seen: one that is renewed at the same moment stays.
    async fn bury(&mut self, api: &Api<Lease>) -> kube::Result<()> {
        let now = Instant::now();
        let is_over = |observed: &ObservedLease| now >= observed.runs_out();
        let over: Vec<_> =
            self.seen.iter().filter(|(_, observed)| is_over(observed)).map(|(name, _)| name.clone()).collect();
        for name in over {
            let Some(observed) = self.seen.get(&name) else { continue };
            let metadata = &observed.lease.metadata;
            let exactly =
                Preconditions { uid: metadata.uid.clone(), resource_version: metadata.resource_version.clone() };
            let delete = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
            match api.delete(&name, &delete).await {
                Ok(_) => {
                    tracing::info!(
                        lease = name,
                        holder = observed.holder(),
                        "a host has not renewed its Lease and has lost it"
                    );
                }
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                // It was renewed; or this host may not, and the other one has stopped by itself.
                Err(kube::Error::Api(status)) if [403, 409].contains(&status.code) => continue,
                Err(error) => return Err(error),
            }
            self.seen.remove(&name);
        }
        Ok(())
    }

    /// Whether the work is shared: the host that leads says so.
    pub(super) fn is_shared(&self) -> bool {
        self.lead.is_some()
    }

    /// Those that are alive, with what they say of themselves.
    pub(super) fn alive(&self, now: Instant) -> BTreeMap<String, HostState> {
        let alive = self.seen.values().filter(|observed| now < observed.runs_out());
        alive.map(|observed| (observed.holder().to_owned(), state_of(&observed.lease))).collect()
    }

    /// When the next Lease runs out that is not renewed by then, except that of one host.
    pub(super) fn next_end(&self, but: &str, now: Instant) -> Option<Instant> {
        let others = self.seen.values().filter(|observed| observed.holder() != but);
        others.map(ObservedLease::runs_out).filter(|end| *end > now).min()
    }
}

/// What a host says of itself in its Lease. Whatever somebody broke counts as nothing.
fn state_of(lease: &Lease) -> HostState {
    let text = lease.annotations().get(HOST_STATE);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::leader::lease::new_lease;

    const DURATION: Duration = Duration::from_secs(15);

    fn lease(name: &str, second: i64) -> Lease {
        let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(second);
        new_lease(name, &format!("identity-{name}"), DURATION, now)
    }

    #[test]
    fn a_host_is_alive_as_long_as_it_renews_its_lease_by_the_own_clock() {
        let (mut hosts, begin) = (Hosts::default(), Instant::now());
        hosts.observe(vec![lease("pilothouse", 0), lease("a", 0), lease("b", 0)], "pilothouse", begin);
        assert!(hosts.is_shared());
        assert_eq!(hosts.alive(begin).into_keys().collect::<Vec<_>>(), ["identity-a", "identity-b"]);
        let later = begin + Duration::from_secs(10);
        hosts.observe(vec![lease("a", 10), lease("b", 0)], "pilothouse", later);
        assert!(!hosts.is_shared(), "somebody else leads");
        assert_eq!(hosts.next_end("identity-a", later), Some(begin + DURATION));
        assert_eq!(hosts.next_end("identity-a", begin + DURATION), None, "what is over is over");
        assert_eq!(hosts.alive(begin + DURATION).into_keys().collect::<Vec<_>>(), ["identity-a"]);
        assert!(hosts.alive(later + DURATION).is_empty());
    }

    #[test]
    fn what_a_host_says_is_read_and_what_somebody_broke_is_nothing() {
        let said = HostState { ready: 3, changes: 2, asks_for: vec!["x".to_owned()] };
        for (text, expected) in [
            (serde_json::to_string(&said).unwrap_or_default(), said),
            ("{".to_owned(), HostState::default()),
            ("{}".to_owned(), HostState::default()),
        ] {
            let mut lease = lease("a", 0);
            lease.metadata.annotations = Some([(HOST_STATE.to_owned(), text)].into());
            assert_eq!(state_of(&lease), expected);
        }
    }
}
