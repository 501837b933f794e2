//! Plugins that finalize: their objects keep the finalizer until the plugin is done, and finalizers of others are left alone.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::{Request, header::CONTENT_TYPE};
use kube::api::{DeleteParams, PropagationPolicy};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready, returning, scripted},
};

/// The finalizer of the plugin `farewell`.
const OURS: &str = "pilothouse.dev/farewell";

/// The finalizer of another controller.
const THEIRS: &str = "example.com/theirs";

/// The time limit for the deletion of a namespace, whose controller retries with growing delays.
const NAMESPACE_PATIENCE: Duration = Duration::from_secs(90);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_object_keeps_its_finalizer_until_its_plugin_is_done,
        an_error_keeps_the_finalizer,
        children_are_deleted_in_the_plugins_order,
        children_are_created_again_after_garbage_collection,
        released_children_are_left_alone,
        finalizers_of_others_are_left_alone,
        plugins_that_do_not_finalize_add_no_finalizer,
        the_finalizer_of_an_object_without_a_plugin_can_be_removed_by_hand,
        a_cleanup_that_cannot_succeed_does_not_block_a_terminating_namespace,
        a_refused_cleanup_outside_of_a_terminating_namespace_keeps_the_finalizer,
    );
}

/// The finalizer is added before the children are created, and removed after the plugin has finalized.
async fn an_object_keeps_its_finalizer_until_its_plugin_is_done(env: &mut TestEnv) -> Result<()> {
    env.start(&["farewell"]).await?;
    env.namespace.apply(farewell(&[])).await?;
    env.namespace.until("ConfigMap", "guest", "to be made", |_| true).await?;
    ensure!(finalizers(env).await? == json!([OURS]), "the object is not held");
    env.namespace.delete("Farewell", "guest").await?;
    env.namespace.until("Farewell", "guest", "to say what it waits for", held_back).await?;
    // As long as the plugin returns a child, the child is created again after a deletion.
    let before = env.namespace.get("ConfigMap", "guest").await?.context("the child is gone")?;
    env.namespace.delete("ConfigMap", "guest").await?;
    let is_new = |child: &Value| child["metadata"]["uid"] != before["metadata"]["uid"];
    env.namespace.until("ConfigMap", "guest", "to be made again", is_new).await?;
    env.namespace.until("Farewell", "guest", "to say what it waits for", held_back).await?;
    env.host.stop().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    env.namespace.until_gone("Farewell", "guest").await?;
    env.namespace.until_gone("ConfigMap", "guest").await
}

/// The plugin is called again until it succeeds.
async fn an_error_keeps_the_finalizer(env: &mut TestEnv) -> Result<()> {
    env.start(&["farewell"]).await?;
    let mut guest = farewell(&[]);
    guest["spec"]["fail"] = true.into();
    env.namespace.apply(guest).await?;
    env.namespace.until("ConfigMap", "guest", "to be made", |_| true).await?;
    env.namespace.delete("Farewell", "guest").await?;
    env.stalled("Farewell", "guest", "PluginTrapped").await?;
    let calls = env.calls("farewell").await?;
    eventually(PATIENCE, "two more tries", async || {
        let now = env.calls("farewell").await?;
        Ok(Look::of(now >= calls + 2.0, now))
    })
    .await?;
    ensure!(finalizers(env).await? == json!([OURS]), "the object is not held");
    ensure!(env.namespace.get("ConfigMap", "guest").await?.is_some(), "its child went before it was finalized");
    env.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    env.namespace.until_gone("Farewell", "guest").await
}

/// The deletion takes several calls. The object waits until its child is gone.
async fn children_are_deleted_in_the_plugins_order(env: &mut TestEnv) -> Result<()> {
    env.start(&["farewell"]).await?;
    env.namespace.apply(farewell(&[])).await?;
    env.namespace.until("ConfigMap", "guest", "to be made", |_| true).await?;
    env.namespace.patch("ConfigMap", "guest", json!({"metadata": {"finalizers": [THEIRS]}})).await?;
    env.namespace.delete("Farewell", "guest").await?;
    env.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    let going = |child: &Value| child["metadata"]["deletionTimestamp"].is_string();
    env.namespace.until("ConfigMap", "guest", "to be on its way out", going).await?;
    let waits = |object: &Value| condition(object, "Ready")["reason"] == "TearingDown";
    env.namespace.until("Farewell", "guest", "to wait for its child", waits).await?;
    ensure!(finalizers(env).await? == json!([OURS]), "the object is not held");
    env.namespace.patch("ConfigMap", "guest", json!({"metadata": {"finalizers": null}})).await?;
    env.namespace.until_gone("ConfigMap", "guest").await?;
    env.namespace.until_gone("Farewell", "guest").await
}

