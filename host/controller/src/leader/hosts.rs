//! The Leases of hosts that share the work: which of them are alive, and what they say of themselves. One that has not renewed its Lease
//! in time loses it for good, so that it can never renew it again. Takes nothing else from anybody.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Those of them that have run out, and that this host may not delete.
    over: BTreeSet<String>,
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

    /// Deletes the Leases that have run out, exactly as they were seen.
    async fn bury(&mut self, api: &Api<Lease>) -> kube::Result<()> {
        self.over.clear();
        for (name, observed) in self.run_out(Instant::now()) {
            match delete_exactly(api, &observed.lease).await {
                Ok(()) => {
                    let holder = observed.holder();
                    tracing::info!(lease = name, holder, "a host has not renewed its Lease and has lost it");
                    self.seen.remove(&name);
                }
                // It was renewed at the same moment, and its host goes on with all that it has.
                Err(kube::Error::Api(status)) if status.code == 409 => match api.get_opt(&name).await? {
                    Some(lease) => {
                        let observed = ObservedLease::observe(Some(observed), lease, Instant::now());
                        self.seen.insert(name, observed);
                    }
                    None => drop(self.seen.remove(&name)),
                },
                // The other one has stopped by itself.
                Err(kube::Error::Api(status)) if status.code == 403 => drop(self.over.insert(name)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn run_out(&self, now: Instant) -> BTreeMap<String, ObservedLease> {
        let run_out = self.seen.iter().filter(|(_, observed)| now >= observed.runs_out());
        run_out.map(|(name, observed)| (name.clone(), observed.clone())).collect()
    }

    /// Whether the work is shared: the host that leads says so.
    pub(super) fn is_shared(&self) -> bool {
        self.lead.is_some()
    }

    /// Those that are alive, with what they say of themselves: no Lease counts as run out that could not be deleted because its host has
    /// renewed it.
    pub(super) fn alive(&self) -> BTreeMap<String, HostState> {
        let alive = self.seen.iter().filter(|(name, _)| !self.over.contains(*name));
        alive.map(|(_, observed)| (observed.holder().to_owned(), state_of(&observed.lease))).collect()
    }

    /// When the next Lease runs out that is not renewed by then, except that of one host.
    pub(super) fn next_end(&self, but: &str, now: Instant) -> Option<Instant> {
        let others = self.seen.values().filter(|observed| observed.holder() != but);
        others.map(ObservedLease::runs_out).filter(|end| *end > now).min()
    }
}

/// Deletes a Lease exactly as it was seen. One that is gone is no error.
///
/// # Errors
/// 409 where it is not as it was seen any more.
pub(super) async fn delete_exactly(api: &Api<Lease>, lease: &Lease) -> kube::Result<()> {
    let Lease { metadata, .. } = lease;
    let exactly = Preconditions { uid: metadata.uid.clone(), resource_version: metadata.resource_version.clone() };
    let delete = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
    match api.delete(&lease.name_any(), &delete).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop),
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
    fn a_lease_that_is_not_renewed_runs_out_by_the_own_clock() {
        let (mut hosts, begin) = (Hosts::default(), Instant::now());
        let run_out = |hosts: &Hosts, now| hosts.run_out(now).into_keys().collect::<Vec<_>>();
        hosts.observe(vec![lease("pilothouse", 0), lease("a", 0), lease("b", 0)], "pilothouse", begin);
        assert!(hosts.is_shared() && run_out(&hosts, begin).is_empty());
        let later = begin + Duration::from_secs(10);
        hosts.observe(vec![lease("a", 10), lease("b", 0)], "pilothouse", later);
        assert!(!hosts.is_shared(), "somebody else leads");
        assert_eq!(hosts.next_end("identity-a", later), Some(begin + DURATION));
        assert_eq!(hosts.next_end("identity-a", begin + DURATION), None, "what is over is over");
        assert_eq!(run_out(&hosts, begin + DURATION), ["b"]);
        assert_eq!(run_out(&hosts, later + DURATION), ["a", "b"]);
    }

    #[test]
    fn a_host_is_alive_until_its_lease_is_deleted_or_could_not_be() {
        let (mut hosts, begin) = (Hosts::default(), Instant::now());
        hosts.observe(vec![lease("a", 0), lease("b", 0)], "pilothouse", begin);
        let alive = |hosts: &Hosts| hosts.alive().into_keys().collect::<Vec<_>>();
        assert_eq!(alive(&hosts), ["identity-a", "identity-b"]);
        hosts.over.insert("b".to_owned());
        assert_eq!(alive(&hosts), ["identity-a"]);
        hosts.observe(vec![lease("b", 0)], "pilothouse", begin + DURATION);
        assert!(alive(&hosts).is_empty());
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
