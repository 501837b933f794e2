//! Random histories: whatever happens to an object, its children and its host, its children end up like those of a fresh object
//! with the same spec (the method of Acto). The same seed leads to the same histories.

mod steps;
mod workload;

use anyhow::{Context, Result};
use fastrand::Rng;
use futures::{StreamExt, TryStreamExt, stream};
use pilothouse_tests::{cluster::Cluster, thoroughness::Thoroughness};

use self::{
    steps::History,
    workload::{Event, Workload},
};
use crate::{
    suite::{Suite, heavy},
    test_env::TestEnv,
};

/// The number of histories, distributed among the hosts, for all of `make test-all` and for a part.
const ALL: usize = 300;
const PART: usize = 40;

/// The number of hosts that work at the same time, each in a namespace of its own.
const HOSTS: usize = 4;

/// The number of events for each host.
const EVENTS: usize = 8;

/// The environment variable with the seed, to repeat the same histories.
const SEED: &str = "PILOTHOUSE_SEED";

pub fn register(suite: &mut Suite) {
    heavy!(suite, every_history_ends_in_the_state_of_a_fresh_object);
}

/// On a control plane where nobody else writes, so that nobody else can be the cause of a difference.
async fn every_history_ends_in_the_state_of_a_fresh_object(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    let seed = seed()?;
    let number = match Thoroughness::of_run() {
        Thoroughness::All => ALL,
        Thoroughness::Part => PART,
    };
    eprintln!("{number} histories with {SEED}={seed}");
    let mut rng = Rng::with_seed(seed);
    let mut workloads = Vec::new();
    for host in 0..HOSTS {
        let histories = (host..number).step_by(HOSTS);
        let histories = histories.map(|number| History::random(&mut rng, format!("object-{number:03}"))).collect();
        let events = (0..EVENTS).map(|_| Event::random(&mut rng)).collect();
        workloads.push(Workload::start(&env.cluster, &format!("history {host}"), histories, events).await?);
    }
    let ran = stream::iter(workloads).map(|mut workload| async move { workload.run().await });
    let ran = ran.buffer_unordered(HOSTS).try_collect::<()>().await;
    ran.with_context(|| format!("to have these histories again, set {SEED}={seed}"))
}

fn seed() -> Result<u64> {
    match std::env::var(SEED) {
        Ok(seed) => seed.parse().with_context(|| format!("{SEED}={seed} is not a number")),
        Err(_) => Ok(fastrand::u64(..)),
    }
}
