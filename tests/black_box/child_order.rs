//! Children that wait for others: they are written once those are as their specs say, in whatever order changes come.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::cluster::{condition, revision};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, answering, config_map, deployment, is_ready, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_child_is_created_once_the_one_before_is_ready,
        a_change_of_a_child_waits_for_the_one_before,
        fifty_children_in_order_are_created_one_after_the_other,
        fifty_children_in_order_go_one_after_the_other_without_their_plugin,
        a_child_that_waits_for_a_later_one_is_refused,
        a_child_waits_for_one_that_is_kept_and_not_there,
        children_in_order_go_in_the_reverse_order_with_their_object,
        children_in_order_go_in_the_reverse_order_when_no_longer_returned,
        children_in_order_go_though_the_plugin_has_no_answer,
        children_in_order_go_though_the_plugin_is_gone,
        children_in_order_go_by_a_host_that_has_never_seen_the_plugin,
        a_plugin_that_comes_back_goes_on_with_its_objects,
    );
}

async fn a_child_is_created_once_the_one_before_is_ready(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("web", ordered(unschedulable(), "1"))).await?;
    let waiting = |object: &Value| condition(object, "Ready")["reason"] == "AwaitingChildren";
    let object = env.namespace.until("Scripted", "web", "to wait", waiting).await?;
    let message = condition(&object, "Ready")["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("ConfigMap 'second' waits for Deployment 'first': 0 of 1 replicas are"),
        "it does not say what waits for what: {message}"
    );
    ensure!(env.namespace.get("ConfigMap", "second").await?.is_none(), "it was created too early");

    env.namespace.apply(answering("web", ordered(schedulable(), "1"))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    ensure!(env.namespace.get("ConfigMap", "second").await?.is_some(), "ready without the second child");
    Ok(())
}

