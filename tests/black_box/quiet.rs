//! Silence: what is as it shall be costs no write, however often it is reconciled and whoever asks. Counted in the API
//! server's audit log.

use anyhow::{Result, ensure};
use axum::http::{Method, StatusCode};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::json;

use crate::{
    scene::{Scene, sextet},
    suite::{Suite, tests},
};

/// Objects that a restart finds.
const OBJECTS: usize = 3;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        reconciles_at_rest_write_nothing,
        a_restart_at_rest_writes_nothing,
        creation_writes_each_child_once,
        what_goes_on_failing_is_told_once,
    );
}

/// Ten changes to an annotation of the object and ten to a label of its Deployment. (An annotation of a Deployment is
/// a new generation of it, which the Deployment controller must observe first.)
async fn reconciles_at_rest_write_nothing(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    let before = scene.host_writes().await?;
    scene.reconcile_often("web", 10).await?;
    for turn in 0..10 {
        let label = json!({"metadata": {"labels": {"tests.pilothouse.dev/touched": turn.to_string()}}});
        scene
            .reconciled_after("app-service", async || {
                scene.namespace.patch("Deployment", "web", label).await?;
                Ok(())
            })
            .await?;
    }
    wrote_nothing_since(scene, &before).await
}

/// A new host reconciles every object once and finds nothing to do.
async fn a_restart_at_rest_writes_nothing(scene: &mut Scene) -> Result<()> {
    scene.start(&["app-service"]).await?;
    let names = scene.many_at_rest(OBJECTS).await?;
    let before = scene.host_writes().await?;
    scene.host.stop().await?;
    scene.host.resume().await?;
    scene.host.ready().await?;
    eventually(PATIENCE, "a reconcile of every object", async || {
        let reconciles = scene.reconciles("app-service").await?;
        Ok(Look::of(reconciles >= OBJECTS as f64, reconciles))
    })
    .await?;
    for name in &names {
        scene.reconcile_often(name, 2).await?;
    }
    wrote_nothing_since(scene, &before).await
}

/// Nothing is written twice on the way to rest either; the status is, for it changes on the way.
async fn creation_writes_each_child_once(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    let writes = scene.host_writes().await?;
    let (children, statuses): (Vec<_>, Vec<_>) = writes.iter().partition(|write| !write.contains("appservices/status"));
    ensure!(children.len() == 2, "not one write per child: {writes:#?}");
    ensure!(statuses.len() <= 12, "too many status writes: {writes:#?}");
    Ok(())
}

/// Several children fail at once, again and again, in whatever order the API server answers: the status tells of the same one.
async fn what_goes_on_failing_is_told_once(scene: &mut Scene) -> Result<()> {
    let proxy = scene.behind_proxy(&scene.upstream().await?).await?;
    scene.start(&["sextet"]).await?;
    for resource in ["configmaps", "secrets", "serviceaccounts"] {
        proxy.faults().fail(Method::PATCH, resource, StatusCode::INTERNAL_SERVER_ERROR);
    }
    scene.namespace.apply(sextet("web")).await?;
    eventually(PATIENCE, "many tries", async || {
        let reconciles = scene.reconciles("sextet").await?;
        Ok(Look::of(reconciles >= 10.0, reconciles))
    })
    .await?;
    let failing = scene.namespace.get("Sextet", "web").await?.unwrap_or_default();
    ensure!(condition(&failing, "Ready")["reason"] == "ApiServerError", "{failing}");
    let told = proxy.writes().seen().iter().filter(|write| *write == "PATCH sextets/status web").count();
    ensure!(told == 1, "it was told {told} times");
    proxy.faults().heal();
    scene.namespace.until("Sextet", "web", "to be ready", |web| condition(web, "Ready")["status"] == "True").await?;
    Ok(())
}

async fn wrote_nothing_since(scene: &Scene, before: &[String]) -> Result<()> {
    let after = scene.host_writes().await?;
    ensure!(!before.is_empty(), "the audit log does not tell what the host writes");
    ensure!(after.len() == before.len(), "the host wrote {:#?}", &after[before.len()..]);
    Ok(())
}
