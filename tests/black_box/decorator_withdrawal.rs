//! What decorators have made, when they do not work on an object any more: it is taken away where an object is not selected or the plugin is
//! uninstalled, whatever host notices, and stays where the plugin is merely not at work.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    decorators::{ANSWER, answer, decorate, label, start_with, until_labelled},
    deployed::Deployed,
    plugin_accounts::command,
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

/// Where the decorator notes what it has set.
const MARK: &str = "decorator.decorator.pilothouse.dev/keys";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_object_that_is_no_longer_selected_loses_what_it_got,
        a_decorator_that_is_uninstalled_takes_its_own_away_and_nothing_else,
        a_decorator_that_is_deleted_while_no_host_runs_leaves_nothing_behind,
        a_decorator_that_is_not_at_work_loses_nothing,
        a_mark_that_others_own_too_goes_once,
    );
}

async fn an_object_that_is_no_longer_selected_loses_what_it_got(env: &mut TestEnv) -> Result<()> {
    let _deployed = decorated(env).await?;
    label(env, json!({"decorated": null, "theirs": "kept"})).await?;
    let_go(env).await?;
    // And gets it again.
    label(env, json!({"decorated": "yes"})).await?;
    until_labelled(env, "ours", Some("one")).await?;
    env.namespace.until("ConfigMap", "ours", "to be there", |_| true).await.map(drop)
}

async fn a_decorator_that_is_uninstalled_takes_its_own_away_and_nothing_else(env: &mut TestEnv) -> Result<()> {
    let _deployed = decorated(env).await?;
    label(env, json!({"theirs": "kept"})).await?;
    let ended = command(env, &["uninstall", "decorator", "--yes"]).await?;
    ensure!(ended.errors.contains("nothing is left of what it has made"), "{ended:?}");
    ended.succeeded()?;
    let_go(env).await?;
    let record = env.namespace.get("ConfigMap", "pilothouse-kinds").await?.context("no record")?;
    ensure!(!record["data"].to_string().contains("decorator"), "it is forgotten: {record}");
    ensure!(env.namespace.list("Plugin").await?.is_empty(), "the Plugin is there");
    Ok(())
}

async fn a_decorator_that_is_deleted_while_no_host_runs_leaves_nothing_behind(env: &mut TestEnv) -> Result<()> {
    let deployed = decorated(env).await?;
    label(env, json!({"theirs": "kept"})).await?;
    env.host.kill().await?;
    env.namespace.delete("Plugin", "decorator").await?;
    start_another(env, &deployed).await?;
    let_go(env).await
}

/// It is suspended, and then cannot be loaded by a host that starts: its ConfigMaps are gone, and the host has kept nothing.
async fn a_decorator_that_is_not_at_work_loses_nothing(env: &mut TestEnv) -> Result<()> {
    let deployed = decorated(env).await?;
    let before = env.namespace.get("ConfigMap", "ours").await?.context("no child")?;
    env.namespace.patch("Plugin", "decorator", json!({"spec": {"suspended": true}})).await?;
    let suspended = |plugin: &serde_json::Value| plugin["status"]["version"].is_null();
    env.namespace.until("Plugin", "decorator", "to be suspended", suspended).await?;
    env.host.stop().await?;
    env.namespace.patch("Plugin", "decorator", json!({"spec": {"suspended": false, "digest": wrong_digest()}})).await?;
    start_another(env, &deployed).await?;
    let stalled = |plugin: &serde_json::Value| !is_ready(plugin) && plugin.to_string().contains("DigestMismatch");
    env.namespace.until("Plugin", "decorator", "not to be loaded", stalled).await?;
    let after = env.namespace.get("ConfigMap", "ours").await?.context("the child is gone")?;
    ensure!(after["metadata"] == before["metadata"], "{after}");
    until_labelled(env, "ours", Some("one")).await.map(drop)
}

/// A copy of the object that somebody applies has the mark, too. Before, the host gave up its own part of it again and again.
async fn a_mark_that_others_own_too_goes_once(env: &mut TestEnv) -> Result<()> {
    let _deployed = decorated(env).await?;
    let name = env.namespace.name.clone();
    let mut copy = env.namespace.get("Namespace", &name).await?.context("no Namespace")?;
    copy["metadata"] = json!({
        "name": name, "labels": copy["metadata"]["labels"], "annotations": copy["metadata"]["annotations"],
    });
    env.namespace.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": copy["metadata"]})).await?;
    label(env, json!({"decorated": null})).await?;
    env.namespace.until_gone("ConfigMap", "ours").await?;
    let is_unmarked = |object: &serde_json::Value| object["metadata"]["annotations"][MARK].is_null();
    let left = env.namespace.until("Namespace", &name, "to lose the mark", is_unmarked).await?;
    ensure!(left["metadata"]["labels"]["ours"] == "one", "what others own as well is theirs: {left}");
    // And nothing more is written.
    env.metrics_at_rest().await?;
    let ended = command(env, &["uninstall", "decorator", "--yes"]).await?;
    ended.succeeded().map(drop)
}

fn wrong_digest() -> String {
    format!("sha256:{}", "0".repeat(64))
}

/// A namespace that is decorated with a ConfigMap and a label.
async fn decorated(env: &mut TestEnv) -> Result<Deployed> {
    let deployed = start_with(env, &["decorator"]).await?;
    decorate(env, ANSWER, &answer(env, "ours", "one")).await?;
    until_labelled(env, "ours", Some("one")).await?;
    env.namespace.until("ConfigMap", "ours", "to be there", |_| true).await?;
    Ok(deployed)
}

/// Starts another host.
async fn start_another(env: &mut TestEnv, deployed: &Deployed) -> Result<()> {
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    env.host.ready().await
}

/// Waits until nothing is left of that, and what others have set is.
async fn let_go(env: &TestEnv) -> Result<()> {
    env.namespace.until_gone("ConfigMap", "ours").await?;
    let namespace = until_labelled(env, "ours", None).await?;
    ensure!(namespace["metadata"]["labels"]["theirs"] == "kept", "{namespace}");
    let mark = &namespace["metadata"]["annotations"][MARK];
    ensure!(mark.is_null(), "the mark is left: {namespace}");
    Ok(())
}
