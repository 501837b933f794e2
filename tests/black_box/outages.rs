//! Outages of the API server: the host waits, reports it, and misses no change.

use anyhow::{Result, ensure};
use axum::http::Method;
use pilothouse_control_plane::Part;
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use crate::{
    startup::not_ready,
    suite::{Suite, tests},
    test_env::{TestEnv, app},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_api_server_that_is_down_is_waited_for,
        a_restarted_api_server_is_followed_again,
        a_request_that_is_never_answered_is_given_up,
    );
}

async fn an_api_server_that_is_down_is_waited_for(env: &mut TestEnv) -> Result<()> {
    on_its_own_control_plane(env).await?;
    env.namespace.apply(app("web")).await?;
    env.cluster.plane.stop_part(Part::ApiServer).await?;
    env.install("app-service")?;
    env.host.resume().await?;
    not_ready(env, "failed to ask the API server").await?;
    ensure!(env.host.get("health", "/healthz").await?.0 == 200, "the host is not healthy");
    env.cluster.plane.start_part(Part::ApiServer).await?;
    env.host.ready().await?;
    env.namespace.until("Deployment", "web", "to be created", |_| true).await?;
    Ok(())
}

async fn a_restarted_api_server_is_followed_again(env: &mut TestEnv) -> Result<()> {
    on_its_own_control_plane(env).await?;
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    env.namespace.until("Service", "web", "to be created", |_| true).await?;
    for (replicas, crash) in [(4, false), (5, true)] {
        if crash {
            env.cluster.plane.kill_part(Part::ApiServer).await?;
        } else {
            env.cluster.plane.stop_part(Part::ApiServer).await?;
        }
        env.cluster.plane.start_part(Part::ApiServer).await?;
        env.namespace.patch("AppService", "web", json!({"spec": {"replicas": replicas}})).await?;
        let scaled = |deployment: &Value| deployment["spec"]["replicas"] == replicas;
        env.namespace.until("Deployment", "web", &format!("to have {replicas} replicas"), scaled).await?;
        env.namespace.patch("Deployment", "web", json!({"spec": {"replicas": 1}})).await?;
        env.namespace.until("Deployment", "web", "to be repaired", scaled).await?;
    }
    ensure!(env.host.get("health", "/readyz").await?.0 == 200, "the host is not ready");
    Ok(())
}

/// A list, a write of a child, and a write of a status. Each wait for an answer is reported, and work goes on once the API server
/// answers.
async fn a_request_that_is_never_answered_is_given_up(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy_with(&env.upstream().await?, &["--request-timeout=1s"]).await?;
    proxy.faults().swallow(Method::GET, "deployments");
    env.namespace.apply(app("web")).await?;
    env.install("app-service")?;
    env.host.resume().await?;
    not_ready(env, "no answer within 1s").await?;
    proxy.faults().heal();
    env.host.ready().await?;
    env.at_rest("web").await?;

    proxy.faults().swallow(Method::PATCH, "deployments");
    env.namespace.patch("AppService", "web", json!({"spec": {"replicas": 4}})).await?;
    let reported = |app: &Value| {
        let why = condition(app, "Reconciling");
        why["reason"] == "ApiServerUnavailable" && why["message"].to_string().contains("no answer within 1s")
    };
    env.namespace.until("AppService", "web", "to say that nobody answers", reported).await?;
    proxy.faults().heal();
    env.at_rest("web").await?;

    proxy.faults().swallow(Method::PATCH, "appservices/status");
    env.namespace.patch("AppService", "web", json!({"spec": {"replicas": 3}})).await?;
    env.host.logged("failed to write the status").await?;
    proxy.faults().heal();
    env.at_rest("web").await
}

/// Moves the test to a control plane of its own.
async fn on_its_own_control_plane(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/appservices.apps.example.com.yaml"]).await
}
