//! Changes of the returned children: those that are no longer returned are deleted unless they are to be kept. Also immutable
//! fields and unmanaged fields.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready, misbehaver},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        children_that_are_no_longer_returned_are_deleted,
        children_are_deleted_by_the_next_host_too,
        kept_children_stay,
        a_kept_child_outlives_its_object_and_serves_the_next,
        an_answer_without_children_leaves_them_as_they_are,
        an_immutable_field_is_reported_or_the_child_is_recreated,
        unmanaged_fields_belong_to_others,
        a_field_that_is_left_to_others_keeps_its_value,
        a_field_that_is_no_longer_returned_goes,
    );
}

async fn children_that_are_no_longer_returned_are_deleted(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    several(env, 3, json!({})).await?;
    env.namespace.until("ConfigMap", "many-2", "to be created", |_| true).await?;
    // Has a name like the children, but is nobody's child.
    let like = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "many-3"}});
    env.namespace.apply(like).await?;
    several(env, 1, json!({})).await?;
    env.namespace.until_gone("ConfigMap", "many-1").await?;
    env.namespace.until_gone("ConfigMap", "many-2").await?;
    for name in ["many-0", "many-3"] {
        ensure!(env.namespace.get("ConfigMap", name).await?.is_some(), "{name} is gone");
    }
    Ok(())
}

/// The host needs no memory of earlier children: it finds them in the cluster.
async fn children_are_deleted_by_the_next_host_too(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    several(env, 3, json!({})).await?;
    env.namespace.until("ConfigMap", "many-2", "to be created", |_| true).await?;
    env.host.kill().await?;
    several(env, 1, json!({})).await?;
    env.host.resume().await?;
    env.namespace.until_gone("ConfigMap", "many-1").await?;
    env.namespace.until_gone("ConfigMap", "many-2").await?;
    ensure!(env.namespace.get("ConfigMap", "many-0").await?.is_some(), "the wanted child is gone");
    Ok(())
}

/// Kept children have no owner reference, so garbage collection does not delete them either.
async fn kept_children_stay(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    several(env, 2, json!({"keep": true})).await?;
    let kept = env.namespace.until("ConfigMap", "many-1", "to be created", |_| true).await?;
    ensure!(kept["metadata"].get("ownerReferences").is_none(), "garbage collection would delete it: {kept}");
    several(env, 1, json!({"keep": true})).await?;
    let observed = |object: &Value| {
        condition(object, "Ready")["status"] == "True"
            && object["status"]["observedGeneration"] == object["metadata"]["generation"]
    };
    env.namespace.until("Misbehaver", "many", "to be reconciled", observed).await?;
    ensure!(env.namespace.get("ConfigMap", "many-1").await?.is_some(), "it was deleted");
    Ok(())
}

/// Like a volume. Another object of the same name takes the child over.
async fn a_kept_child_outlives_its_object_and_serves_the_next(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    several(env, 1, json!({"keep": true, "data": {"kept": "yes"}})).await?;
    let child = env.namespace.until("ConfigMap", "many-0", "to be created", |_| true).await?;
    env.namespace.delete("Misbehaver", "many").await?;
    env.namespace.until_gone("Misbehaver", "many").await?;
    // Garbage collection works in order: once the child of a later object is gone, it would have deleted this one, too.
    env.namespace.apply(misbehaver("later", "well")).await?;
    env.namespace.until("ConfigMap", "later", "to be created", |_| true).await?;
    env.namespace.delete("Misbehaver", "later").await?;
    env.namespace.until_gone("ConfigMap", "later").await?;
    ensure!(env.namespace.get("ConfigMap", "many-0").await?.is_some(), "it went with its object");
    several(env, 1, json!({"keep": true, "data": {"kept": "again"}})).await?;
    let next = env.namespace.until("Misbehaver", "many", "to be ready", is_ready).await?;
    let again = env.namespace.get("ConfigMap", "many-0").await?.context("it is gone")?;
    ensure!(again["metadata"]["uid"] == child["metadata"]["uid"], "it was made anew: {again}");
    ensure!(again["data"]["kept"] == "again", "the next object has no say in it: {again}");
    ensure!(again["metadata"]["labels"]["pilothouse.dev/owner-uid"] == next["metadata"]["uid"], "{again}");
    Ok(())
}

