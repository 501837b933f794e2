//! Children that the host only creates, or keeps as they are.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, answering, config_map, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_child_that_is_only_created_is_never_changed, a_child_that_is_kept_is_neither_changed_nor_created,);
}

/// What somebody changes stays, and what the plugin returns next counts for the next one only.
async fn a_child_that_is_only_created_is_never_changed(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    answer(env, "create", "first").await?;
    is(env, "first").await?;
    answer(env, "create", "second").await?;
    is(env, "first").await?;
    env.namespace.patch("ConfigMap", "it", json!({"data": {"value": "by hand"}})).await?;
    answer(env, "create", "third").await?;
    is(env, "by hand").await?;

    env.namespace.delete("ConfigMap", "it").await?;
    env.namespace.until("ConfigMap", "it", "to be created anew", |it| it["data"]["value"] == "third").await?;
    env.namespace.apply(answering("web", json!({"children": []}))).await?;
    env.namespace.until_gone("ConfigMap", "it").await
}

async fn a_child_that_is_kept_is_neither_changed_nor_created(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    answer(env, "keep", "first").await?;
    ensure!(env.namespace.get("ConfigMap", "it").await?.is_none(), "it was created");
    answer(env, "apply", "second").await?;
    is(env, "second").await?;
    answer(env, "keep", "third").await?;
    is(env, "second").await?;
    env.namespace.patch("ConfigMap", "it", json!({"data": {"value": "by hand"}})).await?;
    answer(env, "keep", "fourth").await?;
    is(env, "by hand").await?;
    answer(env, "apply", "fifth").await?;
    is(env, "fifth").await
}

/// The plugin returns one ConfigMap, to be handled like this, and it is done.
async fn answer(env: &TestEnv, handling: &str, value: &str) -> Result<()> {
    let child = json!({"object": config_map("it", json!({"value": value})), "handling": handling});
    let object = env.namespace.apply(answering("web", json!({"children": [child]}))).await?;
    let generation = object["metadata"]["generation"].clone();
    let is_done = |object: &Value| is_ready(object) && object["status"]["observedGeneration"] == generation;
    env.namespace.until("Scripted", "web", "to be done", is_done).await.map(drop)
}

async fn is(env: &TestEnv, value: &str) -> Result<()> {
    let it = env.namespace.get("ConfigMap", "it").await?.context("it does not exist")?;
    ensure!(it["data"]["value"] == value, "it is {} and not {value}", it["data"]);
    Ok(())
}
