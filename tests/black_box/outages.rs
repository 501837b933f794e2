//! The API server goes away: the host waits, says so, and misses nothing that happens around it.

use anyhow::{Result, ensure};
use axum::http::Method;
use pilothouse_control_plane::{Part, Parts};
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, condition, install_crd},
};
use serde_json::{Value, json};

use crate::{
    scene::{Scene, app},
    startup::not_ready,
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_api_server_that_is_down_is_waited_for,
        a_restarted_api_server_is_followed_again,
        a_request_that_is_never_answered_is_given_up,
    );
}

async fn an_api_server_that_is_down_is_waited_for(scene: &mut Scene) -> Result<()> {
    on_its_own_control_plane(scene).await?;
    scene.namespace.apply(app("web")).await?;
    scene.cluster.plane.stop_part(Part::ApiServer).await?;
    scene.install("app-service")?;
    scene.host.resume().await?;
    not_ready(scene, "failed to ask the API server").await?;
    ensure!(scene.host.get("health", "/healthz").await?.0 == 200, "the host is not healthy");
    scene.cluster.plane.start_part(Part::ApiServer).await?;
    scene.host.ready().await?;
    scene.namespace.until("Deployment", "web", "to be created", |_| true).await?;
    Ok(())
}

async fn a_restarted_api_server_is_followed_again(scene: &mut Scene) -> Result<()> {
    on_its_own_control_plane(scene).await?;
    scene.start(&["app-service"]).await?;
    scene.namespace.apply(app("web")).await?;
    scene.namespace.until("Service", "web", "to be created", |_| true).await?;
    for (replicas, crash) in [(4, false), (5, true)] {
        if crash {
            scene.cluster.plane.kill_part(Part::ApiServer).await?;
        } else {
            scene.cluster.plane.stop_part(Part::ApiServer).await?;
        }
        scene.cluster.plane.start_part(Part::ApiServer).await?;
        scene.namespace.patch("AppService", "web", json!({"spec": {"replicas": replicas}})).await?;
        let scaled = |deployment: &Value| deployment["spec"]["replicas"] == replicas;
        scene.namespace.until("Deployment", "web", &format!("to have {replicas} replicas"), scaled).await?;
        scene.namespace.patch("Deployment", "web", json!({"spec": {"replicas": 1}})).await?;
        scene.namespace.until("Deployment", "web", "to be repaired", scaled).await?;
    }
    ensure!(scene.host.get("health", "/readyz").await?.0 == 200, "the host is not ready");
    Ok(())
}

/// A list, a write of a child, and one of a status. What waits for the answer says so, and goes on once there are answers.
async fn a_request_that_is_never_answered_is_given_up(scene: &mut Scene) -> Result<()> {
    let proxy = scene.behind_proxy_with(&scene.upstream().await?, &["--request-timeout=1s"]).await?;
    proxy.faults().swallow(Method::GET, "deployments");
    scene.namespace.apply(app("web")).await?;
    scene.install("app-service")?;
    scene.host.resume().await?;
    not_ready(scene, "no answer within 1s").await?;
    proxy.faults().heal();
    scene.host.ready().await?;
    scene.at_rest("web").await?;

    proxy.faults().swallow(Method::PATCH, "deployments");
    scene.namespace.patch("AppService", "web", json!({"spec": {"replicas": 4}})).await?;
    let told = |app: &Value| {
        let why = condition(app, "Reconciling");
        why["reason"] == "ApiServerUnavailable" && why["message"].to_string().contains("no answer within 1s")
    };
    scene.namespace.until("AppService", "web", "to say that nobody answers", told).await?;
    proxy.faults().heal();
    scene.at_rest("web").await?;

    proxy.faults().swallow(Method::PATCH, "appservices/status");
    scene.namespace.patch("AppService", "web", json!({"spec": {"replicas": 3}})).await?;
    scene.host.logged("failed to write the status").await?;
    proxy.faults().heal();
    scene.at_rest("web").await
}

/// A control plane that nobody else needs.
async fn on_its_own_control_plane(scene: &mut Scene) -> Result<()> {
    scene.move_to(Cluster::with(Parts::Api).await?).await?;
    let crd = artifacts::repository().join("crds/appservices.apps.example.com.yaml");
    install_crd(&scene.namespace.client(), &crd).await
}
