//! Children over time: those that are no longer returned go, unless they are to be kept; fields that cannot change and
//! fields that are left to others.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use crate::{
    scene::{Scene, is_ready, misbehaver},
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        children_that_are_no_longer_returned_are_deleted,
        children_are_deleted_by_the_next_host_too,
        kept_children_stay,
        a_kept_child_outlives_its_object_and_serves_the_next,
        children_that_are_not_spoken_of_are_left_as_they_are,
        an_immutable_field_is_told_or_the_child_is_made_anew,
        unmanaged_fields_belong_to_others,
        a_field_that_is_left_to_others_keeps_its_value,
        a_field_that_is_no_longer_returned_goes,
    );
}

async fn children_that_are_no_longer_returned_are_deleted(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    several(scene, 3, json!({})).await?;
    scene.namespace.until("ConfigMap", "many-2", "to be created", |_| true).await?;
    // Not ours: looks like a child, but belongs to nobody.
    let like = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "many-3"}});
    scene.namespace.apply(like).await?;
    several(scene, 1, json!({})).await?;
    scene.namespace.until_gone("ConfigMap", "many-1").await?;
    scene.namespace.until_gone("ConfigMap", "many-2").await?;
    for name in ["many-0", "many-3"] {
        ensure!(scene.namespace.get("ConfigMap", name).await?.is_some(), "{name} is gone");
    }
    Ok(())
}

/// Nothing is remembered in the process: the cluster itself says which children there are.
async fn children_are_deleted_by_the_next_host_too(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    several(scene, 3, json!({})).await?;
    scene.namespace.until("ConfigMap", "many-2", "to be created", |_| true).await?;
    scene.host.kill().await?;
    several(scene, 1, json!({})).await?;
    scene.host.resume().await?;
    scene.namespace.until_gone("ConfigMap", "many-1").await?;
    scene.namespace.until_gone("ConfigMap", "many-2").await?;
    ensure!(scene.namespace.get("ConfigMap", "many-0").await?.is_some(), "the wanted child is gone");
    Ok(())
}

/// They have no owner reference, so garbage collection leaves them too.
async fn kept_children_stay(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    several(scene, 2, json!({"keep": true})).await?;
    let kept = scene.namespace.until("ConfigMap", "many-1", "to be created", |_| true).await?;
    ensure!(kept["metadata"].get("ownerReferences").is_none(), "garbage collection would delete it: {kept}");
    several(scene, 1, json!({"keep": true})).await?;
    let observed = |object: &Value| {
        condition(object, "Ready")["status"] == "True"
            && object["status"]["observedGeneration"] == object["metadata"]["generation"]
    };
    scene.namespace.until("Misbehaver", "many", "to be reconciled", observed).await?;
    ensure!(scene.namespace.get("ConfigMap", "many-1").await?.is_some(), "it was deleted");
    Ok(())
}

/// H-16: as a volume does. Another object of the same name is given what is there.
async fn a_kept_child_outlives_its_object_and_serves_the_next(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    several(scene, 1, json!({"keep": true, "data": {"kept": "yes"}})).await?;
    let child = scene.namespace.until("ConfigMap", "many-0", "to be created", |_| true).await?;
    scene.namespace.delete("Misbehaver", "many").await?;
    scene.namespace.until_gone("Misbehaver", "many").await?;
    // Garbage collection goes on in order: what goes with a later object is gone after what would have gone with this one.
    scene.namespace.apply(misbehaver("later", "well")).await?;
    scene.namespace.until("ConfigMap", "later", "to be created", |_| true).await?;
    scene.namespace.delete("Misbehaver", "later").await?;
    scene.namespace.until_gone("ConfigMap", "later").await?;
    ensure!(scene.namespace.get("ConfigMap", "many-0").await?.is_some(), "it went with its object");
    several(scene, 1, json!({"keep": true, "data": {"kept": "again"}})).await?;
    let next = scene.namespace.until("Misbehaver", "many", "to be ready", is_ready).await?;
    let again = scene.namespace.get("ConfigMap", "many-0").await?.context("it is gone")?;
    ensure!(again["metadata"]["uid"] == child["metadata"]["uid"], "it was made anew: {again}");
    ensure!(again["data"]["kept"] == "again", "the next object has no say in it: {again}");
    ensure!(again["metadata"]["labels"]["pilothouse.dev/owner-uid"] == next["metadata"]["uid"], "{again}");
    Ok(())
}

/// An answer that says nothing of children is not the same as one that wants none.
async fn children_that_are_not_spoken_of_are_left_as_they_are(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    several(scene, 2, json!({"data": {"whose": "ours"}})).await?;
    scene.namespace.until("ConfigMap", "many-1", "to be created", |_| true).await?;
    scene.namespace.patch("Misbehaver", "many", json!({"spec": {"act": "leave"}})).await?;
    scene.namespace.until("Misbehaver", "many", "to be reconciled", is_ready).await?;
    scene
        .reconciled_after("misbehaver", async || {
            scene.namespace.patch("ConfigMap", "many-0", json!({"data": {"whose": "theirs"}})).await.map(drop)
        })
        .await?;
    let child = scene.namespace.get("ConfigMap", "many-0").await?.context("it was deleted")?;
    ensure!(child["data"]["whose"] == "theirs", "it was repaired: {child}");
    ensure!(scene.namespace.get("ConfigMap", "many-1").await?.is_some(), "it was deleted");
    scene.namespace.patch("Misbehaver", "many", json!({"spec": {"act": "none"}})).await?;
    scene.namespace.until_gone("ConfigMap", "many-0").await?;
    scene.namespace.until_gone("ConfigMap", "many-1").await
}

