//! The process as its surroundings see it: health, metrics, the end.

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
    tests!(suite, health_is_told, metrics_are_there_before_anything_happens, metrics_count, sigterm_ends_the_host);
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

/// Every line is as Prometheus wants it, and what dashboards and alerts are made of begins at zero.
async fn metrics_are_there_before_anything_happens(scene: &mut Scene) -> Result<()> {
    scene.start(&["app-service"]).await?;
    let metrics = scene.metrics().await?;
    let of_plugin = ("controller", "app-service");
    for result in ["success", "error", "requeue", "requeue_after"] {
        let labels = [of_plugin, ("result", result)];
        ensure!(metrics.has("controller_runtime_reconcile_total", &labels), "no series for {result}");
        ensure!(metrics.sum("controller_runtime_reconcile_total", &labels) == 0.0, "{result} is not zero");
    }
    for name in [
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_reconcile_time_seconds_count",
        "controller_runtime_reconcile_time_seconds_bucket",
        "controller_runtime_active_workers",
        "pilothouse_drift_repaired_total",
    ] {
        ensure!(metrics.has(name, &[of_plugin]), "no series of {name}");
        ensure!(metrics.sum(name, &[of_plugin]) == 0.0, "{name} is not zero");
    }
    for outcome in ["response", "trap", "deadline", "memory_limit", "output_limit", "contract"] {
        let labels = [("plugin", "app-service"), ("outcome", outcome)];
        ensure!(metrics.has("pilothouse_plugin_calls_total", &labels), "no series for {outcome}");
    }
    ensure!(metrics.sum("pilothouse_plugin_loaded", &[("plugin", "app-service")]) == 1.0, "no version is at work");
    ensure!(metrics.has("pilothouse_plugin_load_failures_total", &[]), "no series for load failures");
    Ok(())
}

async fn metrics_count(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    scene.reconcile_often("web", 2).await?;
    let metrics = scene.metrics().await?;
    let of_plugin = [("controller", "app-service")];
    let reconciles = metrics.sum("controller_runtime_reconcile_total", &of_plugin);
    let timed = metrics.sum("controller_runtime_reconcile_time_seconds_count", &of_plugin);
    ensure!(reconciles == timed && timed >= 3.0, "{reconciles} reconciles are counted, {timed} are timed");
    ensure!(metrics.sum("controller_runtime_reconcile_errors_total", &of_plugin) == 0.0, "errors are counted");
    let answered = metrics.sum("pilothouse_plugin_calls_total", &[("plugin", "app-service"), ("outcome", "response")]);
    ensure!(answered >= 3.0, "{answered} calls are counted");
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
