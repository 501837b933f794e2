//! The memory of the host, in a container of the size that is deployed: plugins that take all they can get do not end it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cgroup::Cgroup,
    process::memory,
    wait::{Look, eventually},
};
use serde_json::json;

use crate::{
    suite::{Suite, Weight},
    test_env::{TestEnv, app, misbehaver},
};

/// The limit in `deploy/pilothouse.yaml`.
const CONTAINER: usize = 512 << 20;

/// Objects whose plugin allocates until it is refused, 128 MiB each. More than there are instances.
const GREEDY: usize = 48;

pub fn register(suite: &mut Suite) {
    // Alone: it takes all the processors that it can get, too.
    suite.in_container(
        module_path!(),
        stringify!(greedy_plugins_do_not_end_the_host),
        Weight::Alone,
        greedy_plugins_do_not_end_the_host,
    );
}

async fn greedy_plugins_do_not_end_the_host(env: &mut TestEnv) -> Result<()> {
    let container = Cgroup::with_memory(CONTAINER)?;
    env.set_up_host(|setup| setup.cgroup = Some(container.folder().to_owned()))?;
    env.start(&["misbehaver", "app-service"]).await?;
    env.host.logged("all calls of plugins together may have 256 MiB").await?;
    for number in 0..GREEDY {
        env.namespace.apply(misbehaver(&format!("greedy-{number}"), "allocate")).await?;
    }
    // Others are served meanwhile.
    let (mut slowest, mut turn) = (Duration::ZERO, 0);
    let patience = Duration::from_secs(180);
    env.namespace.apply(app("web")).await?;
    eventually(patience, "each greedy object to have been called", async || {
        turn += 1;
        let started = Instant::now();
        env.namespace.patch("AppService", "web", json!({"spec": {"replicas": 1 + turn % 5}})).await?;
        let is_written = |deployment: &serde_json::Value| deployment["spec"]["replicas"] == 1 + turn % 5;
        env.namespace.until("Deployment", "web", "to be as the object says", is_written).await?;
        slowest = slowest.max(started.elapsed());
        let calls = env.metrics().await?.sum("pilothouse_plugin_calls_total", &[("outcome", "memory_limit")]);
        Ok(Look::of(calls >= GREEDY as f64, calls))
    })
    .await?;
    println!("a change of a neighbour took {slowest:?} at most, of {turn}");
    let pid = env.host.pid()?;
    println!("the host had {:.0} MiB at most", memory(pid)?.1);
    ensure!(env.host.pid()? == pid, "the host was started again");
    env.host.stop().await
}
