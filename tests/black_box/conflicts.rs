//! Name conflicts: the host never touches an object of somebody else, and reports the conflict on the object that needs the name.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, app},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_child_of_another_owner_is_not_taken, a_child_without_an_owner_is_not_taken);
}

/// A Deployment of another controller stays as it is.
async fn a_child_of_another_owner_is_not_taken(env: &mut TestEnv) -> Result<()> {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
    let config = env.namespace.apply(config).await?;
    let mut taken = deployment();
    taken["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": config["metadata"]["uid"], "controller": true,
    }]);
    is_left_alone(env, taken, "ConfigMap 'owner'").await
}

/// A Deployment without an owner is not taken either.
async fn a_child_without_an_owner_is_not_taken(env: &mut TestEnv) -> Result<()> {
    is_left_alone(env, deployment(), "somebody else").await
}

async fn is_left_alone(env: &mut TestEnv, taken: Value, owner: &str) -> Result<()> {
    env.namespace.apply(taken).await?;
    let whole = |deployment: &Value| deployment["status"]["readyReplicas"] == 1;
    env.namespace.until("Deployment", "web", "to be rolled out", whole).await?;
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;

    let stalled = env.stalled("AppService", "web", "NameConflict").await?;
    ensure!(stalled["status"]["conditions"].to_string().contains(owner), "it does not say whose it is: {stalled}");
    let event = env.event("AppService", "web", "NameConflict").await?;
    ensure!(event["type"] == "Warning", "{event}");
    env.reconcile_often("web", 3).await?;
    let deployment = env.namespace.get("Deployment", "web").await?.context("the Deployment is gone")?;
    ensure!(deployment["spec"]["replicas"] == 1, "its spec was changed: {deployment}");
    ensure!(deployment["metadata"]["labels"] == json!({"mine": "yes"}), "its labels were changed: {deployment}");
    ensure!(deployment["metadata"]["generation"] == 1, "its spec was changed: {deployment}");
    let managers = deployment["metadata"]["managedFields"].to_string();
    ensure!(!managers.contains("pilothouse"), "the host wrote to it: {managers}");

    // Once the name is free, the next reconcile creates the child.
    env.namespace.delete("Deployment", "web").await?;
    env.touch("AppService", "web", "now").await?;
    let is_ours = |found: &Value| found["metadata"]["uid"] != deployment["metadata"]["uid"];
    env.namespace.until("Deployment", "web", "to be the object's own", is_ours).await?;
    env.at_rest("web").await
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"mine": "yes"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"mine": "yes"}},
            "template": {
                "metadata": {"labels": {"mine": "yes"}},
                "spec": {"containers": [{"name": "mine", "image": "example.com/mine:1"}]},
            },
        },
    })
}
