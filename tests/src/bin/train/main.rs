//! Gives a host typical work on a real API server, so that a build of it which counts what it runs learns what it runs most:
//! `make release` builds it again by those counts. Measures and checks nothing, and leaves nothing behind but the counts.
//!
//!   PILOTHOUSE_BIN=HOST train CACHE OBJECTS

mod work;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, anyhow};
use pilothouse_tests::{
    artifacts,
    cluster::Cluster,
    host::{Host, Setup},
};
use work::Work;

/// The time limit for everything.
const LIMIT: Duration = Duration::from_secs(600);

/// The plugins at work.
const PLUGINS: [&str; 2] = ["app-service", "training-job"];

#[tokio::main]
async fn main() -> Result<()> {
    let [_, cache, objects] = std::env::args()
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|given| anyhow!("usage: PILOTHOUSE_BIN=HOST train CACHE OBJECTS, not {given:?}"))?;
    let (cache, objects) = (PathBuf::from(cache), objects.parse()?);
    let cluster = Cluster::quiet().await?;
    let namespace = cluster.namespace("train").await?;
    let mut host = Host::prepare(Setup { cache, ..namespace.setup() })?;
    for plugin in PLUGINS {
        host.install(&artifacts::plugin(plugin)?, &format!("{plugin}.wasm"))?;
    }
    let work = Work::new(namespace, objects)?;
    let trained = tokio::time::timeout(LIMIT, train(&mut host, &work)).await.context("the host does not get done");
    trained.flatten().map_err(|error| anyhow!("{error:#}\n\n{}", host.log()))?;
    cluster.stop().await
}

/// What a host's life consists of: a start with everything to do, one with nothing to do, and then changes, many at once and
/// one by one, by users and by others.
async fn train(host: &mut Host, work: &Work) -> Result<()> {
    work.create().await?;
    host.resume().await?;
    work.until_reported().await?;
    host.stop().await?;
    host.resume().await?;
    host.ready().await?;
    work.come_up().await?;
    work.touch().await?;
    work.change_all().await?;
    work.one_by_one().await?;
    work.delete().await?;
    host.stop().await
}