/// The object is deleted as by `kubectl delete --cascade=foreground`. A child that the plugin still returns is created again only
/// after garbage collection has finished. Before, it would be deleted again and again.
async fn children_are_created_again_after_garbage_collection(env: &mut TestEnv) -> Result<()> {
    env.start(&["farewell"]).await?;
    let first = create_with_child(env).await?;
    delete(env, PropagationPolicy::Foreground).await?;
    let is_new = |child: &Value| child["metadata"]["uid"] != first["metadata"]["uid"];
    env.namespace.until("ConfigMap", "guest", "to be made again", is_new).await?;
    env.namespace.until("Farewell", "guest", "to wait as the plugin says", held_back).await?;
    let created = env.host_writes().await?.iter().filter(|write| *write == "patch configmaps/ guest 201").count();
    ensure!(created == 2, "the child was made {created} times");
    env.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    env.namespace.until_gone("ConfigMap", "guest").await?;
    env.namespace.until_gone("Farewell", "guest").await
}

/// The object is deleted as by `kubectl delete --cascade=orphan`. The released child stays as it is, whether the plugin still
/// returns it or not.
async fn released_children_are_left_alone(env: &mut TestEnv) -> Result<()> {
    env.start(&["farewell"]).await?;
    let first = create_with_child(env).await?;
    delete(env, PropagationPolicy::Orphan).await?;
    let orphan = |child: &Value| child["metadata"].get("ownerReferences").is_none();
    env.namespace.until("ConfigMap", "guest", "to be without an owner", orphan).await?;
    env.namespace.until("Farewell", "guest", "to wait as the plugin says", held_back).await?;
    env.reconciled_after("farewell", async || env.touch("Farewell", "guest", "again").await).await?;
    env.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    env.namespace.until_gone("Farewell", "guest").await?;
    let child = env.namespace.get("ConfigMap", "guest").await?.context("the orphan was deleted")?;
    ensure!(child["metadata"]["uid"] == first["metadata"]["uid"] && orphan(&child), "it was taken back: {child}");
    Ok(())
}

/// Creates an object and waits for its child.
async fn create_with_child(env: &TestEnv) -> Result<Value> {
    env.namespace.apply(farewell(&[])).await?;
    env.namespace.until("ConfigMap", "guest", "to be made", |_| true).await
}

async fn delete(env: &TestEnv, policy: PropagationPolicy) -> Result<()> {
    let parameters = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    env.namespace.api("Farewell")?.delete("guest", &parameters).await?;
    Ok(())
}

fn held_back(object: &Value) -> bool {
    condition(object, "Ready")["reason"] == "HeldBack"
}

async fn finalizers_of_others_are_left_alone(env: &mut TestEnv) -> Result<()> {
    env.start(&["farewell"]).await?;
    env.namespace.apply(farewell(&[THEIRS])).await?;
    let both = |object: &Value| object["metadata"]["finalizers"] == json!([THEIRS, OURS]);
    env.namespace.until("Farewell", "guest", "to have both finalizers", both).await?;
    env.namespace.patch("Farewell", "guest", json!({"spec": {"letGo": true}})).await?;
    env.namespace.delete("Farewell", "guest").await?;
    let theirs = |object: &Value| object["metadata"]["finalizers"] == json!([THEIRS]);
    env.namespace.until("Farewell", "guest", "to be left to the other finalizer", theirs).await?;
    env.namespace.patch("Farewell", "guest", json!({"metadata": {"finalizers": null}})).await?;
    env.namespace.until_gone("Farewell", "guest").await
}

async fn plugins_that_do_not_finalize_add_no_finalizer(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let app = env.namespace.get("AppService", "web").await?.unwrap_or_default();
    ensure!(app["metadata"].get("finalizers").is_none(), "{app}");
    Ok(())
}

