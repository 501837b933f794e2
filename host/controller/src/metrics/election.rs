//! The metrics of leader election, under client-go's names. Takes no part in the election.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use super::labels::LeaseLabels;

/// The metrics of the leader election.
pub struct Election {
    leading: Family<LeaseLabels, Gauge>,
    slow_paths: Family<LeaseLabels, Counter>,
    hosts: Gauge,
}

impl Election {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (leading, slow_paths) = (Family::default(), Family::default());
        registry.register("leader_election_master_status", "1 on the host that leads", Family::clone(&leading));
        let slow = "Renewals before which the leader had to read its Lease";
        registry.register("leader_election_slowpath", slow, Family::clone(&slow_paths));
        let hosts = Gauge::default();
        let help = "The hosts that share the work, as this one sees them";
        registry.register("pilothouse_sharing_hosts", help, hosts.clone());
        Self { leading, slow_paths, hosts }
    }
}

impl Election {
    /// Exposes the metrics of a Lease, with this host as a follower.
    pub fn register_lease(&self, lease: &str) {
        drop(self.slow_paths.get_or_create(&LeaseLabels::new(lease)));
        self.stopped_leading(lease);
    }

    /// Exposes the metrics of the Lease of a plugin, with this host as one that stands by.
    pub fn register_plugin_lease(&self, lease: &str) {
        drop(self.leading.get_or_create(&LeaseLabels::new(lease)));
    }

    /// A Lease is no longer of interest to this host.
    pub fn forget_lease(&self, lease: &str) {
        self.leading.remove(&LeaseLabels::new(lease));
    }

    /// So many hosts share the work.
    pub fn hosts(&self, hosts: usize) {
        self.hosts.set(i64::try_from(hosts).unwrap_or(i64::MAX));
    }

    /// This host became the leader.
    pub fn started_leading(&self, lease: &str) {
        self.leading.get_or_create(&LeaseLabels::new(lease)).set(1);
    }

    /// This host is no longer the leader.
    pub fn stopped_leading(&self, lease: &str) {
        self.leading.get_or_create(&LeaseLabels::new(lease)).set(0);
    }

    /// The leader had to read its Lease before it could renew it (client-go's slow path).
    pub fn slow_path(&self, lease: &str) {
        self.slow_paths.get_or_create(&LeaseLabels::new(lease)).inc();
    }
}
