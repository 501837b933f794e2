//! Drift in lists, which are compared as the kind's schema says. Also drift beside many normalised fields, and in fields that the
//! API server does not store.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, answering, deployment, is_ready},
};

/// The number of variables with an empty value. The API server stores them without `value`, and the log lists as many differences
/// at most.
const EMPTY_VALUES: usize = 10;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_port_that_somebody_adds_to_a_network_policy_is_removed,
        a_field_that_somebody_adds_to_an_element_of_an_atomic_list_is_removed,
        a_port_that_somebody_changes_to_another_protocol_comes_back,
        a_service_port_that_somebody_changes_to_another_protocol_is_reported,
        an_entry_that_somebody_adds_to_an_atomic_map_is_removed,
        additions_to_a_set_or_a_keyed_list_are_left_alone,
        removed_elements_of_a_set_or_a_keyed_list_are_restored,
        a_changed_image_behind_many_empty_values_is_repaired,
        a_dropped_key_of_string_data_is_removed,
        an_edited_secret_is_repaired_after_somebody_annotated_it,
        a_restart_repairs_nothing_that_nobody_changed,
    );
}

/// The list is atomic, so an element that the plugin does not return was added by somebody else. Here it lets traffic in.
async fn a_port_that_somebody_adds_to_a_network_policy_is_removed(env: &mut TestEnv) -> Result<()> {
    start_with(env, &[network_policy()]).await?;
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 22, "protocol": "TCP"}]);
    let opened = json!({"spec": {"ingress": [{"ports": ports}]}});
    let opened = env.namespace.patch("NetworkPolicy", "child", opened).await?;
    ensure!(opened["spec"]["ingress"][0]["ports"] == ports, "the API server took something else: {opened}");
    let closed = |policy: &Value| policy["spec"]["ingress"][0]["ports"] == json!([{"port": 80, "protocol": "TCP"}]);
    env.namespace.until("NetworkPolicy", "child", "to let in what the plugin says", closed).await?;
    Ok(())
}

/// Each of these additions lets more traffic in: a range of ports, and Pods of all namespaces.
async fn a_field_that_somebody_adds_to_an_element_of_an_atomic_list_is_removed(env: &mut TestEnv) -> Result<()> {
    let mut policy = network_policy();
    let from = json!([{"podSelector": {"matchLabels": {"app": "peer"}}}]);
    policy["spec"]["ingress"][0]["from"] = from.clone();
    start_with(env, &[policy]).await?;
    for (field, opened) in [
        ("ports", json!([{"port": 80, "protocol": "TCP", "endPort": 65_535}])),
        ("from", json!([{"podSelector": {"matchLabels": {"app": "peer"}}, "namespaceSelector": {}}])),
    ] {
        let live = env.namespace.get("NetworkPolicy", "child").await?.context("the child is gone")?;
        let mut rule = live["spec"]["ingress"][0].clone();
        rule[field] = opened.clone();
        let patched = env.namespace.patch("NetworkPolicy", "child", json!({"spec": {"ingress": [rule]}})).await?;
        ensure!(patched["spec"]["ingress"][0][field] == opened, "the API server took something else: {patched}");
        let closed = |policy: &Value| policy["spec"]["ingress"][0][field] == live["spec"]["ingress"][0][field];
        env.namespace.until("NetworkPolicy", "child", "to let in what the plugin says", closed).await?;
    }
    Ok(())
}

/// The plugin leaves the protocol out, which means TCP. The changed port counts as an addition of somebody else and stays beside
/// it.
async fn a_port_that_somebody_changes_to_another_protocol_comes_back(env: &mut TestEnv) -> Result<()> {
    let container = |port: Value| json!({"name": "child", "image": "example.com/good:1", "ports": [port]});
    start_with(env, &[deployment("child", container(json!({"containerPort": 80})))]).await?;
    let changed = container(json!({"containerPort": 80, "protocol": "UDP"}));
    let changed = json!({"spec": {"template": {"spec": {"containers": [changed]}}}});
    env.namespace.patch("Deployment", "child", changed).await?;
    let has_tcp = |deployment: &Value| {
        let ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"].as_array();
        ports.is_some_and(|ports| ports.contains(&json!({"containerPort": 80, "protocol": "TCP"})))
    };
    env.namespace.until("Deployment", "child", "to have the port of the plugin", has_tcp).await?;
    Ok(())
}

