//! Drift: fields that the plugin returned are repaired, additions of others are left alone.

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The log line of a repair.
const LOGGED: &str = "Drift detected. Updating Deployment.";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        replicas_are_repaired,
        the_image_is_repaired,
        a_label_is_repaired,
        the_container_port_is_repaired,
        the_service_is_repaired,
        the_service_port_is_repaired,
        additions_of_others_are_left_alone,
    );
}

async fn replicas_are_repaired(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    is_repaired(env, "/spec/replicas", |_| json!({"spec": {"replicas": 1}})).await
}

async fn the_image_is_repaired(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    is_repaired(env, "/spec/template/spec/containers", |live| {
        with_container(live, |container| container["image"] = "example.com/evil:1".into())
    })
    .await
}

async fn a_label_is_repaired(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    is_repaired(env, "/metadata/labels", |_| json!({"metadata": {"labels": {"app.kubernetes.io/name": "other"}}}))
        .await?;
    is_repaired(env, "/metadata/labels", |_| json!({"metadata": {"labels": {"app.kubernetes.io/component": null}}}))
        .await
}

/// The port is the key of its list, so the wrong port has to be removed and the right one added.
async fn the_container_port_is_repaired(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    is_repaired(env, "/spec/template/spec/containers", |live| {
        with_container(live, |container| container["ports"][0]["containerPort"] = 9999.into())
    })
    .await
}

async fn the_service_is_repaired(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    the_service_comes_back_from(env, json!({"selector": {"app.kubernetes.io/name": "other"}})).await
}

/// As in containers, the port is the key of its list.
async fn the_service_port_is_repaired(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let port = json!({"name": "http", "port": 81, "targetPort": "http", "protocol": "TCP"});
    the_service_comes_back_from(env, json!({"ports": [port]})).await
}

async fn the_service_comes_back_from(env: &TestEnv, spec: Value) -> Result<()> {
    let before = env.namespace.get("Service", "web").await?.context("no Service")?;
    let drifted = env.namespace.patch("Service", "web", json!({"spec": spec})).await?;
    ensure!(drifted["spec"] != before["spec"], "the patch changed nothing");
    let repaired = |service: &Value| service["spec"] == before["spec"];
    env.namespace.until("Service", "web", "to be repaired", repaired).await?;
    Ok(())
}

/// A label, an annotation and a field of another manager stay when a field of the plugin is repaired.
async fn additions_of_others_are_left_alone(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let additions = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"team": "blue"}, "annotations": {"example.com/note": "ours"}},
        "spec": {"revisionHistoryLimit": 3},
    });
    let other = PatchParams::apply("other");
    env.reconciled_after("app-service", async || {
        env.namespace.api("Deployment")?.patch("web", &other, &Patch::Apply(&additions)).await?;
        Ok(())
    })
    .await?;
    is_repaired(env, "/spec/replicas", |_| json!({"spec": {"replicas": 1}})).await?;
    let deployment = env.namespace.get("Deployment", "web").await?.context("no Deployment")?;
    ensure!(deployment["metadata"]["labels"]["team"] == "blue", "the label is gone: {deployment}");
    ensure!(
        deployment["metadata"]["annotations"]["example.com/note"] == "ours",
        "the annotation is gone: {deployment}"
    );
    ensure!(deployment["spec"]["revisionHistoryLimit"] == 3, "the field is gone: {deployment}");
    Ok(())
}

/// Changes the Deployment and waits until the part at `pointer` is as it was before, and the log says so.
async fn is_repaired(env: &TestEnv, pointer: &str, patch: impl FnOnce(&Value) -> Value) -> Result<()> {
    let before = env.namespace.get("Deployment", "web").await?.context("no Deployment")?;
    let reported = env.host.log().matches(LOGGED).count();
    let drifted = env.namespace.patch("Deployment", "web", patch(&before)).await?;
    ensure!(drifted.pointer(pointer) != before.pointer(pointer), "the patch changed nothing at {pointer}");
    let repaired = |deployment: &Value| deployment.pointer(pointer) == before.pointer(pointer);
    env.namespace.until("Deployment", "web", &format!("to be repaired at {pointer}"), repaired).await?;
    ensure!(env.host.log().matches(LOGGED).count() > reported, "the log does not say '{LOGGED}'");
    Ok(())
}

/// A patch that changes the only container. A merge patch replaces lists, so it has the whole container.
fn with_container(live: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut containers = live["spec"]["template"]["spec"]["containers"].clone();
    change(&mut containers[0]);
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}
