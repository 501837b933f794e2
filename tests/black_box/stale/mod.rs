//! What the host does not know yet leads to no delete of a wanted child, to no second one, and to no write that is not
//! needed. A proxy makes its watches late and wrong.

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
    scene::{Scene, sextet},
    state::State,
    suite::Suite,
};

pub fn register(suite: &mut Suite) {
    behind::register(suite);
    broken::register(suite);
}

/// Brings a `Sextet` to rest behind a proxy.
async fn start(scene: &mut Scene) -> Result<Proxy> {
    let proxy = scene.behind_proxy(&scene.upstream().await?).await?;
    begin(scene).await?;
    Ok(proxy)
}

async fn begin(scene: &mut Scene) -> Result<()> {
    scene.start(&["sextet"]).await?;
    scene.namespace.apply(sextet("web")).await?;
    ready(scene).await
}

async fn ready(scene: &Scene) -> Result<()> {
    eventually(PATIENCE, "the object to be ready", async || {
        let state = state(scene).await?;
        Ok(Look::of(state.is_ready(), state))
    })
    .await
}

async fn state(scene: &Scene) -> Result<State> {
    State::of(&scene.namespace, "Sextet", "web").await
}

/// The host's deletes, from the audit log.
async fn deletes(scene: &Scene) -> Result<Vec<String>> {
    Ok(scene.host_writes().await?.into_iter().filter(|write| write.starts_with("delete")).collect())
}

/// Changes a field, and waits until the child that it ends up in has changed.
async fn change(scene: &Scene, port: u16) -> Result<()> {
    scene.namespace.patch("Sextet", "web", json!({"spec": {"port": port}})).await?;
    let changed = |service: &Value| service["spec"]["ports"][0]["port"] == port;
    scene.namespace.until("Service", "web-s", &format!("to have port {port}"), changed).await?;
    Ok(())
}

async fn returns_to(scene: &Scene, before: &State) -> Result<()> {
    let what = format!("the state from before, {before:?}");
    eventually(PATIENCE, &what, async || {
        let state = state(scene).await?;
        Ok(Look::of(state == *before, state))
    })
    .await
}

/// Whatever the host still has to do, it has done after two more reconciles; a third writes nothing.
async fn stays_quiet(scene: &Scene, proxy: &Proxy) -> Result<()> {
    for turn in 0..2 {
        scene.reconciled_after("sextet", async || scene.touch("Sextet", "web", turn).await).await?;
    }
    let before = proxy.writes().seen();
    scene.reconciled_after("sextet", async || scene.touch("Sextet", "web", "last").await).await?;
    ensure!(proxy.writes().seen() == before, "it goes on writing: {:#?}", proxy.writes().seen());
    Ok(())
}
