//! How far children are, as the host judges it: in the condition `Ready`, and as plugins are told. And what plugins are told of children
//! that were refused.

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, answering, config_map, deployment, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_object_is_ready_once_its_children_are,
        the_ready_of_the_plugin_counts_whatever_its_children_are,
        a_plugin_is_told_how_far_its_children_are,
        a_plugin_is_told_which_children_were_refused,
    );
}

async fn an_object_is_ready_once_its_children_are(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("web", json!({"children": [{"object": paused()}]}))).await?;
    let object = env.namespace.until("Scripted", "web", "to await its child", |object| {
        condition(object, "Ready")["reason"] == "ChildrenNotReady"
    });
    let message = condition(&object.await?, "Ready")["message"].clone();
    ensure!(message == "Deployment 'web': 0 of 1 replicas are there", "it does not say which and why: {message}");
    env.namespace.apply(answering("web", json!({"children": [{"object": running()}]}))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await.map(drop)
}

async fn the_ready_of_the_plugin_counts_whatever_its_children_are(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let ready = json!({"type": "Ready", "status": "True", "reason": "Enough"});
    let response = json!({"children": [{"object": paused()}], "conditions": [ready]});
    env.namespace.apply(answering("web", response)).await?;
    let object = env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    ensure!(condition(&object, "Ready")["reason"] == "Enough", "it is not what the plugin says: {object}");
    Ok(())
}

async fn a_plugin_is_told_how_far_its_children_are(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let response = |child: Value| {
        let status = json!({"phase": {"$readiness": "Deployment/web"}, "note": {"$readiness": "ConfigMap/web"}});
        json!({"children": [{"object": child}, {"object": config_map("web", json!({}))}], "status": status})
    };
    let told = |deployment: &'static str| {
        move |object: &Value| {
            let status = &object["status"];
            (&status["phase"], &status["note"]) == (&json!(deployment), &json!("ReadinessStatus::Current "))
        }
    };
    env.namespace.apply(answering("web", response(paused()))).await?;
    let in_progress = told("ReadinessStatus::InProgress LessReplicas");
    env.namespace.until("Scripted", "web", "to tell that it is in progress", in_progress).await?;
    env.namespace.apply(answering("web", response(running()))).await?;
    env.namespace.until("Scripted", "web", "to tell that it is current", told("ReadinessStatus::Current ")).await?;
    Ok(())
}

/// It is told at once, and no longer once the child is as it should be.
async fn a_plugin_is_told_which_children_were_refused(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let response = |port: u32| {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": port}]},
        });
        let children = json!([{"object": service}, {"object": config_map("web", json!({}))}]);
        json!({"children": children, "status": {"note": {"$refused": true}}})
    };
    env.namespace.apply(answering("web", response(70_000))).await?;
    let is_told = |object: &Value| object["status"]["note"] == "Service/web ChildInvalid";
    env.namespace.until("Scripted", "web", "to be told of the Service", is_told).await?;
    env.stalled("Scripted", "web", "ChildInvalid").await?;

    env.namespace.apply(answering("web", response(80))).await?;
    let object = env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    ensure!(object["status"]["note"] == "", "it is told of what is over: {object}");
    Ok(())
}

fn running() -> Value {
    let mut running = deployment("web", json!({"name": "main", "image": "example.com/main"}));
    running["spec"]["replicas"] = 1.into();
    running
}

/// A Deployment that does nothing yet.
fn paused() -> Value {
    let mut paused = running();
    paused["spec"]["paused"] = true.into();
    paused
}
