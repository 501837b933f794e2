//! Which objects count as children: those with the right owner, and not those that only look like them. Users copy children with
//! all their labels and annotations, and controllers copy labels to objects of their own.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{Namespace, condition},
};
use serde_json::{Value, json};

use crate::{
    command::repacked,
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready, returning, scripted},
};

/// The number of reconciles after which a host has seen everything from before them.
const LOOKS: usize = 3;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_child_carries_its_identity,
        a_plugin_that_returns_a_child_as_it_was_shown_changes_nothing_of_the_api_servers,
        an_object_in_another_namespace_with_the_marks_of_a_child_is_left_alone,
        a_copy_of_a_child_is_left_alone,
        a_copy_of_a_kept_child_is_left_alone,
        a_copy_of_another_name_in_another_namespace_is_left_alone,
        a_copy_of_the_same_name_in_another_namespace_is_left_alone,
        a_copy_is_not_taken_when_its_name_is_wanted,
        a_copy_of_a_kept_child_is_not_taken_when_its_name_is_wanted,
        objects_that_a_controller_labels_like_their_service_are_left_alone,
    );
}

/// The identity names the child, so it does not match a copy.
async fn a_child_carries_its_identity(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    });
    let spec = returning([config_map("web", json!({})), autoscaler]);
    env.namespace.apply(scripted("web", spec)).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    let namespace = &env.namespace.name;
    for (kind, identity) in [
        ("ConfigMap", format!("ConfigMap/{namespace}/web")),
        ("HorizontalPodAutoscaler", format!("HorizontalPodAutoscaler.autoscaling/{namespace}/web")),
    ] {
        let child = env.namespace.get(kind, "web").await?.context("no child")?;
        ensure!(child["metadata"]["annotations"]["pilothouse.dev/identity"] == identity, "{child}");
    }
    Ok(())
}

