//! The arguments of leader election. Reports errors in terms of the arguments. Elects nobody itself.

use std::time::Duration;

use clap::Args;
use kube::Config;
use pilothouse_controller::{
    client::{self, fence::Fence},
    clock::Random,
    host::Host,
    leader::{self, Dependencies, Election, Settings},
};

use crate::duration::duration;

/// The arguments of leader election.
#[derive(Args, Clone, Debug)]
pub struct ElectionArguments {
    /// Work only while this host holds a Lease, and stand by otherwise: for several hosts on one cluster.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    leader_elect: bool,
    /// Name of the Lease, in the host's namespace.
    #[arg(long, default_value = "pilothouse", value_name = "NAME")]
    leader_elect_lease_name: String,
    /// How long the others wait for the leader to renew its Lease before one of them takes over.
    #[arg(long, default_value = "15s", value_parser = duration, value_name = "DURATION", hide_short_help = true)]
    leader_elect_lease_duration: Duration,
    /// How long the leader tries to renew its Lease before it gives up and exits.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "DURATION", hide_short_help = true)]
    leader_elect_renew_deadline: Duration,
    /// How often a host tries to renew or to acquire the Lease.
    #[arg(long, default_value = "2s", value_parser = duration, value_name = "DURATION", hide_short_help = true)]
    leader_elect_retry_period: Duration,
}

impl ElectionArguments {
    /// The fence for the host's client: closed until the host leads, or open without leader election.
    pub fn fence(&self) -> Fence {
        if self.leader_elect { Fence::closed() } else { Fence::open() }
    }

    /// The participation of this host in the election; none without leader election.
    ///
    /// # Errors
    /// If the durations do not fit together, or the credentials are not usable.
    pub fn election(
        &self,
        config: &Config,
        namespace: String,
        fence: Fence,
        host: &Host,
    ) -> anyhow::Result<Option<Election>> {
        if !self.leader_elect {
            return Ok(None);
        }
        let random = Random::from_system();
        let settings = Settings {
            name: self.leader_elect_lease_name.clone(),
            namespace,
            identity: leader::identity(&rustix::system::uname().nodename().to_string_lossy(), &random),
            duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
        };
        let election = Election::new(
            client::lease_client(config, host.metrics().requests(), host.clock().clone())?,
            settings,
            Dependencies { fence, metrics: host.metrics().clone(), clock: host.clock().clone(), random },
        );
        let flags = "--leader-elect-lease-duration, --leader-elect-renew-deadline or --leader-elect-retry-period";
        Ok(Some(election.map_err(|error| anyhow::anyhow!("{error}; change {flags}"))?))
    }
}
