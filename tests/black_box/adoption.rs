//! Adoption of objects without a controller: orphans of a deleted object are adopted automatically, others only if an annotation
//! of the owner allows it. An object with another controller is never adopted.

use anyhow::{Context, Result, ensure};
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

/// The annotation that allows an object to adopt existing objects.
const ADOPT: &str = "pilothouse.dev/adopt";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        orphans_of_an_object_are_adopted_by_the_next_of_its_name,
        orphans_are_not_adopted_by_an_object_of_another_name_that_wants_other_children,
        the_conflict_names_the_way_to_adopt,
        only_children_that_the_annotation_names_are_adopted,
        a_child_of_another_controller_is_not_adopted,
        a_kept_child_of_another_object_is_not_adopted,
        an_object_that_is_being_deleted_is_not_adopted,
    );
}

/// The object is deleted with `kubectl delete --cascade=orphan` and applied again.
async fn orphans_of_an_object_are_adopted_by_the_next_of_its_name(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let first = env.namespace.apply(scripted("web", children("first"))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    let mut orphans = Vec::new();
    orphan(env).await?;
    for (kind, name) in [("ConfigMap", "web"), ("Secret", "web")] {
        orphans.push(env.namespace.get(kind, name).await?.context("the orphan is gone")?);
    }

    let second = env.namespace.apply(scripted("web", children("second"))).await?;
    ensure!(second["metadata"]["uid"] != first["metadata"]["uid"], "it is the first object still");
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    for orphan in orphans {
        is_adopted(env, &orphan, &second).await?;
    }
    let child = env.namespace.get("ConfigMap", "web").await?.context("no child")?;
    ensure!(child["data"]["text"] == "second", "it is not as the plugin wants it: {child}");
    Ok(())
}

/// The other object does not want these orphans, so they stay as they are.
async fn orphans_are_not_adopted_by_an_object_of_another_name_that_wants_other_children(
    env: &mut TestEnv,
) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(scripted("web", children("first"))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    orphan(env).await?;
    let before = env.namespace.get("ConfigMap", "web").await?.context("the orphan is gone")?;
    env.namespace.apply(scripted("other", returning([config_map("other", json!({}))]))).await?;
    env.namespace.until("Scripted", "other", "to be ready", is_ready).await?;
    let after = env.namespace.get("ConfigMap", "web").await?.context("the orphan was deleted")?;
    ensure!(after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"], "it was changed: {after}");
    Ok(())
}

async fn the_conflict_names_the_way_to_adopt(env: &mut TestEnv) -> Result<()> {
    let theirs = env.namespace.apply(config_map("web", json!({"text": "theirs"}))).await?;
    env.start(&["scripted"]).await?;
    let spec = returning([config_map("web", json!({"text": "ours"}))]);
    env.namespace.apply(scripted("web", spec)).await?;
    let object = env.stalled("Scripted", "web", "NameConflict").await?;
    let message = condition(&object, "Stalled")["message"].as_str().unwrap_or_default();
    for words in ["ConfigMap 'web'", "kubectl annotate", "pilothouse.dev/adopt=ConfigMap/web"] {
        ensure!(message.contains(words), "it does not say '{words}': {message}");
    }
    is_untouched(env, &theirs).await?;

    annotate(env, "ConfigMap/web").await?;
    let object = env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    is_adopted(env, &theirs, &object).await?;
    let child = env.namespace.get("ConfigMap", "web").await?.context("no child")?;
    ensure!(child["data"]["text"] == "ours", "it is not as the plugin wants it: {child}");

    // The adopted object is a child like any other.
    env.namespace.patch("ConfigMap", "web", json!({"data": {"text": "by hand"}})).await?;
    env.namespace.until("ConfigMap", "web", "to be repaired", |child| child["data"]["text"] == "ours").await?;
    env.namespace.patch("Scripted", "web", json!({"spec": {"response": {"children": []}}})).await?;
    env.namespace.until_gone("ConfigMap", "web").await
}

async fn only_children_that_the_annotation_names_are_adopted(env: &mut TestEnv) -> Result<()> {
    let theirs = [
        env.namespace.apply(config_map("first", json!({"text": "theirs"}))).await?,
        env.namespace.apply(config_map("second", json!({"text": "theirs"}))).await?,
    ];
    let secret = env.namespace.apply(secret("first", "dGhlaXJz")).await?;
    env.start(&["scripted"]).await?;
    let wanted = ["first", "second"].map(|name| config_map(name, json!({"text": "ours"})));
    let mut object = scripted("web", returning(wanted.into_iter().chain([self::secret("first", "b3Vycw==")])));
    object["metadata"]["annotations"] = json!({ADOPT: "ConfigMap/first"});
    env.namespace.apply(object).await?;
    let object = env.stalled("Scripted", "web", "NameConflict").await?;
    is_adopted(env, &theirs[0], &object).await?;
    is_untouched(env, &theirs[1]).await?;
    is_untouched(env, &secret).await?;

    annotate(env, "ConfigMap/first,ConfigMap/second,Secret/first").await?;
    let object = env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    for adopted in theirs.iter().chain([&secret]) {
        is_adopted(env, adopted, &object).await?;
    }
    Ok(())
}

/// Even if the annotation names it.
async fn a_child_of_another_controller_is_not_adopted(env: &mut TestEnv) -> Result<()> {
    let owner = env.namespace.apply(config_map("owner", json!({}))).await?;
    let mut theirs = config_map("web", json!({"text": "theirs"}));
    theirs["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], "controller": true,
    }]);
    let theirs = env.namespace.apply(theirs).await?;
    env.start(&["scripted"]).await?;
    let mut object = scripted("web", returning([config_map("web", json!({"text": "ours"}))]));
    object["metadata"]["annotations"] = json!({ADOPT: "ConfigMap/web"});
    env.namespace.apply(object).await?;
    let object = env.stalled("Scripted", "web", "NameConflict").await?;
    let message = condition(&object, "Stalled")["message"].as_str().unwrap_or_default();
    ensure!(message.contains("is controlled by ConfigMap 'owner'"), "it does not say whose it is: {message}");
    ensure!(!message.contains(ADOPT), "it names a way that leads nowhere: {message}");
    env.reconciled_after("scripted", async || env.touch("Scripted", "web", "again").await).await?;
    is_untouched(env, &theirs).await
}