/// A plugin that returns a child as it was shown, with one changed field, also returns the API server's metadata, which may be
/// outdated.
async fn a_plugin_that_returns_a_child_as_it_was_shown_changes_nothing_of_the_api_servers(
    env: &mut TestEnv,
) -> Result<()> {
    env.start(&["scripted"]).await?;
    let object = env.namespace.apply(scripted("web", returning([]))).await?;
    let mut child = config_map("web", json!({"text": "ours"}));
    let own = json!({
        "uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": "7", "generation": 7,
        "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30, "selfLink": "/api/v1", "managedFields": [{"manager": "other"}],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "other", "controller": true}],
    });
    child["metadata"].as_object_mut().context("no metadata")?.extend(own.as_object().cloned().unwrap_or_default());
    env.namespace.apply(scripted("web", returning([child]))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    let made = env.namespace.get("ConfigMap", "web").await?.context("no child")?;
    let owners = made["metadata"]["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(owners.len() == 1 && owners[0]["uid"] == object["metadata"]["uid"], "{made}");
    reconcile_often(env).await?;
    are_unchanged(&env.namespace, &[made]).await
}

/// The forged object has the labels and the identity of a child. But an object in a namespace has children in that namespace only.
async fn an_object_in_another_namespace_with_the_marks_of_a_child_is_left_alone(env: &mut TestEnv) -> Result<()> {
    let elsewhere = watch_all_namespaces(env).await?;
    let child = made(env, "delete").await?;
    let mut forged = copy(&child, "forged");
    forged["metadata"]["annotations"]["pilothouse.dev/identity"] = "ConfigMap/elsewhere/forged".into();
    let forged = [elsewhere.apply(forged).await?];
    reconcile_often(env).await?;
    are_unchanged(&elsewhere, &forged).await?;
    restart(env).await?;
    env.namespace.apply(scripted("web", returning([]))).await?;
    env.namespace.until_gone("ConfigMap", "web").await?;
    are_unchanged(&elsewhere, &forged).await
}

/// Moves the test to a control plane of its own, with a host that watches all namespaces, and creates a second namespace
/// `elsewhere`.
async fn watch_all_namespaces(env: &mut TestEnv) -> Result<Namespace> {
    env.move_to_api_server_with(&["tests/guests/scripted/child-crd.yaml", "tests/guests/scripted/crd.yaml"]).await?;
    env.set_up_host(|setup| setup.namespace = None)?;
    env.start(&["scripted"]).await?;
    env.cluster.namespace("elsewhere").await
}

async fn a_copy_of_a_child_is_left_alone(env: &mut TestEnv) -> Result<()> {
    copies_are_left_alone(env, "delete").await
}

async fn a_copy_of_a_kept_child_is_left_alone(env: &mut TestEnv) -> Result<()> {
    copies_are_left_alone(env, "keep").await
}

/// The copies are left alone by the running host and by a restarted one, also when the child itself is no longer wanted.
async fn copies_are_left_alone(env: &mut TestEnv, on_removal: &str) -> Result<()> {
    env.start(&["scripted"]).await?;
    let child = made(env, on_removal).await?;
    let mut copies = vec![env.namespace.apply(copy(&child, "copy")).await?];
    let mut labels_only = copy(&child, "copy-of-labels");
    labels_only["metadata"]["annotations"] = Value::Null;
    copies.push(env.namespace.apply(labels_only).await?);
    reconcile_often(env).await?;
    are_unchanged(&env.namespace, &copies).await?;

    restart(env).await?;
    reconcile_often(env).await?;
    are_unchanged(&env.namespace, &copies).await?;

    env.namespace.apply(scripted("web", returning([config_map("other", json!({}))]))).await?;
    env.namespace.until("Scripted", "web", "to be ready without the child", is_ready).await?;
    reconcile_often(env).await?;
    are_unchanged(&env.namespace, &copies).await
}

async fn a_copy_of_another_name_in_another_namespace_is_left_alone(env: &mut TestEnv) -> Result<()> {
    a_copy_elsewhere_is_left_alone(env, "copy").await
}

async fn a_copy_of_the_same_name_in_another_namespace_is_left_alone(env: &mut TestEnv) -> Result<()> {
    a_copy_elsewhere_is_left_alone(env, "web").await
}

/// The copy does not keep the host from repairing or deleting the child itself.
async fn a_copy_elsewhere_is_left_alone(env: &mut TestEnv, name: &str) -> Result<()> {
    let elsewhere = watch_all_namespaces(env).await?;
    let child = made(env, "delete").await?;
    let copies = [elsewhere.apply(copy(&child, name)).await?];
    reconcile_often(env).await?;
    are_unchanged(&elsewhere, &copies).await?;

    restart(env).await?;
    reconcile_often(env).await?;
    are_unchanged(&elsewhere, &copies).await?;
    env.namespace.patch("ConfigMap", "web", json!({"data": {"text": "by hand"}})).await?;
    let is_repaired = |child: &Value| child["data"]["text"] == "ours";
    env.namespace.until("ConfigMap", "web", "to be repaired", is_repaired).await?;
    env.namespace.apply(scripted("web", returning([]))).await?;
    env.namespace.until_gone("ConfigMap", "web").await?;
    are_unchanged(&elsewhere, &copies).await
}

async fn a_copy_is_not_taken_when_its_name_is_wanted(env: &mut TestEnv) -> Result<()> {
    a_copy_is_not_taken(env, "delete").await
}

async fn a_copy_of_a_kept_child_is_not_taken_when_its_name_is_wanted(env: &mut TestEnv) -> Result<()> {
    a_copy_is_not_taken(env, "keep").await
}

/// The host is down while the copy is made and while its name becomes that of a desired child.
async fn a_copy_is_not_taken(env: &mut TestEnv, on_removal: &str) -> Result<()> {
    env.start(&["scripted"]).await?;
    let child = made(env, on_removal).await?;
    env.host.stop().await?;
    let copies = [env.namespace.apply(copy(&child, "copy")).await?];
    let mut spec = wanted(on_removal);
    let second = json!({"object": config_map("copy", json!({"text": "wanted"})), "onRemoval": on_removal});
    spec["response"]["children"].as_array_mut().context("no children")?.push(second);
    env.namespace.apply(scripted("web", spec)).await?;
    env.host.resume().await?;
    env.host.ready().await?;
    let stalled = env.stalled("Scripted", "web", "NameConflict").await?;
    let message = condition(&stalled, "Stalled")["message"].as_str().unwrap_or_default();
    ensure!(message.contains("ConfigMap 'copy'"), "{message}");
    reconcile_often(env).await?;
    are_unchanged(&env.namespace, &copies).await
}

/// The Endpoints of a Service have the labels of the Service, but no owner.
async fn objects_that_a_controller_labels_like_their_service_are_left_alone(env: &mut TestEnv) -> Result<()> {
    let plugin = repacked(&artifacts::guest("scripted")?, |manifest| {
        manifest["children"] = json!([
            {"apiVersion": "v1", "kind": "Service"}, {"apiVersion": "v1", "kind": "Endpoints"},
            {"apiVersion": "v1", "kind": "ConfigMap"},
        ]);
    })
    .await?;
    env.host.install(plugin.path(), "scripted.wasm")?;
    env.host.resume().await?;
    env.host.ready().await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    env.namespace.apply(scripted("web", returning([service]))).await?;
    let is_labelled = |endpoints: &Value| endpoints["metadata"]["labels"]["pilothouse.dev/plugin"] == "scripted";
    env.namespace.until("Endpoints", "web", "to be labelled like the Service", is_labelled).await?;
    reconcile_often(env).await?;
    restart(env).await?;
    reconcile_often(env).await?;
    let writes = env.host_writes().await?;
    let of_endpoints: Vec<_> = writes.iter().filter(|write| write.contains(" endpoints/ ")).collect();
    ensure!(of_endpoints.is_empty(), "the host wrote {of_endpoints:?}");
    Ok(())
}

/// A spec with one child `web`.
fn wanted(on_removal: &str) -> Value {
    let child = json!({"object": config_map("web", json!({"text": "ours"})), "onRemoval": on_removal});
    json!({"response": {"children": [child]}})
}

/// Creates an object `web` and returns its child.
async fn made(env: &TestEnv, on_removal: &str) -> Result<Value> {
    env.namespace.apply(scripted("web", wanted(on_removal))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.namespace.get("ConfigMap", "web").await?.context("no child")
}

/// A copy of a child, as a user makes it with `kubectl get -o yaml`, another name and `kubectl apply`.
fn copy(child: &Value, name: &str) -> Value {
    let mut copy = config_map(name, json!({"text": "a copy"}));
    copy["metadata"]["labels"] = child["metadata"]["labels"].clone();
    copy["metadata"]["annotations"] = child["metadata"]["annotations"].clone();
    copy
}

/// Restarts the host.
async fn restart(env: &mut TestEnv) -> Result<()> {
    env.host.stop().await?;
    env.host.resume().await?;
    env.host.ready().await
}

/// Triggers a few reconciles of the object.
async fn reconcile_often(env: &TestEnv) -> Result<()> {
    for _ in 0..LOOKS {
        env.reconciled_after("scripted", async || env.touch("Scripted", "web", fastrand::u32(..)).await).await?;
    }
    Ok(())
}

async fn are_unchanged(namespace: &Namespace, copies: &[Value]) -> Result<()> {
    for copy in copies {
        let name = copy["metadata"]["name"].as_str().context("no name")?;
        let now = namespace.get("ConfigMap", name).await?.with_context(|| format!("the copy '{name}' was deleted"))?;
        ensure!(
            now["metadata"]["resourceVersion"] == copy["metadata"]["resourceVersion"],
            "the copy '{name}' was changed: {now}"
        );
    }
    Ok(())
}