/// A Service with several ports needs a name for each, so the plugin's port cannot be added beside the changed one. That is
/// reported, so that the object does not seem ready.
async fn a_service_port_that_somebody_changes_to_another_protocol_is_reported(env: &mut TestEnv) -> Result<()> {
    let mut service = service();
    service["spec"]["ports"] = json!([{"port": 80}]);
    start_with(env, &[service]).await?;
    env.namespace.patch("Service", "child", json!({"spec": {"ports": [{"port": 80, "protocol": "UDP"}]}})).await?;
    let stalled = env.stalled("Scripted", "object", "ChildInvalid").await?;
    let message = condition(&stalled, "Ready")["message"].to_string();
    ensure!(message.contains("spec.ports"), "{message}");
    Ok(())
}

/// With an additional label in its selector, the Service would select no Pod.
async fn an_entry_that_somebody_adds_to_an_atomic_map_is_removed(env: &mut TestEnv) -> Result<()> {
    start_with(env, &[service()]).await?;
    let narrowed = json!({"spec": {"selector": {"tier": "none"}}});
    let narrowed = env.namespace.patch("Service", "child", narrowed).await?;
    ensure!(narrowed["spec"]["selector"] == json!({"app": "child", "tier": "none"}), "{narrowed}");
    let repaired = |service: &Value| service["spec"]["selector"] == json!({"app": "child"});
    env.namespace.until("Service", "child", "to select what the plugin says", repaired).await?;
    Ok(())
}

/// Sets and keyed lists may have elements of several owners, so additions of others are no drift and lead to no write.
async fn additions_to_a_set_or_a_keyed_list_are_left_alone(env: &mut TestEnv) -> Result<()> {
    start_with(env, &[child_with_lists()]).await?;
    let before = env.host_writes().await?;
    let theirs = json!({"spec": {
        "tags": ["a", "b", "theirs"],
        "ports": [{"number": 1, "name": "one"}, {"number": 2, "name": "theirs"}],
    }});
    let patched = change_child(env, "ScriptedChild", theirs).await?;
    let after = env.host_writes().await?;
    ensure!(after.len() == before.len(), "the host wrote {:#?}", &after[before.len()..]);
    ensure!(env.drift_repaired("scripted").await? == 0.0, "it is counted as drift");
    let child = env.namespace.get("ScriptedChild", "child").await?.context("the child is gone")?;
    ensure!(child["spec"] == patched["spec"], "it was changed: {child}");
    Ok(())
}

/// The plugin's elements are restored beside those of others, in any order. Afterwards the host writes nothing more.
async fn removed_elements_of_a_set_or_a_keyed_list_are_restored(env: &mut TestEnv) -> Result<()> {
    start_with(env, &[child_with_lists()]).await?;
    let without = json!({"spec": {"tags": ["theirs", "b"], "ports": [{"number": 2, "name": "theirs"}]}});
    env.namespace.patch("ScriptedChild", "child", without).await?;
    let has = |child: &Value, field: &str, element: Value| {
        child["spec"][field].as_array().is_some_and(|elements| elements.contains(&element))
    };
    let whole = |child: &Value| {
        ["a", "b", "theirs"].into_iter().all(|tag| has(child, "tags", tag.into()))
            && has(child, "ports", json!({"number": 1, "name": "one"}))
            && has(child, "ports", json!({"number": 2, "name": "theirs"}))
    };
    env.namespace.until("ScriptedChild", "child", "to have all elements", whole).await?;
    env.metrics_at_rest().await?;
    let before = env.host_writes().await?;
    change_child(env, "ScriptedChild", touched("once more")).await?;
    let after = env.host_writes().await?;
    ensure!(after.len() == before.len(), "the host wrote {:#?}", &after[before.len()..]);
    Ok(())
}

