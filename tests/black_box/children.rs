//! The children of an `AppService`: their owner references and labels, their repair, and how they show in its status.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kube::api::{Patch, PatchParams};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests, timed},
    test_env::{TestEnv, answering, app, config_map, is_ready, misbehaver},
};

/// How soon the children of a new object must be there.
const PROMPT: Duration = Duration::from_secs(1);

/// The number of children of one object, the duration of each write, and the most writes at the same time.
const CHILDREN: usize = 40;
const SLOW: Duration = Duration::from_millis(50);
const AT_ONCE: usize = 8;

pub fn register(suite: &mut Suite) {
    timed!(suite, children_are_there_within_a_second);
    tests!(
        suite,
        an_object_gets_its_children_owned_and_labelled,
        the_status_counts_ready_replicas,
        a_deleted_child_is_created_again,
        an_orphan_of_ours_is_adopted,
        writes_of_many_children_are_made_a_few_at_once,
        the_schema_refuses_one_replica,
        more_replicas_reach_the_deployment,
        characters_that_yaml_does_not_have_reach_the_cluster,
    );
}

/// Measured from the creation of the object until both children exist.
async fn children_are_there_within_a_second(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    let created = Instant::now();
    env.namespace.apply(app("web")).await?;
    for kind in ["Deployment", "Service"] {
        env.namespace.until(kind, "web", "to be created", |_| true).await?;
    }
    let took = created.elapsed();
    eprintln!("the children were there {took:?} after their object");
    ensure!(took < PROMPT, "they took {took:?}");
    Ok(())
}

