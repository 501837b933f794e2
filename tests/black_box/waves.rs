//! Children that do not fit into one answer and come in waves: they are made in one reconcile, and are no sign of a plugin that does not
//! converge.

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, answering, config_map, is_ready},
};

/// How many children the object has. In waves of twelve, they take more rounds than a reconcile may have that get nowhere.
const CHILDREN: usize = 96;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        children_in_waves_are_all_made_in_one_reconcile,
        large_children_in_waves_are_all_made_in_one_reconcile,
        children_in_small_steps_are_told_of_and_made_at_last
    );
}

/// An object whose plugin returns so many new children in each answer.
fn in_waves_of(wave: usize) -> Value {
    waves(wave, CHILDREN, "")
}

/// An object with so many children, of which so many come in each answer. Each has this text.
fn waves(wave: usize, count: usize, text: &str) -> Value {
    let data = |number: usize| json!({"number": number.to_string(), "text": text});
    let children: Vec<_> =
        (0..count).map(|number| json!({"object": config_map(&format!("child-{number:02}"), data(number))})).collect();
    answering("web", json!({"wave": wave, "children": children}))
}

async fn children_in_waves_are_all_made_in_one_reconcile(env: &mut TestEnv) -> Result<()> {
    are_made_in_one_reconcile(env, in_waves_of(12), CHILDREN).await
}

/// Five of 28 KB fill a wave.
async fn large_children_in_waves_are_all_made_in_one_reconcile(env: &mut TestEnv) -> Result<()> {
    are_made_in_one_reconcile(env, waves(5, 30, &"x".repeat(28_000)), 30).await
}

/// Applies the object, and waits for all its children.
async fn are_made_in_one_reconcile(env: &mut TestEnv, object: Value, count: usize) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(object).await?;
    env.namespace.until("Scripted", "web", "to have all its children", is_ready).await?;
    let made = children(env).await?;
    ensure!(made == count, "{made} children");
    ensure!(!env.host.log().contains("NotConverging"), "a wave was taken for a step that leads nowhere");
    let writes = env.host_writes().await?;
    let statuses = writes.iter().filter(|write| write.contains("scripteds") && write.contains("status")).count();
    ensure!(statuses == 1, "{statuses} writes of the status: {writes:?}");
    Ok(())
}

/// Steps of less than ten children are those of a plugin that may never end: a reconcile takes five, says so, and the next one goes on.
async fn children_in_small_steps_are_told_of_and_made_at_last(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(in_waves_of(9)).await?;
    let told = |object: &Value| condition(object, "Ready")["reason"] == "NotConverging";
    let object = env.namespace.until("Scripted", "web", "to be told of", told).await?;
    ensure!(condition(&object, "Stalled").is_null(), "it gets on: {object}");
    env.namespace.until("Scripted", "web", "to have all its children", is_ready).await?;
    let made = children(env).await?;
    ensure!(made == CHILDREN, "{made} children");
    Ok(())
}

async fn children(env: &TestEnv) -> Result<usize> {
    let maps = env.namespace.list("ConfigMap").await?;
    Ok(maps
        .iter()
        .filter(|map| map["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("child-")))
        .count())
}