/// As `docs/conditions.md` describes it: no plugin finalizes the object, so the finalizer is removed by its index in the list.
async fn the_finalizer_of_an_object_without_a_plugin_can_be_removed_by_hand(env: &mut TestEnv) -> Result<()> {
    env.start(&["farewell"]).await?;
    env.namespace.apply(farewell(&[THEIRS])).await?;
    env.namespace.until("ConfigMap", "guest", "to be made", |_| true).await?;
    env.host.remove("farewell.wasm")?;
    env.host.logged("plugin removed").await?;
    env.namespace.delete("Farewell", "guest").await?;
    let held = env.namespace.get("Farewell", "guest").await?.context("nothing held it")?;
    ensure!(held["metadata"]["deletionTimestamp"].is_string(), "it is not being deleted: {held}");
    let held = held["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let index = held.iter().position(|finalizer| finalizer == OURS).context("the finalizer is gone")?;

    remove_finalizer(env, index).await?;
    ensure!(finalizers(env).await? == json!([THEIRS]), "another finalizer was taken off");
    remove_finalizer(env, 0).await?;
    env.namespace.until_gone("Farewell", "guest").await?;
    env.namespace.until_gone("ConfigMap", "guest").await
}

/// Nothing can be created in a terminating namespace, so the plugin would wait for its child for ever.
async fn a_cleanup_that_cannot_succeed_does_not_block_a_terminating_namespace(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted-finalizing"]).await?;
    env.namespace.apply(scripted("web", cleaning_up(config_map("cleanup", json!({}))))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.namespace.delete("Namespace", &env.namespace.name).await?;
    env.namespace.until_gone("Scripted", "web").await?;
    env.namespace.until_gone_within(NAMESPACE_PATIENCE, "Namespace", &env.namespace.name).await?;
    let labels = [("plugin", "scripted-finalizing"), ("reason", "CleanupAbandoned")];
    let abandoned = env.metrics_at_rest().await?.sum("pilothouse_faults_total", &labels);
    ensure!(abandoned >= 1.0, "it is not counted");
    let log = env.host.log();
    let line = log.lines().find(|line| line.contains("CleanupAbandoned")).context("it is not in the log")?;
    ensure!(line.contains("WARN") && line.contains("ConfigMap 'cleanup'"), "{line}");
    Ok(())
}

/// Only a terminating namespace is a reason to give up.
async fn a_refused_cleanup_outside_of_a_terminating_namespace_keeps_the_finalizer(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted-finalizing"]).await?;
    let refused = config_map("cleanup", json!({"not a key": "x"}));
    env.namespace.apply(scripted("web", cleaning_up(refused))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.namespace.delete("Scripted", "web").await?;
    env.stalled("Scripted", "web", "ChildInvalid").await?;
    let calls = env.calls("scripted-finalizing").await?;
    env.touch("Scripted", "web", "again").await?;
    eventually(PATIENCE, "another try", async || {
        let now = env.calls("scripted-finalizing").await?;
        Ok(Look::of(now > calls, now))
    })
    .await?;
    let held = env.namespace.get("Scripted", "web").await?.context("it was let go")?;
    ensure!(held["metadata"]["finalizers"] == json!(["pilothouse.dev/scripted-finalizing"]), "{held}");
    env.namespace.patch("Scripted", "web", json!({"spec": {"finalize": null}})).await?;
    env.namespace.until_gone("Scripted", "web").await
}

/// A spec whose plugin returns no child at first, but one while the object is being deleted, and waits for it.
fn cleaning_up(child: Value) -> Value {
    let mut spec = returning([]);
    let wait = json!({"reason": "CleaningUp", "message": "waits for its cleanup", "seconds": 300});
    spec["finalize"] = json!({"verdict": {"wait": wait}, "children": [{"object": child}]});
    spec
}

/// Removes a finalizer as `kubectl patch --type=json -p='[{"op": "remove", "path": "/metadata/finalizers/INDEX"}]'` does.
async fn remove_finalizer(env: &TestEnv, index: usize) -> Result<()> {
    let path = format!("/apis/test.pilothouse.dev/v1/namespaces/{}/farewells/guest", env.namespace.name);
    let patch = json!([{"op": "remove", "path": format!("/metadata/finalizers/{index}")}]).to_string();
    let request = Request::patch(path).header(CONTENT_TYPE, "application/json-patch+json").body(patch.into_bytes())?;
    env.namespace.client().request::<Value>(request).await?;
    Ok(())
}

fn farewell(finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "Farewell",
        "metadata": {"name": "guest", "finalizers": finalizers}, "spec": {"letGo": false},
    })
}

async fn finalizers(env: &TestEnv) -> Result<Value> {
    let object = env.namespace.get("Farewell", "guest").await?.unwrap_or_default();
    Ok(object["metadata"]["finalizers"].clone())
}
