//! Bursts of changes and changes without a running host: only the last state counts, and no change is lost.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, app},
};

/// The number of edits in one burst.
const EDITS: usize = 50;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_burst_of_edits_ends_in_the_last_one,
        objects_from_before_the_first_start_are_taken_up,
        changes_while_the_host_is_stopped_are_taken_up,
        changes_while_the_host_is_dead_are_taken_up,
    );
}

async fn a_burst_of_edits_ends_in_the_last_one(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    for edit in 1..=EDITS {
        let spec = json!({"replicas": 2 + edit % 3, "image": format!("example.com/web:{edit}"), "port": 8000 + edit});
        env.namespace.patch("AppService", "web", json!({"spec": spec})).await?;
    }
    env.namespace.until("Deployment", "web", "to be as in the last edit", is_last).await?;
    env.at_rest("web").await?;
    // After these reconciles, a late one would have written an older state.
    env.reconcile_often("web", 3).await?;
    env.namespace.until("Deployment", "web", "to stay as in the last edit", is_last).await?;
    Ok(())
}

fn is_last(deployment: &Value) -> bool {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let [container] = containers.map_or(&[][..], Vec::as_slice) else { return false };
    let ports = container["ports"].as_array().map_or(&[][..], Vec::as_slice);
    deployment["spec"]["replicas"] == 2 + EDITS % 3
        && container["image"] == format!("example.com/web:{EDITS}")
        && matches!(ports, [port] if port["containerPort"] == 8000 + EDITS)
}

async fn objects_from_before_the_first_start_are_taken_up(env: &mut TestEnv) -> Result<()> {
    env.namespace.apply(app("early")).await?;
    env.start(&["app-service"]).await?;
    env.at_rest("early").await
}

async fn changes_while_the_host_is_stopped_are_taken_up(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    env.host.stop().await?;
    change_everything(env).await?;
    env.host.resume().await?;
    everything_is_right(env).await
}

/// As after a crash: the host cannot finish anything.
async fn changes_while_the_host_is_dead_are_taken_up(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    env.namespace.patch("AppService", "web", json!({"spec": {"image": "example.com/web:2"}})).await?;
    env.host.kill().await?;
    change_everything(env).await?;
    env.host.resume().await?;
    everything_is_right(env).await
}

/// Changes a spec, changes a child by hand, deletes another child and creates an object.
async fn change_everything(env: &TestEnv) -> Result<()> {
    env.namespace.patch("AppService", "web", json!({"spec": {"replicas": 4}})).await?;
    let drift = json!({"spec": {"replicas": 1}, "metadata": {"labels": {"app.kubernetes.io/name": "other"}}});
    env.namespace.patch("Deployment", "web", drift).await?;
    env.namespace.delete("Service", "web").await?;
    env.namespace.until_gone("Service", "web").await?;
    env.namespace.apply(app("new")).await?;
    Ok(())
}

async fn everything_is_right(env: &TestEnv) -> Result<()> {
    let right = |deployment: &Value| {
        deployment["spec"]["replicas"] == 4 && deployment["metadata"]["labels"]["app.kubernetes.io/name"] == "web"
    };
    env.namespace.until("Deployment", "web", "to be right", right).await?;
    env.namespace.until("Service", "web", "to be there", |_| true).await?;
    env.at_rest("web").await?;
    env.at_rest("new").await?;
    let writes = env.host_writes().await?;
    ensure!(!writes.iter().any(|write| write.starts_with("delete")), "something was deleted: {writes:#?}");
    Ok(())
}
