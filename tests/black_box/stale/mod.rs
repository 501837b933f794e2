//! Stale caches lead to no delete of a desired child, no duplicate child, and no unnecessary write. A proxy delays and breaks the
//! host's watches.

mod behind;
mod broken;

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::PATIENCE,
    proxy::Proxy,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    state::State,
    suite::Suite,
    test_env::{TestEnv, sextet},
};

pub fn register(suite: &mut Suite) {
    behind::register(suite);
    broken::register(suite);
}

/// Brings a `Sextet` to rest behind a proxy.
async fn start(env: &mut TestEnv) -> Result<Proxy> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    begin(env).await?;
    Ok(proxy)
}

async fn begin(env: &mut TestEnv) -> Result<()> {
    env.start(&["sextet"]).await?;
    env.namespace.apply(sextet("web")).await?;
    ready(env).await
}

async fn ready(env: &TestEnv) -> Result<()> {
    eventually(PATIENCE, "the object to be ready", async || {
        let state = state(env).await?;
        Ok(Look::of(state.is_ready(), state))
    })
    .await
}

async fn state(env: &TestEnv) -> Result<State> {
    State::of(&env.namespace, "Sextet", "web").await
}

/// The host's deletes, from the audit log.
async fn deletes(env: &TestEnv) -> Result<Vec<String>> {
    Ok(env.host_writes().await?.into_iter().filter(|write| write.starts_with("delete")).collect())
}

/// Changes a field of the object, and waits until the child that shows it has changed.
async fn change(env: &TestEnv, port: u16) -> Result<()> {
    env.namespace.patch("Sextet", "web", json!({"spec": {"port": port}})).await?;
    let changed = |service: &Value| service["spec"]["ports"][0]["port"] == port;
    env.namespace.until("Service", "web-s", &format!("to have port {port}"), changed).await?;
    Ok(())
}

async fn returns_to(env: &TestEnv, before: &State) -> Result<()> {
    let what = format!("the state from before, {before:?}");
    eventually(PATIENCE, &what, async || {
        let state = state(env).await?;
        Ok(Look::of(state == *before, state))
    })
    .await
}

/// Checks that the host has finished: after two more reconciles, a third one writes nothing.
async fn stays_quiet(env: &TestEnv, proxy: &Proxy) -> Result<()> {
    for turn in 0..2 {
        env.reconciled_after("sextet", async || env.touch("Sextet", "web", turn).await).await?;
    }
    let before = proxy.writes().seen();
    env.reconciled_after("sextet", async || env.touch("Sextet", "web", "last").await).await?;
    ensure!(proxy.writes().seen() == before, "it goes on writing: {:#?}", proxy.writes().seen());
    Ok(())
}
