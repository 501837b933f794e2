//! The arguments of leader election. Reports errors in terms of the arguments. Elects nobody itself.

use std::{sync::Arc, time::Duration};

use clap::{Args, ValueEnum};
use futures::{FutureExt, future::BoxFuture};
use kube::Config;
use pilothouse_controller::{
    client::{self, fence::Fence},
    clock::Random,
    host::Host,
    leader::{self, Dependencies, Election, LeaseLost, Posts, Settings, Sharing},
};

use crate::duration::duration;

/// How several hosts divide the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LeaderElect {
    /// This host works, whatever others do.
    False,
    /// One works for all plugins, and the others stand by.
    True,
    /// Each works for some plugins.
    PerPlugin,
}

/// The arguments of leader election.
#[derive(Args, Clone, Debug)]
pub struct ElectionArguments {
    /// For several hosts on one cluster. With true, this host works only while it holds a Lease, and stands by otherwise; with per-plugin, the
    /// hosts share the work, and each plugin has a Lease of its own.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_name = "MODE")]
    leader_elect: LeaderElect,
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
    /// The fence for the host's client: closed until the host may write, or open without leader election.
    pub fn fence(&self) -> Fence {
        if self.leader_elect == LeaderElect::False { Fence::open() } else { Fence::closed() }
    }

    /// What the host works for, if several share the work.
    pub fn posts(&self, fence: &Fence) -> Option<Arc<Posts>> {
        let is_shared = self.leader_elect == LeaderElect::PerPlugin;
        is_shared.then(|| Posts::new(fence.clone(), &self.leader_elect_lease_name))
    }

    /// The participation of this host in the election.
    ///
    /// # Errors
    /// If the durations do not fit together, or the credentials are not usable.
    pub fn participation(
        &self,
        config: &Config,
        namespace: String,
        fence: Fence,
        host: &Host,
    ) -> anyhow::Result<Participation> {
        if self.leader_elect == LeaderElect::False {
            return Ok(Participation::Alone);
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
        let client = client::lease_client(config, host.metrics().requests(), host.clock().clone())?;
        let surroundings = Dependencies { fence, metrics: host.metrics().clone(), clock: host.clock().clone(), random };
        let participation = match host.posts() {
            None => Election::new(client, settings, surroundings).map(|it| Participation::Elected(Box::new(it))),
            Some(posts) => Sharing::new(client, settings, posts.clone(), surroundings)
                .map(|it| Participation::Sharing(Box::new(it))),
        };
        let flags = "--leader-elect-lease-duration, --leader-elect-renew-deadline or --leader-elect-retry-period";
        participation.map_err(|error| anyhow::anyhow!("{error}; change {flags}"))
    }
}

/// How a host takes part.
pub enum Participation {
    /// Not at all: it works by itself.
    Alone,
    /// It works while it leads.
    Elected(Box<Election>),
    /// It shares the work.
    Sharing(Box<Sharing>),
}

impl Participation {
    /// Runs a host until it ends after `stop`.
    ///
    /// # Errors
    /// [`LeaseLost`].
    pub async fn run<'a>(self, host: &'a Arc<Host>, stop: BoxFuture<'a, ()>) -> Result<(), LeaseLost> {
        match self {
            Self::Alone => host.run(stop).map(Ok).await,
            Self::Elected(election) => election.lead(stop, |stop| host.run(stop)).await,
            Self::Sharing(sharing) => sharing.work(stop, |stop| host.run(stop), host.clone()).await,
        }
    }
}
