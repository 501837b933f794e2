//! Cluster-scoped objects: children of both scopes, in several namespaces, and lookups without a namespace. Each test has a
//! control plane of its own, because a host sees the cluster-scoped objects of all tests.

use std::fs;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{Namespace, condition, install_crd},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready, returning, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_cluster_scoped_object_has_children_of_both_scopes,
        children_with_one_name_in_two_namespaces_are_two_children,
        a_child_that_moves_to_another_namespace_is_deleted_in_the_old_one,
        a_select_in_all_namespaces_finds_in_all_of_them,
        a_get_without_a_namespace_is_denied,
        a_malformed_namespace_refuses_the_answer,
        a_child_is_adopted_in_the_namespace_that_the_annotation_names,
        a_child_kind_that_comes_back_in_another_scope_is_noticed,
    );
}

async fn a_cluster_scoped_object_has_children_of_both_scopes(env: &mut TestEnv) -> Result<()> {
    let [first, _] = start(env).await?;
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own"}});
    let object = apply(env, returning([own.clone(), in_namespace(&first)])).await?;
    ready(env).await?;
    let child = env.namespace.get("Namespace", "own").await?.context("the cluster-scoped child is not there")?;
    let owner = &child["metadata"]["ownerReferences"][0];
    ensure!(owner["uid"] == object["metadata"]["uid"] && owner["kind"] == "ClusterScripted", "{child}");
    let child = first.get("ConfigMap", "web").await?.context("the child in a namespace is not there")?;
    ensure!(child["metadata"]["ownerReferences"][0]["uid"] == object["metadata"]["uid"], "{child}");

    first.patch("ConfigMap", "web", json!({"data": {"text": "by hand"}})).await?;
    first.until("ConfigMap", "web", "to be repaired", |child| child["data"]["text"] == "ours").await?;

    apply(env, returning([own])).await?;
    first.until_gone("ConfigMap", "web").await?;
    ready(env).await?;
    ensure!(env.namespace.get("Namespace", "own").await?.is_some(), "the wanted child is gone");
    Ok(())
}

async fn children_with_one_name_in_two_namespaces_are_two_children(env: &mut TestEnv) -> Result<()> {
    let [first, second] = start(env).await?;
    apply(env, returning([in_namespace(&first), in_namespace(&second)])).await?;
    for namespace in [&first, &second] {
        namespace.until("ConfigMap", "web", "to be created", |_| true).await?;
    }
    ready(env).await?;
    first.patch("ConfigMap", "web", json!({"data": {"text": "by hand"}})).await?;
    first.until("ConfigMap", "web", "to be repaired", |child| child["data"]["text"] == "ours").await?;

    let stays = second.get("ConfigMap", "web").await?.context("the second child is gone")?;
    apply(env, returning([in_namespace(&second)])).await?;
    first.until_gone("ConfigMap", "web").await?;
    ready(env).await?;
    let still = second.get("ConfigMap", "web").await?.context("the second child is gone")?;
    ensure!(still["metadata"]["uid"] == stays["metadata"]["uid"], "it was made anew: {still}");
    Ok(())
}

/// In the new namespace it is a child like any other, also for a restarted host.
async fn a_child_that_moves_to_another_namespace_is_deleted_in_the_old_one(env: &mut TestEnv) -> Result<()> {
    let [first, second] = start(env).await?;
    apply(env, returning([in_namespace(&first)])).await?;
    ready(env).await?;
    first.until("ConfigMap", "web", "to be created", |_| true).await?;

    apply(env, returning([in_namespace(&second)])).await?;
    second.until("ConfigMap", "web", "to be created", |_| true).await?;
    first.until_gone("ConfigMap", "web").await?;
    ready(env).await?;

    env.host.stop().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    second.patch("ConfigMap", "web", json!({"data": {"text": "by hand"}})).await?;
    second.until("ConfigMap", "web", "to be repaired", |child| child["data"]["text"] == "ours").await?;
    apply(env, returning([in_namespace(&second), config_map_in(&second, "other")])).await?;
    ready(env).await?;
    ensure!(first.get("ConfigMap", "web").await?.is_none(), "the child is in its old namespace again");
    Ok(())
}

