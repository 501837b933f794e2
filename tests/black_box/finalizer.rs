//! Plugins that finalize: their objects are held until the plugin is done, and others' finalizers are left alone.

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::condition;
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
        finalizers_of_others_are_left_alone,
        plugins_that_do_not_finalize_hold_nothing,
    );
}

/// A28, A15: the finalizer is there before the children, and goes after the plugin is done.
async fn an_object_is_held_until_its_plugin_is_done(scene: &mut Scene) -> Result<()> {
    scene.start(&["farewell"]).await?;
    scene.namespace.apply(farewell(&[])).await?;
    scene.namespace.until("ConfigMap", "guest", "to be made", |_| true).await?;
    ensure!(finalizers(scene).await? == json!([OURS]), "the object is not held");
    scene.namespace.delete("Farewell", "guest").await?;
    let waits = |object: &Value| condition(object, "Ready")["reason"] == "HeldBack";
    scene.namespace.until("Farewell", "guest", "to say what it waits for", waits).await?;
    scene.host.stop().await?;
    scene.host.resume().await?;
    scene.host.ready().await?;
    scene.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    scene.namespace.until_gone("Farewell", "guest").await?;
    scene.namespace.until_gone("ConfigMap", "guest").await
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
