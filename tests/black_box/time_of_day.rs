//! The time of day is the API server's: hosts on machines whose clocks differ agree on it.

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use pilothouse_tests::cluster::condition;

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_host_whose_clock_is_wrong_goes_by_the_api_servers);
}

/// To the host it is the same whether its own clock is behind or the API server's is ahead.
async fn a_host_whose_clock_is_wrong_goes_by_the_api_servers(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    proxy.dates().ahead(3_600);
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    let object = env.namespace.until("AppService", "web", "to be ready", is_ready).await?;
    let ready = condition(&object, "Ready");
    let since: Timestamp = ready["lastTransitionTime"].as_str().context("no time")?.parse()?;
    let ahead = since.duration_since(Timestamp::now());
    ensure!(ahead > SignedDuration::from_mins(55) && ahead < SignedDuration::from_mins(61), "{ready}: {ahead:?} ahead");
    env.host.logged("the clock of this machine differs from the API server's").await
}