async fn a_change_of_a_child_waits_for_the_one_before(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("web", ordered(schedulable(), "1"))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.namespace.apply(answering("web", ordered(unschedulable(), "2"))).await?;
    let waiting = |object: &Value| condition(object, "Ready")["reason"] == "AwaitingChildren";
    env.namespace.until("Scripted", "web", "to wait", waiting).await?;
    let second = env.namespace.get("ConfigMap", "second").await?.context("it is gone")?;
    ensure!(second["data"]["value"] == "1", "it was changed too early: {second}");

    env.namespace.apply(answering("web", ordered(schedulable(), "2"))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    let second = env.namespace.get("ConfigMap", "second").await?.context("it is gone")?;
    ensure!(second["data"]["value"] == "2", "ready before it was changed: {second}");
    Ok(())
}

async fn fifty_children_in_order_are_created_one_after_the_other(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let names = chain_of_fifty(env).await?;
    let object = env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    ensure!(condition(&object, "Throttled").is_null(), "it is throttled: {object}");
    let mut before = 0;
    for name in &names {
        let link = env.namespace.get("ConfigMap", name).await?.with_context(|| format!("no {name}"))?;
        ensure!(revision(&link)? > before, "{name} was created before the one that it waits for");
        before = revision(&link)?;
    }
    env.metrics_at_rest().await.map(drop)
}

async fn fifty_children_in_order_go_one_after_the_other_without_their_plugin(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let names = chain_of_fifty(env).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    remove_plugin(env).await?;
    env.namespace.delete("Scripted", "web").await?;
    env.namespace.until_gone("Scripted", "web").await?;
    let writes = env.host_writes().await?;
    let deleted = writes.iter().filter_map(|write| write.strip_prefix("delete configmaps/ ")?.strip_suffix(" 200"));
    let deleted: Vec<_> = deleted.collect();
    // The first one waited for nobody: garbage collection has it.
    let reversed: Vec<_> = names[1..].iter().rev().map(String::as_str).collect();
    ensure!(deleted == reversed, "deleted in another order: {deleted:?}");
    Ok(())
}

async fn a_child_waits_for_one_that_is_kept_and_not_there(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let answer = |handling: &str, value: &str| {
        let first = json!({"object": config_map("first", json!({})), "handling": handling});
        let second = json!({"object": config_map("second", json!({"value": value})), "after": [0]});
        answering("web", json!({"children": [first, second]}))
    };
    let waits = |object: &Value| {
        let ready = condition(object, "Ready");
        let message = ready["message"].as_str().unwrap_or_default();
        ready["reason"] == "AwaitingChildren"
            && message.contains("ConfigMap 'second' waits for ConfigMap 'first': it does not exist")
    };
    let has_value = |value: &'static str| move |child: &Value| child["data"]["value"] == value;
    env.namespace.apply(answer("keep", "1")).await?;
    env.namespace.until("Scripted", "web", "to wait", waits).await?;
    ensure!(env.namespace.get("ConfigMap", "second").await?.is_none(), "it was created too early");
    env.namespace.apply(answer("apply", "1")).await?;
    env.namespace.until("ConfigMap", "second", "to be there", has_value("1")).await?;
    env.namespace.apply(answer("keep", "2")).await?;
    env.namespace.until("ConfigMap", "second", "to be changed, for the first one is kept", has_value("2")).await?;
    // A host that has not heard of the delete yet would rightly go on.
    env.host.stop().await?;
    env.namespace.delete("ConfigMap", "first").await?;
    env.namespace.apply(answer("keep", "3")).await?;
    env.host.resume().await?;
    env.namespace.until("Scripted", "web", "to wait again", waits).await?;
    let second = env.namespace.get("ConfigMap", "second").await?.context("it is gone")?;
    ensure!(second["data"]["value"] == "2", "it was changed too early: {second}");
    Ok(())
}

async fn a_child_that_waits_for_a_later_one_is_refused(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let children = json!([
        {"object": config_map("first", json!({})), "after": [1]}, {"object": config_map("second", json!({}))},
    ]);
    env.namespace.apply(scripted("web", json!({"response": {"children": children}}))).await?;
    let object = env.stalled("Scripted", "web", "PluginContractViolated").await?;
    let message = condition(&object, "Stalled")["message"].as_str().unwrap_or_default();
    ensure!(message.contains("is not before it"), "it does not say why: {message}");
    ensure!(env.namespace.get("ConfigMap", "second").await?.is_none(), "a part of a refused answer was applied");
    Ok(())
}

/// A finalizer of somebody else holds one of them, so that it shows that those before wait for it.
async fn children_in_order_go_in_the_reverse_order_with_their_object(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    chain_of_three(env).await?;
    hold(env, "second").await?;
    go_in_reverse_order(env).await
}

async fn children_in_order_go_in_the_reverse_order_when_no_longer_returned(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    chain_of_three(env).await?;
    hold(env, "second").await?;
    env.namespace.apply(answering("web", json!({"children": []}))).await?;
    env.namespace.until_gone("ConfigMap", "third").await?;
    second_goes_before_first(env).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await.map(drop)
}

async fn children_in_order_go_though_the_plugin_has_no_answer(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    chain_of_three(env).await?;
    hold(env, "second").await?;
    // The object fits the plugin no more, but its children know their order.
    env.namespace.patch("Scripted", "web", json!({"spec": {"compute": "much"}})).await?;
    env.stalled("Scripted", "web", "Invalid").await?;
    go_in_reverse_order(env).await
}

async fn children_in_order_go_though_the_plugin_is_gone(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    chain_of_three(env).await?;
    hold(env, "second").await?;
    remove_plugin(env).await?;
    go_in_reverse_order(env).await
}

async fn children_in_order_go_by_a_host_that_has_never_seen_the_plugin(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    chain_of_three(env).await?;
    hold(env, "second").await?;
    env.host.kill().await?;
    env.host.remove("scripted.wasm")?;
    env.host.resume().await?;
    go_in_reverse_order(env).await
}

/// While it is gone nothing happens to its objects, even to their children that are missing.
async fn a_plugin_that_comes_back_goes_on_with_its_objects(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    chain_of_three(env).await?;
    remove_plugin(env).await?;
    env.namespace.delete("ConfigMap", "first").await?;
    env.namespace.until_gone("ConfigMap", "first").await?;
    env.metrics_at_rest().await?;
    ensure!(env.namespace.get("ConfigMap", "first").await?.is_none(), "a child is created though the plugin is gone");
    env.install("scripted")?;
    env.namespace.until("ConfigMap", "first", "to be there again", |_| true).await?;
    env.namespace.delete("Scripted", "web").await?;
    env.namespace.until_gone("Scripted", "web").await
}

/// Fifty ConfigMaps, each of which waits for the one before. Returns their names in this order.
async fn chain_of_fifty(env: &TestEnv) -> Result<Vec<String>> {
    let names: Vec<_> = (0..50).map(|number| format!("link-{number}")).collect();
    env.namespace.apply(answering("web", json!({"children": chain(&names)}))).await?;
    Ok(names)
}

/// ConfigMaps of these names, each of which waits for the one before.
fn chain(names: &[impl AsRef<str>]) -> Vec<Value> {
    let child = |(place, name): (usize, &_)| {
        let after: Vec<_> = place.checked_sub(1).into_iter().collect();
        json!({"object": config_map(AsRef::as_ref(name), json!({})), "after": after})
    };
    names.iter().enumerate().map(child).collect()
}

async fn remove_plugin(env: &TestEnv) -> Result<()> {
    env.host.remove("scripted.wasm")?;
    env.host.logged("plugin removed").await
}

async fn go_in_reverse_order(env: &TestEnv) -> Result<()> {
    env.namespace.delete("Scripted", "web").await?;
    env.namespace.until_gone("ConfigMap", "third").await?;
    second_goes_before_first(env).await?;
    env.namespace.until_gone("Scripted", "web").await
}

/// Three ConfigMaps, each of which waits for the one before.
async fn chain_of_three(env: &TestEnv) -> Result<()> {
    env.namespace.apply(answering("web", json!({"children": chain(&["first", "second", "third"])}))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await.map(drop)
}

async fn hold(env: &TestEnv, name: &str) -> Result<()> {
    let patch = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    env.namespace.patch("ConfigMap", name, patch).await.map(drop)
}

async fn second_goes_before_first(env: &TestEnv) -> Result<()> {
    let is_going = |child: &Value| !child["metadata"]["deletionTimestamp"].is_null();
    env.namespace.until("ConfigMap", "second", "to be deleted", is_going).await?;
    env.metrics_at_rest().await?;
    let first = env.namespace.get("ConfigMap", "first").await?.context("the first one went before the second")?;
    ensure!(!is_going(&first), "the first one is deleted before the second is gone");
    env.namespace.patch("ConfigMap", "second", json!({"metadata": {"finalizers": null}})).await?;
    env.namespace.until_gone("ConfigMap", "second").await?;
    env.namespace.until_gone("ConfigMap", "first").await
}

/// A Deployment, and a ConfigMap that waits for it.
fn ordered(first: Value, value: &str) -> Value {
    json!({"children": [{"object": first}, {"object": config_map("second", json!({"value": value})), "after": [0]}]})
}

fn schedulable() -> Value {
    let mut first = deployment("first", json!({"name": "main", "image": "example.com/main"}));
    first["spec"]["replicas"] = 1.into();
    // All Pods of before go first. Otherwise they would go on beside the new ones.
    first["spec"]["strategy"] = json!({"type": "Recreate"});
    first
}

/// A Deployment whose Pods find no node.
fn unschedulable() -> Value {
    let mut first = schedulable();
    first["spec"]["template"]["spec"]["nodeSelector"] = json!({"example.com/none": "true"});
    first
}