/// Both children have the object as their controller and the labels of the plugin.
async fn an_object_gets_its_children_owned_and_labelled(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    let app = env.namespace.apply(app("web")).await?;
    let uid = &app["metadata"]["uid"];
    for kind in ["Deployment", "Service"] {
        let child = env.namespace.until(kind, "web", "to be created", |_| true).await?;
        let owner = json!({
            "apiVersion": "apps.example.com/v1", "kind": "AppService", "name": "web", "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        });
        ensure!(child["metadata"]["ownerReferences"] == json!([owner]), "wrong owner of {child}");
        let labels = &child["metadata"]["labels"];
        ensure!(labels["pilothouse.dev/plugin"] == "app-service", "not marked with the plugin: {child}");
        ensure!(labels["pilothouse.dev/owner-uid"] == *uid, "not marked with the owner: {child}");
        ensure!(labels["app.kubernetes.io/managed-by"] == "pilothouse", "not marked as managed: {child}");
        ensure!(labels["app.kubernetes.io/name"] == "web", "the plugin's own label is gone: {child}");
    }
    let deployment = env.namespace.get("Deployment", "web").await?.context("no Deployment")?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    ensure!(deployment["spec"]["replicas"] == 3 && container["image"] == "example.com/web:1", "{deployment}");
    ensure!(container["ports"][0]["containerPort"] == 8080, "the default port is not there: {deployment}");
    Ok(())
}

/// The numbers of the Deployment appear in the status, and `Ready` follows them down and up again.
async fn the_status_counts_ready_replicas(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let pod = env.namespace.list("Pod").await?.first().cloned().context("no Pod")?;
    let name = pod["metadata"]["name"].as_str().context("a Pod without a name")?;
    set_ready(env, name, "False").await?;
    let app =
        env.namespace.until("AppService", "web", "to have 2/3 ready", |app| ready_replicas(app) == Some(2)).await?;
    ensure!(app["status"]["replicas"] == 3, "three Pods exist: {app}");
    ensure!(condition(&app, "Ready")["status"] == "False", "two of three are not enough: {app}");
    ensure!(condition(&app, "Ready")["message"] == "2 of 3 replicas ready", "{app}");
    ensure!(condition(&app, "Reconciling")["status"] == "True", "{app}");
    set_ready(env, name, "True").await?;
    env.at_rest("web").await?;
    let app = env.namespace.get("AppService", "web").await?.context("no AppService")?;
    ensure!(ready_replicas(&app) == Some(3), "{app}");
    for type_ in ["Ready", "Available"] {
        ensure!(condition(&app, type_)["status"] == "True", "{type_} is not True: {app}");
    }
    for type_ in ["Reconciling", "Stalled"] {
        ensure!(condition(&app, type_).is_null(), "{type_} is there: {app}");
    }
    Ok(())
}

fn ready_replicas(app: &Value) -> Option<i64> {
    app["status"]["readyReplicas"].as_i64()
}

/// Sets the readiness of a Pod, as the kubelet does after a readiness probe.
async fn set_ready(env: &TestEnv, pod: &str, status: &str) -> Result<()> {
    let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    env.namespace.api("Pod")?.patch_status(pod, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// A child that somebody deletes is created again, the Service as well as the Deployment.
async fn a_deleted_child_is_created_again(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    for kind in ["Deployment", "Service"] {
        let before = env.namespace.get(kind, "web").await?.context("no child")?;
        env.namespace.delete(kind, "web").await?;
        let is_new = |child: &Value| child["metadata"]["uid"] != before["metadata"]["uid"];
        let child = env.namespace.until(kind, "web", "to be created again", is_new).await?;
        ensure!(child["spec"]["selector"] == before["spec"]["selector"], "not the same child: {child}");
        ensure!(child["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"], "{child}");
    }
    env.at_rest("web").await
}

/// Somebody removes the owner reference of a child, which still has the host's labels.
async fn an_orphan_of_ours_is_adopted(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let before = env.namespace.get("Service", "web").await?.context("no child")?;
    env.namespace.patch("Service", "web", json!({"metadata": {"ownerReferences": null}})).await?;
    let owned = |child: &Value| child["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"];
    let after = env.namespace.until("Service", "web", "to have its owner again", owned).await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {after}");
    Ok(())
}

/// Every write takes long, so without a limit all of them would be in progress at the same time.
async fn writes_of_many_children_are_made_a_few_at_once(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    proxy.faults().delay(Method::PATCH, "configmaps", SLOW);
    env.start(&["misbehaver"]).await?;
    let mut many = misbehaver("many", "several");
    many["spec"]["number"] = CHILDREN.into();
    env.namespace.apply(many).await?;
    env.namespace.until("Misbehaver", "many", "to be ready", is_ready).await?;
    let most = proxy.writes().most_at_once();
    ensure!(most == AT_ONCE, "{most} of {CHILDREN} writes were under way at once, and not {AT_ONCE}");
    Ok(())
}

/// With one replica the application cannot be highly available, so the schema of the CRD refuses it.
async fn the_schema_refuses_one_replica(env: &mut TestEnv) -> Result<()> {
    let mut single = app("single");
    single["spec"]["replicas"] = 1.into();
    let Err(refusal) = env.namespace.apply(single).await else {
        anyhow::bail!("one replica is accepted");
    };
    let refusal = format!("{refusal:#}");
    ensure!(refusal.contains("spec.replicas") && refusal.contains("greater than or equal to 2"), "{refusal}");
    ensure!(env.namespace.get("AppService", "single").await?.is_none(), "it was created all the same");
    Ok(())
}

/// Scaling the object scales the Deployment.
async fn more_replicas_reach_the_deployment(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    let mut small = app("web");
    small["spec"]["replicas"] = 2.into();
    env.namespace.apply(small).await?;
    env.at_rest("web").await?;
    env.namespace.patch("AppService", "web", json!({"spec": {"replicas": 4}})).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 4;
    env.namespace.until("Deployment", "web", "to have 4 replicas", scaled).await?;
    env.at_rest("web").await?;
    // As `kubectl scale` and autoscalers do it.
    let api = env.namespace.api("AppService")?;
    let scale = json!({"spec": {"replicas": 3}});
    api.patch_scale("web", &PatchParams::default(), &Patch::Merge(scale)).await?;
    env.at_rest("web").await?;
    let scale = serde_json::to_value(api.get_scale("web").await?)?;
    ensure!(scale["spec"]["replicas"] == 3 && scale["status"]["replicas"] == 3, "{scale}");
    ensure!(scale["status"]["selector"].as_str().is_some_and(|selector| !selector.is_empty()), "{scale}");
    Ok(())
}

/// In a child and in the status. An apply is read as YAML, a merge patch is not. Beside what YAML takes for a line break it drops spaces.
async fn characters_that_yaml_does_not_have_reach_the_cluster(env: &mut TestEnv) -> Result<()> {
    const TEXT: &str = "\u{7f}a\u{85}b\u{90}c\u{ffff} \u{2028} d\u{2029} e";
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("object", json!({}))).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    let response = json!({"children": [{"object": config_map("child", json!({"text": TEXT}))}]});
    env.namespace.patch("Scripted", "object", json!({"spec": {"response": response}})).await?;
    env.namespace.until("ConfigMap", "child", "to have the text", |child| child["data"]["text"] == TEXT).await?;
    let response = json!({"verdict": {"retry": TEXT}});
    env.namespace.patch("Scripted", "object", json!({"spec": {"response": response}})).await?;
    let is_told = |object: &Value| condition(object, "Ready")["message"].as_str().is_some_and(|it| it.contains(TEXT));
    env.namespace.until("Scripted", "object", "to say the text", is_told).await.map(drop)
}