/// An answer without a list of children differs from one with an empty list.
async fn an_answer_without_children_leaves_them_as_they_are(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    several(env, 2, json!({"data": {"whose": "ours"}})).await?;
    env.namespace.until("ConfigMap", "many-1", "to be created", |_| true).await?;
    env.namespace.patch("Misbehaver", "many", json!({"spec": {"act": "leave"}})).await?;
    env.namespace.until("Misbehaver", "many", "to be reconciled", is_ready).await?;
    env.reconciled_after("misbehaver", async || {
        env.namespace.patch("ConfigMap", "many-0", json!({"data": {"whose": "theirs"}})).await.map(drop)
    })
    .await?;
    let child = env.namespace.get("ConfigMap", "many-0").await?.context("it was deleted")?;
    ensure!(child["data"]["whose"] == "theirs", "it was repaired: {child}");
    ensure!(env.namespace.get("ConfigMap", "many-1").await?.is_some(), "it was deleted");
    env.namespace.patch("Misbehaver", "many", json!({"spec": {"act": "none"}})).await?;
    env.namespace.until_gone("ConfigMap", "many-0").await?;
    env.namespace.until_gone("ConfigMap", "many-1").await
}

async fn an_immutable_field_is_reported_or_the_child_is_recreated(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut hard = misbehaver("hard", "immutable");
    hard["spec"]["data"] = json!({"key": "one"});
    env.namespace.apply(hard).await?;
    let before = env.namespace.until("ConfigMap", "hard", "to be created", |_| true).await?;
    env.namespace.patch("Misbehaver", "hard", json!({"spec": {"data": {"key": "two"}}})).await?;
    env.stalled("Misbehaver", "hard", "ImmutableField").await?;
    let still = env.namespace.get("ConfigMap", "hard").await?.context("it was deleted")?;
    ensure!(still["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {still}");
    env.namespace.patch("Misbehaver", "hard", json!({"spec": {"recreate": true}})).await?;
    let anew = |child: &Value| child["data"]["key"] == "two" && child["metadata"]["uid"] != before["metadata"]["uid"];
    env.namespace.until("ConfigMap", "hard", "to be made anew", anew).await?;
    Ok(())
}

async fn unmanaged_fields_belong_to_others(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut shy = misbehaver("shy", "well");
    shy["spec"]["data"] = json!({"ours": "one", "theirs": "from the plugin"});
    shy["spec"]["unmanaged"] = json!(["/data/theirs"]);
    env.namespace.apply(shy).await?;
    env.namespace.until("ConfigMap", "shy", "to be created", |_| true).await?;
    env.namespace.patch("ConfigMap", "shy", json!({"data": {"ours": "two", "theirs": "from others"}})).await?;
    let repaired = |child: &Value| child["data"]["ours"] == "one";
    let child = env.namespace.until("ConfigMap", "shy", "to be repaired", repaired).await?;
    ensure!(child["data"]["theirs"] == "from others", "it was taken away: {child}");
    Ok(())
}

/// Like the replicas of a Deployment that gets an autoscaler: if the field were dropped, its default would apply.
async fn a_field_that_is_left_to_others_keeps_its_value(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut object = misbehaver("given", "well");
    object["spec"]["data"] = json!({"ours": "one", "replicas": "3"});
    env.namespace.apply(object).await?;
    env.namespace.until("ConfigMap", "given", "to be created", |_| true).await?;
    let leave = json!({"spec": {"data": {"ours": "two"}, "unmanaged": ["/data/replicas"]}});
    env.namespace.patch("Misbehaver", "given", leave).await?;
    let updated = |child: &Value| child["data"]["ours"] == "two";
    let child = env.namespace.until("ConfigMap", "given", "to be updated", updated).await?;
    ensure!(child["data"]["replicas"] == "3", "the value is lost: {child}");
    let managers = owners(&child, "replicas");
    ensure!(managers == ["pilothouse-handover"], "it belongs to {managers:?}");

    env.namespace.patch("ConfigMap", "given", json!({"data": {"replicas": "7"}})).await?;
    env.namespace.patch("Misbehaver", "given", json!({"spec": {"data": {"ours": "three"}}})).await?;
    let updated = |child: &Value| child["data"]["ours"] == "three";
    let child = env.namespace.until("ConfigMap", "given", "to be updated again", updated).await?;
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

async fn a_field_that_is_no_longer_returned_goes(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut object = misbehaver("less", "well");
    object["spec"]["data"] = json!({"kept": "yes", "dropped": "soon"});
    env.namespace.apply(object.clone()).await?;
    env.namespace.until("ConfigMap", "less", "to be created", |_| true).await?;
    env.namespace.patch("ConfigMap", "less", json!({"data": {"added": "by others"}})).await?;
    object["spec"]["data"] = json!({"kept": "yes"});
    env.namespace.apply(object).await?;
    let dropped = |child: &Value| child["data"].get("dropped").is_none();
    let child = env.namespace.until("ConfigMap", "less", "to lose a field", dropped).await?;
    ensure!(child["data"] == json!({"kept": "yes", "added": "by others"}), "{child}");
    Ok(())
}

/// Applies an object with this many children, named from `many-0` on.
async fn several(env: &TestEnv, number: usize, more: Value) -> Result<()> {
    let mut object = misbehaver("many", "several");
    object["spec"]["number"] = number.into();
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    env.namespace.apply(object).await?;
    Ok(())
}
