//! The guard against mass deletion: suspicious deletes are held back, reported, and carried out once somebody confirms them.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{artifacts, cluster::condition};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready, misbehaver},
};

/// The number of children of an object. If most of them would be deleted, somebody has to confirm it.
const MANY: usize = 12;

/// The number of objects that a new version would leave without children. More than three are suspicious.
const OBJECTS: usize = 5;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        most_children_of_an_unchanged_object_stay_until_somebody_confirms,
        a_change_of_the_object_may_delete_many_children,
        a_plugin_that_declares_it_may_delete_many_children,
        a_version_that_forgets_all_children_empties_nothing,
        a_host_that_starts_with_a_forgetful_version_empties_nothing,
        a_new_version_may_delete_the_children_of_few_objects,
    );
}

async fn most_children_of_an_unchanged_object_stay_until_somebody_confirms(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    start_with_many(env).await?;
    count(env, json!({"count": "2"})).await?;
    let held = env.stalled("Misbehaver", "many", "DeletesHeldBack").await?;
    ensure!(children(env).await? == MANY, "children were deleted");
    let event = env.event("Misbehaver", "many", "DeletesHeldBack").await?;
    let message = condition(&held, "Stalled")["message"].as_str().context("no message")?.to_owned();
    ensure!(event["message"] == message.as_str() && message.contains("10 of 12"), "{message}");

    // The deletes are confirmed exactly as the message says.
    annotate(env, "many", &named_version(env, "many").await?).await?;
    env.namespace.until("Misbehaver", "many", "to be ready", is_ready).await?;
    ensure!(children(env).await? == 2, "the others were not deleted");
    Ok(())
}

async fn a_change_of_the_object_may_delete_many_children(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut object = misbehaver("many", "several");
    object["spec"]["number"] = MANY.into();
    env.namespace.apply(object).await?;
    env.namespace.until("Misbehaver", "many", "to be ready", is_ready).await?;
    env.namespace.patch("Misbehaver", "many", json!({"spec": {"number": 1}})).await?;
    env.namespace.until("Misbehaver", "many", "to be ready again", is_ready).await?;
    ensure!(children(env).await? == 1, "the others were not deleted");
    Ok(())
}

async fn a_plugin_that_declares_it_may_delete_many_children(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    start_with_many(env).await?;
    count(env, json!({"count": "1", "onPurpose": "yes"})).await?;
    env.namespace.until_gone("ConfigMap", "many-1").await?;
    env.namespace.until("Misbehaver", "many", "to be ready", is_ready).await?;
    Ok(())
}

async fn a_version_that_forgets_all_children_empties_nothing(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let names = start_with_objects(env, OBJECTS).await?;
    env.host.install(&artifacts::guest("forgetful")?, "misbehaver.wasm")?;
    all_are_held_back(env, &names).await?;

    // With the correct version the objects recover by themselves.
    env.install("misbehaver")?;
    for name in &names {
        env.namespace.until("Misbehaver", name, "to be ready again", is_ready).await?;
    }
    ensure!(no_deletes(env).await?, "children were deleted: {:?}", env.host_writes().await?);
    Ok(())
}

async fn a_host_that_starts_with_a_forgetful_version_empties_nothing(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let names = start_with_objects(env, OBJECTS).await?;
    env.host.stop().await?;
    env.host.install(&artifacts::guest("forgetful")?, "misbehaver.wasm")?;
    env.host.resume().await?;
    all_are_held_back(env, &names).await?;
    for name in &names {
        annotate(env, name, &named_version(env, name).await?).await?;
        env.namespace.until_gone("ConfigMap", name).await?;
    }
    Ok(())
}

async fn a_new_version_may_delete_the_children_of_few_objects(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let names = start_with_objects(env, 3).await?;
    env.host.install(&artifacts::guest("forgetful")?, "misbehaver.wasm")?;
    for name in &names {
        env.namespace.until_gone("ConfigMap", name).await?;
    }
    Ok(())
}

/// Creates an object whose number of children is in a ConfigMap that its plugin looks up.
async fn start_with_many(env: &TestEnv) -> Result<()> {
    count(env, json!({"count": MANY.to_string()})).await?;
    let mut object = misbehaver("many", "counted");
    object["spec"]["name"] = "count".into();
    env.namespace.apply(object).await?;
    let complete = |object: &Value| is_ready(object) && object["status"].is_object();
    env.namespace.until("Misbehaver", "many", "to be ready", complete).await?;
    ensure!(children(env).await? == MANY, "not all children are there");
    Ok(())
}

/// Creates this many objects with one child each.
async fn start_with_objects(env: &TestEnv, count: usize) -> Result<Vec<String>> {
    let names: Vec<_> = (0..count).map(|number| format!("good-{number}")).collect();
    for name in &names {
        env.namespace.apply(misbehaver(name, "well")).await?;
    }
    for name in &names {
        env.namespace.until("Misbehaver", name, "to be ready", is_ready).await?;
    }
    Ok(names)
}

async fn all_are_held_back(env: &TestEnv, names: &[String]) -> Result<()> {
    for name in names {
        env.stalled("Misbehaver", name, "DeletesHeldBack").await?;
        env.event("Misbehaver", name, "DeletesHeldBack").await?;
        ensure!(env.namespace.get("ConfigMap", name).await?.is_some(), "the child of {name} was deleted");
    }
    Ok(())
}

/// The version in the confirmation that an object's condition asks for.
async fn named_version(env: &TestEnv, name: &str) -> Result<String> {
    let object = env.namespace.get("Misbehaver", name).await?.context("the object is gone")?;
    let message = condition(&object, "Stalled")["message"].as_str().context("no message")?.to_owned();
    let (_, confirmed) = message.split_once("pilothouse.dev/allow-removal=").context("no way out is named")?;
    Ok(confirmed.split(' ').next().context("no version is named")?.to_owned())
}

async fn annotate(env: &TestEnv, name: &str, version: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"pilothouse.dev/allow-removal": version}}});
    env.namespace.patch("Misbehaver", name, patch).await?;
    Ok(())
}

async fn count(env: &TestEnv, data: Value) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "count"}, "data": data});
    env.namespace.apply(map).await?;
    Ok(())
}

/// How many children `many` has.
async fn children(env: &TestEnv) -> Result<usize> {
    let all = env.namespace.list("ConfigMap").await?;
    let ours = |map: &&Value| map["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("many-"));
    Ok(all.iter().filter(ours).count())
}

async fn no_deletes(env: &TestEnv) -> Result<bool> {
    Ok(!env.host_writes().await?.iter().any(|write| write.starts_with("delete")))
}
