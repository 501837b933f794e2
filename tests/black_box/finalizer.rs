//! Plugins that finalize: their objects are held until the plugin is done, and others' finalizers are left alone.

use anyhow::{Context, Result, ensure};
use axum::http::{Request, header::CONTENT_TYPE};
use kube::api::{DeleteParams, PropagationPolicy};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    scene::Scene,
    suite::{Suite, tests},
};

/// The finalizer of the plugin `farewell`.
const OURS: &str = "pilothouse.dev/farewell";

/// Somebody else's.
const THEIRS: &str = "example.com/theirs";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_object_is_held_until_its_plugin_is_done,
        an_error_keeps_the_finalizer,
        children_go_in_the_plugins_order,
        children_come_again_after_garbage_collection,
        released_children_are_left_alone,
        finalizers_of_others_are_left_alone,
        plugins_that_do_not_finalize_hold_nothing,
        an_object_whose_plugin_is_gone_can_be_let_go,
    );
}

/// A28, A15: the finalizer is there before the children, and goes after the plugin is done.
async fn an_object_is_held_until_its_plugin_is_done(scene: &mut Scene) -> Result<()> {
    scene.start(&["farewell"]).await?;
    scene.namespace.apply(farewell(&[])).await?;
    scene.namespace.until("ConfigMap", "guest", "to be made", |_| true).await?;
    ensure!(finalizers(scene).await? == json!([OURS]), "the object is not held");
    scene.namespace.delete("Farewell", "guest").await?;
    scene.namespace.until("Farewell", "guest", "to say what it waits for", held_back).await?;
    // Its children are looked after as long as the plugin wants them.
    let before = scene.namespace.get("ConfigMap", "guest").await?.context("the child is gone")?;
    scene.namespace.delete("ConfigMap", "guest").await?;
    let is_new = |child: &Value| child["metadata"]["uid"] != before["metadata"]["uid"];
    scene.namespace.until("ConfigMap", "guest", "to be made again", is_new).await?;
    scene.namespace.until("Farewell", "guest", "to say what it waits for", held_back).await?;
    scene.host.stop().await?;
    scene.host.resume().await?;
    scene.host.ready().await?;
    scene.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    scene.namespace.until_gone("Farewell", "guest").await?;
    scene.namespace.until_gone("ConfigMap", "guest").await
}

/// A28: it is asked again until it succeeds.
async fn an_error_keeps_the_finalizer(scene: &mut Scene) -> Result<()> {
    scene.start(&["farewell"]).await?;
    let mut guest = farewell(&[]);
    guest["spec"]["fail"] = true.into();
    scene.namespace.apply(guest).await?;
    scene.namespace.until("ConfigMap", "guest", "to be made", |_| true).await?;
    scene.namespace.delete("Farewell", "guest").await?;
    scene.stalled("Farewell", "guest", "PluginTrapped").await?;
    let calls = scene.calls("farewell").await?;
    eventually(PATIENCE, "two more tries", async || {
        let now = scene.calls("farewell").await?;
        Ok(Look::of(now >= calls + 2.0, now))
    })
    .await?;
    ensure!(finalizers(scene).await? == json!([OURS]), "the object is not held");
    ensure!(scene.namespace.get("ConfigMap", "guest").await?.is_some(), "its child went before it was finalized");
    scene.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    scene.namespace.until_gone("Farewell", "guest").await
}

/// H-10: over several calls. The child takes its time, and its object waits for it.
async fn children_go_in_the_plugins_order(scene: &mut Scene) -> Result<()> {
    scene.start(&["farewell"]).await?;
    scene.namespace.apply(farewell(&[])).await?;
    scene.namespace.until("ConfigMap", "guest", "to be made", |_| true).await?;
    scene.namespace.patch("ConfigMap", "guest", json!({"metadata": {"finalizers": [THEIRS]}})).await?;
    scene.namespace.delete("Farewell", "guest").await?;
    scene.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    let going = |child: &Value| child["metadata"]["deletionTimestamp"].is_string();
    scene.namespace.until("ConfigMap", "guest", "to be on its way out", going).await?;
    let waits = |object: &Value| condition(object, "Ready")["reason"] == "TearingDown";
    scene.namespace.until("Farewell", "guest", "to wait for its child", waits).await?;
    ensure!(finalizers(scene).await? == json!([OURS]), "the object is not held");
    scene.namespace.patch("ConfigMap", "guest", json!({"metadata": {"finalizers": null}})).await?;
    scene.namespace.until_gone("ConfigMap", "guest").await?;
    scene.namespace.until_gone("Farewell", "guest").await
}

/// As `kubectl delete --cascade=foreground` does it: the child that the plugin still wants comes again once garbage
/// collection is through, and not before, for it would be deleted again and again.
async fn children_come_again_after_garbage_collection(scene: &mut Scene) -> Result<()> {
    scene.start(&["farewell"]).await?;
    let first = made(scene).await?;
    delete(scene, PropagationPolicy::Foreground).await?;
    let is_new = |child: &Value| child["metadata"]["uid"] != first["metadata"]["uid"];
    scene.namespace.until("ConfigMap", "guest", "to be made again", is_new).await?;
    scene.namespace.until("Farewell", "guest", "to wait as the plugin says", held_back).await?;
    let created = scene.host_writes().await?.iter().filter(|write| *write == "patch configmaps/ guest 201").count();
    ensure!(created == 2, "the child was made {created} times");
    scene.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    scene.namespace.until_gone("ConfigMap", "guest").await?;
    scene.namespace.until_gone("Farewell", "guest").await
}