/// The API server drops each empty value, so the child always differs from the applied one in ten fields.
async fn a_changed_image_behind_many_empty_values_is_repaired(env: &mut TestEnv) -> Result<()> {
    start_with(env, &[deployment_with_empty_values()]).await?;
    // By these reconciles the host learns that an apply does not remove the differences.
    for turn in ["one", "two"] {
        change_child(env, "Deployment", touched(turn)).await?;
    }
    let live = env.namespace.get("Deployment", "child").await?.context("the child is gone")?;
    let mut containers = live["spec"]["template"]["spec"]["containers"].clone();
    ensure!(containers[0]["env"][0] == json!({"name": "EMPTY_0"}), "the empty value is stored: {live}");
    containers[0]["image"] = "example.com/evil:1".into();
    let evil = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    env.namespace.patch("Deployment", "child", evil).await?;
    let image = |child: &Value| child["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/good:1";
    env.namespace.until("Deployment", "child", "to have the image that the plugin says", image).await?;
    Ok(())
}

async fn a_dropped_key_of_string_data_is_removed(env: &mut TestEnv) -> Result<()> {
    start_with(env, &[secret(json!({"user": "admin", "password": "one"}))]).await?;
    let both = env.namespace.get("Secret", "child").await?.context("the child is gone")?;
    ensure!(both["data"] == json!({"user": "YWRtaW4=", "password": "b25l"}), "{both}");
    env.namespace.apply(returns(&[secret(json!({"user": "admin"}))])).await?;
    let dropped = |child: &Value| child["data"] == json!({"user": "YWRtaW4="});
    env.namespace.until("Secret", "child", "to lose the key that was dropped", dropped).await?;
    Ok(())
}

/// The annotation triggers a comparison with the live Secret, which has no `stringData`.
async fn an_edited_secret_is_repaired_after_somebody_annotated_it(env: &mut TestEnv) -> Result<()> {
    start_with(env, &[secret(json!({"password": "one"}))]).await?;
    for turn in ["one", "two"] {
        let annotated = json!({"metadata": {"annotations": {"tests.pilothouse.dev/touched": turn}}});
        change_child(env, "Secret", annotated).await?;
    }
    let edited = env.namespace.patch("Secret", "child", json!({"data": {"password": "ZXZpbA=="}})).await?;
    ensure!(edited["data"]["password"] == "ZXZpbA==", "the API server took something else: {edited}");
    let repaired = |child: &Value| child["data"]["password"] == "b25l";
    env.namespace.until("Secret", "child", "to have the password that the plugin says", repaired).await?;
    Ok(())
}

/// A host that has just started does not know yet which differences an apply does not remove.
async fn a_restart_repairs_nothing_that_nobody_changed(env: &mut TestEnv) -> Result<()> {
    start_with(env, &[deployment_with_empty_values(), secret(json!({"password": "one"}))]).await?;
    env.host.stop().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    eventually(PATIENCE, "a reconcile of the object", async || {
        let reconciles = env.reconciles("scripted").await?;
        Ok(Look::of(reconciles >= 1.0, reconciles))
    })
    .await?;
    let repaired = env.drift_repaired("scripted").await?;
    ensure!(repaired == 0.0, "{repaired} children count as repaired drift");
    Ok(())
}

/// Starts the host with an object that has these children, and waits until there is nothing left to do.
async fn start_with(env: &mut TestEnv, children: &[Value]) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(returns(children)).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    Ok(())
}

/// Changes the child and waits until the host has reconciled its object.
async fn change_child(env: &TestEnv, kind: &str, patch: Value) -> Result<Value> {
    let mut changed = Value::Null;
    env.reconciled_after("scripted", async || {
        changed = env.namespace.patch(kind, "child", patch).await?;
        Ok(())
    })
    .await?;
    env.metrics_at_rest().await?;
    Ok(changed)
}

fn returns(children: &[Value]) -> Value {
    let children: Vec<_> = children.iter().map(|child| json!({"object": child})).collect();
    answering("object", json!({"children": children}))
}

/// A patch with a label that nobody reads. An annotation would change the generation of a Deployment.
fn touched(value: &str) -> Value {
    json!({"metadata": {"labels": {"tests.pilothouse.dev/touched": value.replace(' ', "-")}}})
}

fn network_policy() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "child"},
        "spec": {
            "podSelector": {"matchLabels": {"app": "child"}},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}],
        },
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "child"},
        "spec": {"selector": {"app": "child"}, "ports": [{"name": "http", "port": 80}]},
    })
}

fn child_with_lists() -> Value {
    json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "ScriptedChild", "metadata": {"name": "child"},
        "spec": {"tags": ["a", "b"], "ports": [{"number": 1, "name": "one"}]},
    })
}

fn deployment_with_empty_values() -> Value {
    let env: Vec<_> = (0..EMPTY_VALUES).map(|number| json!({"name": format!("EMPTY_{number}"), "value": ""})).collect();
    deployment("child", json!({"name": "child", "image": "example.com/good:1", "env": env}))
}

fn secret(string_data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child"}, "stringData": string_data})
}