async fn an_immutable_field_is_told_or_the_child_is_made_anew(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    let mut hard = misbehaver("hard", "immutable");
    hard["spec"]["data"] = json!({"key": "one"});
    scene.namespace.apply(hard).await?;
    let before = scene.namespace.until("ConfigMap", "hard", "to be created", |_| true).await?;
    scene.namespace.patch("Misbehaver", "hard", json!({"spec": {"data": {"key": "two"}}})).await?;
    scene.stalled("Misbehaver", "hard", "ImmutableField").await?;
    let still = scene.namespace.get("ConfigMap", "hard").await?.context("it was deleted")?;
    ensure!(still["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {still}");
    scene.namespace.patch("Misbehaver", "hard", json!({"spec": {"recreate": true}})).await?;
    let anew = |child: &Value| child["data"]["key"] == "two" && child["metadata"]["uid"] != before["metadata"]["uid"];
    scene.namespace.until("ConfigMap", "hard", "to be made anew", anew).await?;
    Ok(())
}

async fn unmanaged_fields_belong_to_others(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    let mut shy = misbehaver("shy", "well");
    shy["spec"]["data"] = json!({"ours": "one", "theirs": "from the plugin"});
    shy["spec"]["unmanaged"] = json!(["/data/theirs"]);
    scene.namespace.apply(shy).await?;
    scene.namespace.until("ConfigMap", "shy", "to be created", |_| true).await?;
    scene.namespace.patch("ConfigMap", "shy", json!({"data": {"ours": "two", "theirs": "from others"}})).await?;
    let repaired = |child: &Value| child["data"]["ours"] == "one";
    let child = scene.namespace.until("ConfigMap", "shy", "to be repaired", repaired).await?;
    ensure!(child["data"]["theirs"] == "from others", "it was taken away: {child}");
    Ok(())
}

/// As a Deployment's replicas when it gets an autoscaler: dropping the field would set it to its default.
async fn a_field_that_is_left_to_others_keeps_its_value(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    let mut object = misbehaver("given", "well");
    object["spec"]["data"] = json!({"ours": "one", "replicas": "3"});
    scene.namespace.apply(object).await?;
    scene.namespace.until("ConfigMap", "given", "to be created", |_| true).await?;
    let leave = json!({"spec": {"data": {"ours": "two"}, "unmanaged": ["/data/replicas"]}});
    scene.namespace.patch("Misbehaver", "given", leave).await?;
    let updated = |child: &Value| child["data"]["ours"] == "two";
    let child = scene.namespace.until("ConfigMap", "given", "to be updated", updated).await?;
    ensure!(child["data"]["replicas"] == "3", "the value is lost: {child}");
    let managers = owners(&child, "replicas");
    ensure!(managers == ["pilothouse-handover"], "it belongs to {managers:?}");

    scene.namespace.patch("ConfigMap", "given", json!({"data": {"replicas": "7"}})).await?;
    scene.namespace.patch("Misbehaver", "given", json!({"spec": {"data": {"ours": "three"}}})).await?;
    let updated = |child: &Value| child["data"]["ours"] == "three";
    let child = scene.namespace.until("ConfigMap", "given", "to be updated again", updated).await?;
    ensure!(child["data"]["replicas"] == "7", "the autoscaler's value is lost: {child}");
    let managers = owners(&child, "replicas");
    ensure!(managers.iter().all(|manager| !manager.starts_with("pilothouse")), "it belongs to {managers:?}");
    Ok(())
}

/// The field managers that own a field of a ConfigMap's data.
fn owners(child: &Value, field: &str) -> Vec<String> {
    let entries = child["metadata"]["managedFields"].as_array().into_iter().flatten();
    let own = entries.filter(|entry| !entry["fieldsV1"]["f:data"][format!("f:{field}")].is_null());
    own.filter_map(|entry| entry["manager"].as_str().map(str::to_owned)).collect()
}

async fn a_field_that_is_no_longer_returned_goes(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    let mut object = misbehaver("less", "well");
    object["spec"]["data"] = json!({"kept": "yes", "dropped": "soon"});
    scene.namespace.apply(object.clone()).await?;
    scene.namespace.until("ConfigMap", "less", "to be created", |_| true).await?;
    scene.namespace.patch("ConfigMap", "less", json!({"data": {"added": "by others"}})).await?;
    object["spec"]["data"] = json!({"kept": "yes"});
    scene.namespace.apply(object).await?;
    let dropped = |child: &Value| child["data"].get("dropped").is_none();
    let child = scene.namespace.until("ConfigMap", "less", "to lose a field", dropped).await?;
    ensure!(child["data"] == json!({"kept": "yes", "added": "by others"}), "{child}");
    Ok(())
}

/// An object with so many children, named `many-0` and on.
async fn several(scene: &Scene, number: usize, more: Value) -> Result<()> {
    let mut object = misbehaver("many", "several");
    object["spec"]["number"] = number.into();
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    scene.namespace.apply(object).await?;
    Ok(())
}
