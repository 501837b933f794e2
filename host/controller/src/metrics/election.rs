//! Leader election, under the names of client-go.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{Metrics, labels::Lease};

pub(super) struct Election {
    leading: Family<Lease, Gauge>,
    slow_paths: Family<Lease, Counter>,
}

impl Election {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (leading, slow_paths) = (Family::default(), Family::default());
        registry.register("leader_election_master_status", "1 on the host that leads", Family::clone(&leading));
        let slow = "Renewals before which the leader had to read its Lease";
        registry.register("leader_election_slowpath", slow, Family::clone(&slow_paths));
        Self { leading, slow_paths }
    }
}

impl Metrics {
    /// This host leads, or stands by.
    pub fn leading(&self, lease: &str, leads: bool) {
        let lease = Lease::new(lease);
        self.election.leading.get_or_create(&lease).set(leads.into());
        drop(self.election.slow_paths.get_or_create(&lease));
    }

    /// The leader had to read its Lease before it could renew it.
    pub fn election_slow_path(&self, lease: &str) {
        self.election.slow_paths.get_or_create(&Lease::new(lease)).inc();
    }
}