async fn a_select_in_all_namespaces_finds_in_all_of_them(env: &mut TestEnv) -> Result<()> {
    let [first, second] = start(env).await?;
    first.apply(labelled("settings")).await?;
    second.apply(labelled("settings")).await?;
    let mut child = in_namespace(&first);
    child["data"] = json!({"found": {"$names": "found"}});
    let mut spec = returning([child]);
    spec["lookups"] = json!([{"as": "found", "kind": "ConfigMap", "selector": "app=web", "allNamespaces": true}]);
    apply(env, spec).await?;
    found(&first, &["first/settings", "second/settings"]).await?;

    second.apply(labelled("more")).await?;
    found(&first, &["first/settings", "second/more", "second/settings"]).await?;
    first.delete("ConfigMap", "settings").await?;
    found(&first, &["second/more", "second/settings"]).await
}

/// A cluster-scoped object has no namespace that could be the default. If the lookup names one, the object is found.
async fn a_get_without_a_namespace_is_denied(env: &mut TestEnv) -> Result<()> {
    let [first, second] = start(env).await?;
    second.apply(labelled("settings")).await?;
    let mut child = in_namespace(&first);
    child["data"] = json!({"found": {"$names": "settings"}});
    let mut spec = returning([child]);
    let missing = json!({"verdict": {"invalid": "nothing was found"}});
    spec["lookups"] = json!([{"kind": "ConfigMap", "name": "settings", "missing": missing}]);
    apply(env, spec.clone()).await?;
    let object = env.stalled("ClusterScripted", "web", "Invalid").await?;
    let message = condition(&object, "Stalled")["message"].as_str().unwrap_or_default();
    ensure!(message.contains("namespace"), "it does not say that a namespace is missing: {message}");

    spec["lookups"][0]["namespace"] = "second".into();
    apply(env, spec).await?;
    found(&first, &["second/settings"]).await
}

async fn a_malformed_namespace_refuses_the_answer(env: &mut TestEnv) -> Result<()> {
    let [first, _] = start(env).await?;
    for namespace in [json!("no such/namespace"), json!("a?dryRun=All"), json!(".."), json!("UPPER"), json!(5)] {
        let mut child = config_map("web", json!({}));
        child["metadata"]["namespace"] = namespace.clone();
        let object = apply(env, returning([config_map_in(&first, "good"), child])).await?;
        let is_refused = |now: &Value| {
            let stalled = condition(now, "Stalled");
            stalled["reason"] == "PluginContractViolated"
                && stalled["observedGeneration"] == object["metadata"]["generation"]
        };
        let what = format!("to be refused for the namespace {namespace}");
        let object = env.namespace.until("ClusterScripted", "web", &what, is_refused).await?;
        let message = condition(&object, "Stalled")["message"].as_str().unwrap_or_default();
        ensure!(
            message.contains("ConfigMap 'web'") && message.contains("metadata.namespace"),
            "{namespace}: {message}"
        );
    }
    ensure!(first.get("ConfigMap", "good").await?.is_none(), "a part of a refused answer was applied");
    Ok(())
}

/// The child's name is taken in both namespaces, and the annotation allows the adoption in one of them.
async fn a_child_is_adopted_in_the_namespace_that_the_annotation_names(env: &mut TestEnv) -> Result<()> {
    let [first, second] = start(env).await?;
    let mut theirs = Vec::new();
    for namespace in [&first, &second] {
        theirs.push(namespace.apply(config_map("web", json!({"text": "theirs"}))).await?);
    }
    apply(env, returning([in_namespace(&first), in_namespace(&second)])).await?;
    let stalled = env.stalled("ClusterScripted", "web", "NameConflict").await?;
    let message = condition(&stalled, "Stalled")["message"].to_string();
    ensure!(message.contains("pilothouse.dev/adopt=ConfigMap/first/web"), "{message}");

    let adopt = json!({"metadata": {"annotations": {"pilothouse.dev/adopt": "ConfigMap/first/web"}}});
    let object = env.namespace.patch("ClusterScripted", "web", adopt).await?;
    let adopted = first.until("ConfigMap", "web", "to be adopted", |child| child["data"]["text"] == "ours").await?;
    ensure!(adopted["metadata"]["uid"] == theirs[0]["metadata"]["uid"], "it was made anew: {adopted}");
    ensure!(adopted["metadata"]["ownerReferences"][0]["uid"] == object["metadata"]["uid"], "{adopted}");
    let names_the_other = |now: &Value| {
        let message = condition(now, "Stalled")["message"].to_string();
        message.contains("pilothouse.dev/adopt=ConfigMap/second/web")
    };
    env.namespace.until("ClusterScripted", "web", "to name the other child", names_the_other).await?;
    let other = second.get("ConfigMap", "web").await?.context("it was deleted")?;
    ensure!(
        other["metadata"]["resourceVersion"] == theirs[1]["metadata"]["resourceVersion"],
        "it was changed: {other}"
    );
    Ok(())
}

