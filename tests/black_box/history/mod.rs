//! Histories: whatever happened to an object, its children and its host, in the end its children are those of a fresh object
//! with the same spec (the method of Acto). The histories are random; the same seed makes the same ones.

mod steps;
mod theatre;

use anyhow::{Context, Result};
use fastrand::Rng;
use futures::{StreamExt, TryStreamExt, stream};
use pilothouse_tests::cluster::Cluster;

use self::{
    steps::History,
    theatre::{Event, Theatre},
};
use crate::{
    scene::Scene,
    suite::{Suite, heavy},
};

/// Histories in all, shared out among the hosts.
const HISTORIES: usize = 300;

/// Hosts that work at the same time, each in a namespace of its own.
const HOSTS: usize = 4;

/// What happens to each host meanwhile.
const EVENTS: usize = 8;

/// Where a seed can be set, to have the same histories again.
const SEED: &str = "PILOTHOUSE_SEED";

pub fn register(suite: &mut Suite) {
    heavy!(suite, whatever_happened_the_end_is_that_of_a_fresh_object);
}

/// On a control plane where nobody else writes, so that nobody else can be the cause of a difference.
async fn whatever_happened_the_end_is_that_of_a_fresh_object(scene: &mut Scene) -> Result<()> {
    scene.move_to(Cluster::quiet().await?).await?;
    let seed = seed()?;
    eprintln!("{HISTORIES} histories with {SEED}={seed}");
    let mut rng = Rng::with_seed(seed);
    let mut theatres = Vec::new();
    for host in 0..HOSTS {
        let histories = (host..HISTORIES).step_by(HOSTS);
        let histories = histories.map(|number| History::random(&mut rng, format!("object-{number:03}"))).collect();
        let events = (0..EVENTS).map(|_| Event::random(&mut rng)).collect();
        theatres.push(Theatre::open(&scene.cluster, &format!("history {host}"), histories, events).await?);
    }
    let played = stream::iter(theatres).map(|mut theatre| async move { theatre.perform().await });
    let played = played.buffer_unordered(HOSTS).try_collect::<()>().await;
    played.with_context(|| format!("to have these histories again, set {SEED}={seed}"))
}

fn seed() -> Result<u64> {
    match std::env::var(SEED) {
        Ok(seed) => seed.parse().with_context(|| format!("{SEED}={seed} is not a number")),
        Err(_) => Ok(fastrand::u64(..)),
    }
}
