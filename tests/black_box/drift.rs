//! Drift: what somebody changes in a child is repaired, what somebody adds to it is theirs.

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    scene::Scene,
    suite::{Suite, tests},
};

/// The line of the log that says what is being done.
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
        what_others_add_is_left_alone,
    );
}

/// A5.
async fn replicas_are_repaired(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    is_repaired(scene, "/spec/replicas", |_| json!({"spec": {"replicas": 1}})).await
}

/// A6.
async fn the_image_is_repaired(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    is_repaired(scene, "/spec/template/spec/containers", |live| {
        with_container(live, |container| container["image"] = "example.com/evil:1".into())
    })
    .await
}

/// A7.
async fn a_label_is_repaired(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    is_repaired(scene, "/metadata/labels", |_| json!({"metadata": {"labels": {"app.kubernetes.io/name": "other"}}}))
        .await?;
    is_repaired(scene, "/metadata/labels", |_| json!({"metadata": {"labels": {"app.kubernetes.io/component": null}}}))
        .await
}

/// A8: the port is the key of its list, so the wrong port must go as well as the right one come back.
async fn the_container_port_is_repaired(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    is_repaired(scene, "/spec/template/spec/containers", |live| {
        with_container(live, |container| container["ports"][0]["containerPort"] = 9999.into())
    })
    .await
}

async fn the_service_is_repaired(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    the_service_comes_back_from(scene, json!({"selector": {"app.kubernetes.io/name": "other"}})).await
}

/// As with containers, the port is the key of its list.
async fn the_service_port_is_repaired(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    let port = json!({"name": "http", "port": 81, "targetPort": "http", "protocol": "TCP"});
    the_service_comes_back_from(scene, json!({"ports": [port]})).await
}

async fn the_service_comes_back_from(scene: &Scene, spec: Value) -> Result<()> {
    let before = scene.namespace.get("Service", "web").await?.context("no Service")?;
    let drifted = scene.namespace.patch("Service", "web", json!({"spec": spec})).await?;
    ensure!(drifted["spec"] != before["spec"], "the patch changed nothing");
    let repaired = |service: &Value| service["spec"] == before["spec"];
    scene.namespace.until("Service", "web", "to be repaired", repaired).await?;
    Ok(())
}

/// A label, an annotation and a field of another manager outlive a repair of what is ours beside them.
async fn what_others_add_is_left_alone(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    let additions = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"team": "blue"}, "annotations": {"example.com/note": "ours"}},
        "spec": {"revisionHistoryLimit": 3},
    });
    let other = PatchParams::apply("other");
    scene
        .reconciled_after("app-service", async || {
            scene.namespace.api("Deployment")?.patch("web", &other, &Patch::Apply(&additions)).await?;
            Ok(())
        })
        .await?;
    is_repaired(scene, "/spec/replicas", |_| json!({"spec": {"replicas": 1}})).await?;
    let deployment = scene.namespace.get("Deployment", "web").await?.context("no Deployment")?;
    ensure!(deployment["metadata"]["labels"]["team"] == "blue", "the label is gone: {deployment}");
    ensure!(
        deployment["metadata"]["annotations"]["example.com/note"] == "ours",
        "the annotation is gone: {deployment}"
    );
    ensure!(deployment["spec"]["revisionHistoryLimit"] == 3, "the field is gone: {deployment}");
    Ok(())
}

/// Changes the Deployment and waits until the part at `pointer` is as it was before, and the log says so.
async fn is_repaired(scene: &Scene, pointer: &str, patch: impl FnOnce(&Value) -> Value) -> Result<()> {
    let before = scene.namespace.get("Deployment", "web").await?.context("no Deployment")?;
    let told = scene.host.log().matches(LOGGED).count();
    let drifted = scene.namespace.patch("Deployment", "web", patch(&before)).await?;
    ensure!(drifted.pointer(pointer) != before.pointer(pointer), "the patch changed nothing at {pointer}");
    let repaired = |deployment: &Value| deployment.pointer(pointer) == before.pointer(pointer);
    scene.namespace.until("Deployment", "web", &format!("to be repaired at {pointer}"), repaired).await?;
    ensure!(scene.host.log().matches(LOGGED).count() > told, "the log does not say '{LOGGED}'");
    Ok(())
}

/// A patch with the only container changed. Merge patches replace lists, so it has all of the container.
fn with_container(live: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut containers = live["spec"]["template"]["spec"]["containers"].clone();
    change(&mut containers[0]);
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}