/// Its CRD is deleted and created again at once. Objects in namespaces may not have cluster-scoped children.
async fn a_child_kind_that_comes_back_in_another_scope_is_noticed(env: &mut TestEnv) -> Result<()> {
    const CHILD: &str = "tests/guests/scripted/child-crd.yaml";
    env.move_to_api_server_with(&["tests/guests/scripted/crd.yaml"]).await?;
    let text = fs::read_to_string(artifacts::repository().join(CHILD))?;
    let client = env.namespace.client();
    let in_scope = async |scope: &str| {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), text.replace("scope: Namespaced", &format!("scope: {scope}")))?;
        install_crd(&client, file.path()).await
    };
    in_scope("Cluster").await?;
    env.start(&["scripted"]).await?;
    let child = json!({"apiVersion": "test.pilothouse.dev/v1", "kind": "ScriptedChild", "metadata": {"name": "child"}});
    env.namespace.apply(scripted("web", returning([child]))).await?;
    env.stalled("Scripted", "web", "ChildScopeNotAllowed").await?;

    env.namespace.delete("CustomResourceDefinition", "scriptedchildren.test.pilothouse.dev").await?;
    env.namespace.until_gone("CustomResourceDefinition", "scriptedchildren.test.pilothouse.dev").await?;
    in_scope("Namespaced").await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.namespace.until("ScriptedChild", "child", "to be in the namespace", |_| true).await?;
    Ok(())
}

/// A control plane, two namespaces `first` and `second`, and a host that works in all namespaces.
async fn start(env: &mut TestEnv) -> Result<[Namespace; 2]> {
    env.move_to_api_server_with(&["tests/guests/scripted/child-crd.yaml", "tests/guests/scripted-cluster/crd.yaml"])
        .await?;
    env.set_up_host(|setup| setup.namespace = None)?;
    env.start(&["scripted-cluster"]).await?;
    Ok([env.cluster.namespace("first").await?, env.cluster.namespace("second").await?])
}

async fn apply(env: &TestEnv, spec: Value) -> Result<Value> {
    let object = json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "ClusterScripted", "metadata": {"name": "web"}, "spec": spec,
    });
    env.namespace.apply(object).await
}

async fn ready(env: &TestEnv) -> Result<Value> {
    env.namespace.until("ClusterScripted", "web", "to be ready", is_ready).await
}

/// Waits until the child in this namespace lists the objects that the lookup found.
async fn found(namespace: &Namespace, expected: &[&str]) -> Result<()> {
    let names = |child: &Value| {
        let mut names: Vec<_> = child["data"]["found"].as_str().unwrap_or_default().split(',').collect();
        names.sort_unstable();
        names == expected
    };
    namespace.until("ConfigMap", "web", &format!("to name {expected:?}"), names).await?;
    Ok(())
}

/// A child `web` in a namespace.
fn in_namespace(namespace: &Namespace) -> Value {
    config_map_in(namespace, "web")
}

fn config_map_in(namespace: &Namespace, name: &str) -> Value {
    let mut child = config_map(name, json!({"text": "ours"}));
    child["metadata"]["namespace"] = namespace.name.clone().into();
    child
}

/// A user's ConfigMap that the lookups select.
fn labelled(name: &str) -> Value {
    let mut settings = config_map(name, json!({}));
    settings["metadata"]["labels"] = json!({"app": "web"});
    settings
}
