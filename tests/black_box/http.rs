//! The process as its surroundings see it: health, the end.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::PATIENCE,
    wait::{Look, eventually},
};

use crate::{
    scene::{Scene, misbehaver},
    suite::{Suite, tests},
};

/// How soon a host with nothing to finish ends.
const SOON: Duration = Duration::from_secs(5);

pub fn register(suite: &mut Suite) {
    tests!(suite, health_is_told, sigterm_ends_the_host);
}

async fn health_is_told(scene: &mut Scene) -> Result<()> {
    scene.start(&["app-service"]).await?;
    for path in ["/healthz", "/readyz"] {
        let (code, body) = scene.host.get("health", path).await?;
        ensure!(code == 200 && body.contains("ok"), "{path} says {code} {body}");
    }
    ensure!(scene.host.get("health", "/nothing").await?.0 == 404, "everything is answered");
    Ok(())
}

/// Also while a plugin computes.
async fn sigterm_ends_the_host(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(misbehaver("endless", "loop")).await?;
    eventually(PATIENCE, "the plugin to compute", async || {
        let working = scene.metrics().await?.sum("controller_runtime_active_workers", &[("controller", "misbehaver")]);
        Ok(Look::of(working > 0.0, working))
    })
    .await?;
    let asked = Instant::now();
    scene.host.stop().await?;
    let took = asked.elapsed();
    ensure!(took < SOON, "the host took {took:?} to end");
    ensure!(scene.host.log().contains("pilothouse ends"), "it does not say that it ends");
    Ok(())
}
