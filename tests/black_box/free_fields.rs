//! Fields that are free-form by their schema: `null` is a value there and is kept.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, answering, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, nulls_in_free_fields_are_kept, a_changed_null_is_repaired);
}

/// The API server keeps the nulls that somebody else applies, so it keeps those of the host, and no further write follows.
async fn nulls_in_free_fields_are_kept(env: &mut TestEnv) -> Result<()> {
    let theirs = env.namespace.apply(child("theirs")).await?;
    ensure!(theirs["spec"]["free"] == free(), "the API server does not keep it: {theirs}");
    start(env).await?;
    let live = env.namespace.get("ScriptedChild", "child").await?.context("the child is gone")?;
    ensure!(live["spec"]["free"] == free(), "a part is lost: {live}");
    ensure!(live["spec"].get("text").is_none(), "a null that says nothing was applied: {live}");
    let before = env.host_writes().await?;
    for turn in 0..3 {
        env.reconciled_after("scripted", async || env.touch("ScriptedChild", "child", turn).await).await?;
    }
    env.metrics_at_rest().await?;
    let after = env.host_writes().await?;
    ensure!(after.len() == before.len(), "the host wrote {:#?}", &after[before.len()..]);
    Ok(())
}

async fn a_changed_null_is_repaired(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let changed = json!({"spec": {"free": {"proxy": "evil"}}});
    let changed = env.namespace.patch("ScriptedChild", "child", changed).await?;
    ensure!(changed["spec"]["free"]["proxy"] == "evil", "{changed}");
    let repaired = |child: &Value| child["spec"]["free"] == free();
    env.namespace.until("ScriptedChild", "child", "to be repaired", repaired).await?;
    Ok(())
}

/// Starts the host with an object that has the child, and waits until there is nothing left to do.
async fn start(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let mut child = child("child");
    // By its schema this field is a string, so the null is dropped.
    child["spec"]["text"] = Value::Null;
    env.namespace.apply(answering("object", json!({"children": [{"object": child}]}))).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    Ok(())
}

fn child(name: &str) -> Value {
    json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "ScriptedChild", "metadata": {"name": name},
        "spec": {"free": free()},
    })
}

/// Like the values of a Helm release, where `null` removes a default.
fn free() -> Value {
    json!({"proxy": null, "nested": {"limits": null, "port": 80}, "list": [{"key": null}]})
}
