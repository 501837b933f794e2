//! The host as a process: health endpoints, log level and format, graceful shutdown.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use axum::http::Method;
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use tokio::process::Command;

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, app, misbehaver},
};

/// The longest time until a host without work in progress has ended.
const SOON: Duration = Duration::from_secs(5);

/// The duration of the write that is in progress when the host is stopped.
const SLOW: Duration = Duration::from_millis(500);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        health_is_reported,
        the_log_level_changes_at_run_time,
        the_log_is_plain_text_by_default,
        sigterm_ends_the_host,
        sigterm_lets_writes_in_progress_finish,
    );
}

async fn health_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    for path in ["/healthz", "/readyz"] {
        let (code, body) = env.host.get("health", path).await?;
        ensure!(code == 200 && body.contains("ok"), "{path} says {code} {body}");
    }
    ensure!(env.host.get("health", "/nothing").await?.0 == 404, "everything is answered");
    Ok(())
}

async fn the_log_level_changes_at_run_time(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    let log_level = async |method: &str, filter: &str| {
        let answer = env.host.ask("health", &format!("{method} /log-level HTTP/1.1\r\n"), filter).await?;
        Ok::<_, anyhow::Error>((answer.status, answer.body))
    };
    ensure!(log_level("GET", "").await? == (200, "info\n".to_owned()), "it does not begin as it was started");
    let details = |log: &str| log.matches("\"level\":\"DEBUG\"").count();
    ensure!(details(&env.host.log()) == 0, "details are logged already");
    let changed = log_level("PUT", "info,pilothouse_controller=debug").await?;
    ensure!(changed.0 == 200 && changed.1.contains("pilothouse_controller=debug"), "{changed:?}");
    env.namespace.apply(app("web")).await?;
    env.host.logged("\"level\":\"DEBUG\"").await?;
    env.at_rest("web").await?;
    env.namespace.apply(app("gone")).await?;
    env.at_rest("gone").await?;
    env.namespace.delete("AppService", "gone").await?;
    env.host.logged("AppService resource not found. Ignoring since object must be deleted").await?;

    let (code, why) = log_level("PUT", "debgu").await?;
    ensure!(code == 400 && why.contains("'debgu' is not a level") && why.contains("info,pilo"), "{code} {why}");
    ensure!(log_level("PUT", "info").await?.0 == 200, "it does not go back");
    let before = details(&env.host.log());
    env.reconcile_often("web", 3).await?;
    let after = details(&env.host.log());
    ensure!(before == after, "{} more details are logged", after - before);
    Ok(())
}

async fn the_log_is_plain_text_by_default(env: &mut TestEnv) -> Result<()> {
    let log = tempfile::NamedTempFile::new()?;
    let mut command = Command::new(artifacts::host_binary()?);
    command.args(["run", "--health-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0", "--plugins"]);
    command.arg(env.host.plugins()).arg("--kubeconfig").arg(env.namespace.setup().kubeconfig);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.reopen()?).kill_on_drop(true);
    let _host = command.spawn()?;
    eventually(PATIENCE, "a line for people", async || {
        let log = std::fs::read_to_string(log.path())?;
        let line = log.lines().find(|line| line.contains("INFO pilothouse") && line.contains("starts"));
        Ok(Look::of(line.is_some_and(|line| !line.starts_with('{') && line.contains("metrics=127.0.0.1:")), log))
    })
    .await
}

/// Even while a plugin computes.
async fn sigterm_ends_the_host(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("endless", "loop")).await?;
    eventually(PATIENCE, "the plugin to compute", async || {
        let working = env.metrics().await?.sum("controller_runtime_active_workers", &[("controller", "misbehaver")]);
        Ok(Look::of(working > 0.0, working))
    })
    .await?;
    let asked = Instant::now();
    env.host.stop().await?;
    let took = asked.elapsed();
    ensure!(took < SOON, "the host took {took:?} to end");
    ensure!(env.host.log().contains("pilothouse ends"), "it does not say that it ends");
    Ok(())
}

/// The host is stopped during a slow write. Afterwards the child exists, and the status is up to date.
async fn sigterm_lets_writes_in_progress_finish(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    proxy.faults().delay(Method::PATCH, "deployments", SLOW);
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    let write = "PATCH deployments web".to_owned();
    eventually(PATIENCE, "the write to be under way", async || {
        let writes = proxy.writes().seen();
        Ok(Look::of(writes.contains(&write), writes))
    })
    .await?;
    env.host.stop().await?;
    ensure!(env.namespace.get("Deployment", "web").await?.is_some(), "the write was given up");
    let web = env.namespace.get("AppService", "web").await?.unwrap_or_default();
    ensure!(condition(&web, "Ready")["observedGeneration"] == web["metadata"]["generation"], "nobody says so: {web}");
    Ok(())
}
