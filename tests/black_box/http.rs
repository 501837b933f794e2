//! The process as its surroundings see it: health, the end.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::PATIENCE,
    wait::{Look, eventually},
};

use crate::{
    scene::{Scene, app, misbehaver},
    suite::{Suite, tests},
};

/// How soon a host with nothing to finish ends.
const SOON: Duration = Duration::from_secs(5);

pub fn register(suite: &mut Suite) {
    tests!(suite, health_is_told, the_log_level_changes_at_run_time, sigterm_ends_the_host);
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

async fn the_log_level_changes_at_run_time(scene: &mut Scene) -> Result<()> {
    scene.start(&["app-service"]).await?;
    let log_level = async |method: &str, filter: &str| {
        let answer = scene.host.ask("health", &format!("{method} /log-level HTTP/1.1\r\n"), filter).await?;
        Ok::<_, anyhow::Error>((answer.status, answer.body))
    };
    ensure!(log_level("GET", "").await? == (200, "info\n".to_owned()), "it does not begin as it was started");
    let details = |log: &str| log.matches("\"level\":\"DEBUG\"").count();
    ensure!(details(&scene.host.log()) == 0, "details are logged already");
    let changed = log_level("PUT", "info,pilothouse_controller=debug").await?;
    ensure!(changed.0 == 200 && changed.1.contains("pilothouse_controller=debug"), "{changed:?}");
    scene.namespace.apply(app("web")).await?;
    scene.host.logged("\"level\":\"DEBUG\"").await?;
    scene.at_rest("web").await?;
    scene.namespace.apply(app("gone")).await?;
    scene.at_rest("gone").await?;
    scene.namespace.delete("AppService", "gone").await?;
    scene.host.logged("AppService resource not found. Ignoring since object must be deleted").await?;

    let (code, why) = log_level("PUT", "debgu").await?;
    ensure!(code == 400 && why.contains("'debgu' is not a level") && why.contains("info,pilo"), "{code} {why}");
    ensure!(log_level("PUT", "info").await?.0 == 200, "it does not go back");
    let before = details(&scene.host.log());
    scene.reconcile_often("web", 3).await?;
    let after = details(&scene.host.log());
    ensure!(before == after, "{} more details are logged", after - before);
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
