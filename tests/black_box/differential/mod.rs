//! The simulated API server against a real one: the same random requests to both must get the same answers, and the same events on
//! watches. What differs is shrunk to the fewest requests that show it.
//!
//! `PILOTHOUSE_DIFFERENTIAL=REQUESTS` sends more requests than the suite does, `PILOTHOUSE_SEED=SEED` other ones.
//! `PILOTHOUSE_SCRIPT=NUMBER` runs one of the scripts alone. With `PILOTHOUSE_SHRINK=0` a mismatch is shown as it was found, which is much quicker when there are many.

mod bookmarks;
mod both;
mod cases;
mod collection;
mod definitions;
mod documents;
mod expiry;
mod kinds;
mod mutations;
mod policies;
mod run;
mod same;
mod script;
mod shrink;
mod side;
mod watches;

use std::{env, sync::Arc};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, future, stream};
use pilothouse_control_plane::Parts;
use pilothouse_simulation::api_server::{Catalog, Denial};
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, install_crd},
};

use self::{run::Arena, script::Writer, watches::Watches};
use crate::{
    suite::{Suite, heavy},
    test_env::TestEnv,
};

/// The requests of one script. Each script has a namespace of its own.
const STEPS: usize = 40;

/// The requests that the suite sends.
const REQUESTS: usize = 2_000;

/// The scripts at once.
const PARALLEL: usize = 6;

/// The scripts about garbage collection.
const COLLECTION_SCRIPTS: u64 = 6;

/// The most mismatches that are shown.
const SHOWN: usize = 40;

/// The CRDs of the kinds in the table.
const CRDS: [&str; 3] =
    ["tests/black_box/differential/crd.json", "tests/guests/scripted/crd.yaml", "tests/guests/scripted/child-crd.yaml"];

pub fn register(suite: &mut Suite) {
    heavy!(
        suite,
        the_simulated_api_server_answers_as_the_real_one,
        what_once_differed_is_answered_alike,
        garbage_goes_as_in_a_real_cluster,
        policies_refuse_as_in_a_real_cluster,
        policies_change_what_is_written_as_in_a_real_cluster,
        definitions_come_change_and_go_as_in_a_real_cluster,
        watches_have_the_bookmarks_of_a_real_cluster,
        what_is_compacted_is_refused_as_by_the_real_one,
        the_kept_documents_are_those_of_the_real_one,
    );
}

async fn the_simulated_api_server_answers_as_the_real_one(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    let client = env.cluster.plane.client().await?;
    for crd in CRDS {
        install_crd(&client, &artifacts::repository().join(crd)).await?;
    }
    let kinds = kinds::kinds()?;
    let watches = Watches::start(&client, &kinds).await?;
    let definitions = CRDS.iter().map(|crd| run::definition(crd)).collect::<Result<Vec<_>>>()?;
    let shrinks = number("PILOTHOUSE_SHRINK", 1)? > 0;
    let arena = Arena { client, catalog: Arc::new(Catalog::new()?), kinds, watches, definitions, shrinks };
    let (requests, seed) = (number("PILOTHOUSE_DIFFERENTIAL", REQUESTS)?, number("PILOTHOUSE_SEED", 1)?);
    let scripts = match number("PILOTHOUSE_SCRIPT", usize::MAX)? {
        usize::MAX => 0..requests.div_ceil(STEPS),
        script => script..script + 1,
    };
    let scripts = stream::iter(scripts);
    let mismatches = scripts.map(|index| arena.check(seed as u64, index)).buffer_unordered(PARALLEL);
    let mut found = Vec::new();
    let mut mismatches = std::pin::pin!(mismatches);
    while let Some(mismatch) = mismatches.next().await {
        found.extend(mismatch?);
        if found.len() >= SHOWN {
            break;
        }
    }
    ensure!(found.is_empty(), "{} scripts differ:\n\n{}", found.len(), found.join("\n\n"));
    Ok(())
}

async fn what_once_differed_is_answered_alike(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    cases::run(env.cluster.plane.client().await?).await
}

async fn garbage_goes_as_in_a_real_cluster(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::collecting().await?).await?;
    let client = env.cluster.plane.client().await?;
    each_seed(COLLECTION_SCRIPTS, |seed| collection::run(client.clone(), seed)).await
}

async fn policies_refuse_as_in_a_real_cluster(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    for denial in Denial::ALL {
        policies::run(env.cluster.plane.client().await?, denial).await?;
    }
    Ok(())
}

async fn policies_change_what_is_written_as_in_a_real_cluster(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::mutating().await?).await?;
    mutations::run(env.cluster.plane.client().await?).await
}

async fn definitions_come_change_and_go_as_in_a_real_cluster(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    definitions::run(env.cluster.plane.client().await?).await
}

async fn watches_have_the_bookmarks_of_a_real_cluster(env: &mut TestEnv) -> Result<()> {
    bookmarks::run(env.cluster.plane.client().await?).await
}

async fn what_is_compacted_is_refused_as_by_the_real_one(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::forgetful().await?).await?;
    expiry::run(env.cluster.plane.client().await?).await
}

async fn the_kept_documents_are_those_of_the_real_one(env: &mut TestEnv) -> Result<()> {
    documents::run(env.cluster.plane.client().await?).await
}

/// Runs the scripts of as many seeds, some at once.
async fn each_seed<F: Future<Output = Result<()>>>(scripts: u64, run: impl Fn(u64) -> F) -> Result<()> {
    let first = number("PILOTHOUSE_SEED", 1)? as u64;
    let results = stream::iter(first..first + scripts).map(run).buffer_unordered(PARALLEL);
    let failed = results.filter_map(|result| future::ready(result.err().map(|error| format!("{error:#}"))));
    let failed: Vec<_> = failed.collect().await;
    ensure!(failed.is_empty(), "{} scripts differ:\n\n{}", failed.len(), failed.join("\n\n"));
    Ok(())
}

fn number(name: &str, otherwise: usize) -> Result<usize> {
    match env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name} is no number: {text}")),
        Err(_) => Ok(otherwise),
    }
}
