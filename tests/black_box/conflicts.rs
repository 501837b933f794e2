//! Names that are taken: an object of somebody else is never touched, and the one who wants its name is told.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    scene::{Scene, app},
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_child_of_another_owner_is_not_taken, a_child_without_an_owner_is_not_taken);
}

/// Another controller's Deployment stays that controller's.
async fn a_child_of_another_owner_is_not_taken(scene: &mut Scene) -> Result<()> {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
    let config = scene.namespace.apply(config).await?;
    let mut taken = deployment();
    taken["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": config["metadata"]["uid"], "controller": true,
    }]);
    is_left_alone(scene, taken, "ConfigMap 'owner'").await
}

/// Nobody's Deployment is not ours either.
async fn a_child_without_an_owner_is_not_taken(scene: &mut Scene) -> Result<()> {
    is_left_alone(scene, deployment(), "somebody else").await
}

async fn is_left_alone(scene: &mut Scene, taken: Value, owner: &str) -> Result<()> {
    scene.namespace.apply(taken).await?;
    let whole = |deployment: &Value| deployment["status"]["readyReplicas"] == 1;
    scene.namespace.until("Deployment", "web", "to be rolled out", whole).await?;
    scene.start(&["app-service"]).await?;
    scene.namespace.apply(app("web")).await?;

    let stalled = scene.stalled("AppService", "web", "NameConflict").await?;
    ensure!(stalled["status"]["conditions"].to_string().contains(owner), "it does not say whose it is: {stalled}");
    let event = scene.event("AppService", "web", "NameConflict").await?;
    ensure!(event["type"] == "Warning", "{event}");
    scene.reconcile_often("web", 3).await?;
    let deployment = scene.namespace.get("Deployment", "web").await?.context("the Deployment is gone")?;
    ensure!(deployment["spec"]["replicas"] == 1, "its spec was changed: {deployment}");
    ensure!(deployment["metadata"]["labels"] == json!({"mine": "yes"}), "its labels were changed: {deployment}");
    ensure!(deployment["metadata"]["generation"] == 1, "its spec was changed: {deployment}");
    let managers = deployment["metadata"]["managedFields"].to_string();
    ensure!(!managers.contains("pilothouse"), "the host wrote to it: {managers}");

    // The name becomes free: the next reconcile takes it.
    scene.namespace.delete("Deployment", "web").await?;
    scene.touch("AppService", "web", "now").await?;
    let is_ours = |found: &Value| found["metadata"]["uid"] != deployment["metadata"]["uid"];
    scene.namespace.until("Deployment", "web", "to be the object's own", is_ours).await?;
    scene.at_rest("web").await
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
