//! No write without a difference, however often an object is reconciled. Counted in the API server's audit log.

use anyhow::{Result, ensure};
use axum::http::{Method, StatusCode};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::json;

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, sextet},
};

/// The number of objects that a restarted host finds.
const OBJECTS: usize = 3;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        reconciles_at_rest_write_nothing,
        a_restart_at_rest_writes_nothing,
        creation_writes_each_child_once,
        a_lasting_failure_is_reported_once,
    );
}

/// Ten changes of an annotation of the object and ten of a label of its Deployment. (An annotation would change the generation of
/// the Deployment, which its controller has to observe first.)
async fn reconciles_at_rest_write_nothing(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let before = env.host_writes().await?;
    env.reconcile_often("web", 10).await?;
    for turn in 0..10 {
        let label = json!({"metadata": {"labels": {"tests.pilothouse.dev/touched": turn.to_string()}}});
        env.reconciled_after("app-service", async || {
            env.namespace.patch("Deployment", "web", label).await?;
            Ok(())
        })
        .await?;
    }
    wrote_nothing_since(env, &before).await
}

/// A restarted host reconciles every object once and finds nothing to do.
async fn a_restart_at_rest_writes_nothing(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    let names = env.many_at_rest(OBJECTS).await?;
    let before = env.host_writes().await?;
    env.host.stop().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    eventually(PATIENCE, "a reconcile of every object", async || {
        let reconciles = env.reconciles("app-service").await?;
        Ok(Look::of(reconciles >= OBJECTS as f64, reconciles))
    })
    .await?;
    for name in &names {
        env.reconcile_often(name, 2).await?;
    }
    wrote_nothing_since(env, &before).await
}

/// No child is written twice during the creation. The status is, because it changes.
async fn creation_writes_each_child_once(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let writes = env.host_writes().await?;
    let (children, statuses): (Vec<_>, Vec<_>) = writes.iter().partition(|write| !write.contains("appservices/status"));
    ensure!(children.len() == 2, "not one write per child: {writes:#?}");
    ensure!(statuses.len() <= 12, "too many status writes: {writes:#?}");
    Ok(())
}

/// Several children fail in each reconcile. Whatever the order of the API server's answers, the status reports the same one.
async fn a_lasting_failure_is_reported_once(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.start(&["sextet"]).await?;
    for resource in ["configmaps", "secrets", "serviceaccounts"] {
        proxy.faults().fail(Method::PATCH, resource, StatusCode::INTERNAL_SERVER_ERROR);
    }
    env.namespace.apply(sextet("web")).await?;
    eventually(PATIENCE, "many tries", async || {
        let reconciles = env.reconciles("sextet").await?;
        Ok(Look::of(reconciles >= 10.0, reconciles))
    })
    .await?;
    let failing = env.namespace.get("Sextet", "web").await?.unwrap_or_default();
    ensure!(condition(&failing, "Ready")["reason"] == "ApiServerError", "{failing}");
    let reported = proxy.writes().seen().iter().filter(|write| *write == "PATCH sextets/status web").count();
    ensure!(reported == 1, "it was reported {reported} times");
    proxy.faults().heal();
    env.namespace.until("Sextet", "web", "to be ready", |web| condition(web, "Ready")["status"] == "True").await?;
    Ok(())
}

async fn wrote_nothing_since(env: &TestEnv, before: &[String]) -> Result<()> {
    let after = env.host_writes().await?;
    ensure!(!before.is_empty(), "the audit log does not tell what the host writes");
    ensure!(after.len() == before.len(), "the host wrote {:#?}", &after[before.len()..]);
    Ok(())
}