/// As `kubectl delete --cascade=orphan` does it: whatever the plugin still wants, and although it removes its child at the end.
async fn released_children_are_left_alone(scene: &mut Scene) -> Result<()> {
    scene.start(&["farewell"]).await?;
    let first = made(scene).await?;
    delete(scene, PropagationPolicy::Orphan).await?;
    let orphan = |child: &Value| child["metadata"].get("ownerReferences").is_none();
    scene.namespace.until("ConfigMap", "guest", "to be without an owner", orphan).await?;
    scene.namespace.until("Farewell", "guest", "to wait as the plugin says", held_back).await?;
    scene.reconciled_after("farewell", async || scene.touch("Farewell", "guest", "again").await).await?;
    scene.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    scene.namespace.until_gone("Farewell", "guest").await?;
    let child = scene.namespace.get("ConfigMap", "guest").await?.context("the orphan was deleted")?;
    ensure!(child["metadata"]["uid"] == first["metadata"]["uid"] && orphan(&child), "it was taken back: {child}");
    Ok(())
}

/// An object with its child.
async fn made(scene: &Scene) -> Result<Value> {
    scene.namespace.apply(farewell(&[])).await?;
    scene.namespace.until("ConfigMap", "guest", "to be made", |_| true).await
}

async fn delete(scene: &Scene, policy: PropagationPolicy) -> Result<()> {
    let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    scene.namespace.api("Farewell")?.delete("guest", &parameters).await?;
    Ok(())
}

fn held_back(object: &Value) -> bool {
    condition(object, "Ready")["reason"] == "HeldBack"
}

async fn finalizers_of_others_are_left_alone(scene: &mut Scene) -> Result<()> {
    scene.start(&["farewell"]).await?;
    scene.namespace.apply(farewell(&[THEIRS])).await?;
    let both = |object: &Value| object["metadata"]["finalizers"] == json!([THEIRS, OURS]);
    scene.namespace.until("Farewell", "guest", "to have both finalizers", both).await?;
    scene.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    scene.namespace.delete("Farewell", "guest").await?;
    let theirs = |object: &Value| object["metadata"]["finalizers"] == json!([THEIRS]);
    scene.namespace.until("Farewell", "guest", "to be left to the other finalizer", theirs).await?;
    scene.namespace.patch("Farewell", "guest", json!({"metadata": {"finalizers": null}})).await?;
    scene.namespace.until_gone("Farewell", "guest").await
}

async fn plugins_that_do_not_finalize_hold_nothing(scene: &mut Scene) -> Result<()> {
    scene.start_with_web().await?;
    let app = scene.namespace.get("AppService", "web").await?.unwrap_or_default();
    ensure!(app["metadata"].get("finalizers").is_none(), "{app}");
    Ok(())
}

/// The way that `docs/conditions.md` tells: nobody finalizes any more, and the finalizer is taken off by its place in the list.
async fn an_object_whose_plugin_is_gone_can_be_let_go(scene: &mut Scene) -> Result<()> {
    scene.start(&["farewell"]).await?;
    scene.namespace.apply(farewell(&[THEIRS])).await?;
    scene.namespace.until("ConfigMap", "guest", "to be made", |_| true).await?;
    std::fs::remove_file(scene.host.plugins().join("farewell.wasm"))?;
    scene.host.logged("plugin removed").await?;
    scene.namespace.delete("Farewell", "guest").await?;
    let held = scene.namespace.get("Farewell", "guest").await?.context("nothing held it")?;
    ensure!(held["metadata"]["deletionTimestamp"].is_string(), "it is not being deleted: {held}");
    let held = held["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let index = held.iter().position(|finalizer| finalizer == OURS).context("the finalizer is gone")?;

    take_off(scene, index).await?;
    ensure!(finalizers(scene).await? == json!([THEIRS]), "another finalizer was taken off");
    take_off(scene, 0).await?;
    scene.namespace.until_gone("Farewell", "guest").await?;
    scene.namespace.until_gone("ConfigMap", "guest").await
}

/// `kubectl patch --type=json -p='[{"op": "remove", "path": "/metadata/finalizers/INDEX"}]'`.
async fn take_off(scene: &Scene, index: usize) -> Result<()> {
    let path = format!("/apis/test.pilothouse.dev/v1/namespaces/{}/farewells/guest", scene.namespace.name);
    let patch = json!([{"op": "remove", "path": format!("/metadata/finalizers/{index}")}]).to_string();
    let request = Request::patch(path).header(CONTENT_TYPE, "application/json-patch+json").body(patch.into_bytes())?;
    scene.namespace.client().request::<Value>(request).await?;
    Ok(())
}

fn farewell(finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "Farewell",
        "metadata": {"name": "guest", "finalizers": finalizers}, "spec": {"letGo": false},
    })
}

async fn finalizers(scene: &Scene) -> Result<Value> {
    let object = scene.namespace.get("Farewell", "guest").await?.unwrap_or_default();
    Ok(object["metadata"]["finalizers"].clone())
}