/// A spec with two children.
fn children(text: &str) -> Value {
    returning([config_map("web", json!({"text": text})), secret("web", "b3Vycw==")])
}

fn secret(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"text": value}})
}

/// Deletes the object `web` as `kubectl delete --cascade=orphan` does, and waits until its children are without an owner.
async fn orphan(env: &TestEnv) -> Result<()> {
    let parameters = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    env.namespace.api("Scripted")?.delete("web", &parameters).await?;
    env.namespace.until_gone("Scripted", "web").await?;
    for kind in ["ConfigMap", "Secret"] {
        let is_orphan = |child: &Value| child["metadata"].get("ownerReferences").is_none();
        env.namespace.until(kind, "web", "to be without an owner", is_orphan).await?;
    }
    Ok(())
}

async fn annotate(env: &TestEnv, value: &str) -> Result<()> {
    env.namespace.patch("Scripted", "web", json!({"metadata": {"annotations": {ADOPT: value}}})).await?;
    Ok(())
}

/// Waits until an object of somebody else has become a child of `owner`. It must still be the same object.
async fn is_adopted(env: &TestEnv, before: &Value, owner: &Value) -> Result<()> {
    let (kind, name) = kind_and_name(before)?;
    eventually(PATIENCE, &format!("{kind} '{name}' to be adopted"), async || {
        let now = env.namespace.get(kind, name).await?.context("it is gone")?;
        let reference = &now["metadata"]["ownerReferences"][0];
        let adopted = reference["uid"] == owner["metadata"]["uid"] && reference["controller"] == true;
        let labelled = now["metadata"]["labels"]["pilothouse.dev/owner-uid"] == owner["metadata"]["uid"];
        let same = now["metadata"]["uid"] == before["metadata"]["uid"];
        Ok(Look::of(adopted && labelled && same, now))
    })
    .await
}

async fn is_untouched(env: &TestEnv, before: &Value) -> Result<()> {
    let (kind, name) = kind_and_name(before)?;
    let now = env.namespace.get(kind, name).await?.context("it was deleted")?;
    ensure!(now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"], "it was changed: {now}");
    Ok(())
}

fn kind_and_name(object: &Value) -> Result<(&str, &str)> {
    let kind = object["kind"].as_str().context("no kind")?;
    Ok((kind, object["metadata"]["name"].as_str().context("no name")?))
}

/// A kept child has no owner reference, but its object still exists. If a second object adopted it, both would change it back and
/// forth.
async fn a_kept_child_of_another_object_is_not_adopted(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let keeping = |text: &str| {
        let mut spec = returning([config_map("shared", json!({"text": text}))]);
        spec["response"]["children"][0]["onRemoval"] = "keep".into();
        spec
    };
    env.namespace.apply(scripted("first", keeping("first"))).await?;
    env.namespace.until("Scripted", "first", "to be ready", is_ready).await?;
    let mut second = scripted("second", keeping("second"));
    second["metadata"]["annotations"][ADOPT] = "ConfigMap/shared".into();
    env.namespace.apply(second).await?;
    let stalled = env.stalled("Scripted", "second", "NameConflict").await?;
    let message = condition(&stalled, "Stalled")["message"].to_string();
    ensure!(message.contains("belongs to Scripted 'first'"), "{message}");
    let child = env.namespace.get("ConfigMap", "shared").await?.context("the child is gone")?;
    ensure!(child["data"]["text"] == "first", "it was changed: {child}");
    Ok(())
}

/// What would be written to it would be lost. Once it is gone, the child is created.
async fn an_object_that_is_being_deleted_is_not_adopted(env: &mut TestEnv) -> Result<()> {
    let mut theirs = config_map("web", json!({"text": "theirs"}));
    theirs["metadata"]["finalizers"] = json!(["example.com/hold"]);
    env.namespace.apply(theirs).await?;
    env.namespace.delete("ConfigMap", "web").await?;
    let is_terminating = |child: &Value| child["metadata"].get("deletionTimestamp").is_some();
    let theirs = env.namespace.until("ConfigMap", "web", "to be terminating", is_terminating).await?;
    env.start(&["scripted"]).await?;
    let mut object = scripted("web", returning([config_map("web", json!({"text": "ours"}))]));
    object["metadata"]["annotations"] = json!({ADOPT: "ConfigMap/web"});
    env.namespace.apply(object).await?;
    let waits = |object: &Value| condition(object, "Ready")["reason"] == "AwaitingDeletion";
    env.namespace.until("Scripted", "web", "to wait until it is gone", waits).await?;
    is_untouched(env, &theirs).await?;
    env.namespace.patch("ConfigMap", "web", json!({"metadata": {"finalizers": null}})).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    let child = env.namespace.get("ConfigMap", "web").await?.context("no child")?;
    ensure!(child["data"]["text"] == "ours" && child["metadata"]["uid"] != theirs["metadata"]["uid"], "{child}");
    Ok(())
}
