//! Writes that the API server refuses permanently: reported on the object with the API server's message and retried with backoff,
//! whatever the status code. If a child could be recreated, the plugin's policy decides; otherwise it stays.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use pilothouse_tests::{
    cluster::{HOST_USER, PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, answering, config_map, deployment, is_ready},
};

/// The shortest pause between two tries of a write that is refused for good: half of the first delay.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);

/// Tries that a test waits for.
const TRIES: usize = 3;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_field_reference_that_is_refused_is_reported,
        an_environment_variable_that_is_there_twice_is_reported,
        a_text_in_the_place_of_a_number_is_reported,
        a_number_in_the_place_of_a_text_is_reported,
        a_role_binding_cannot_change_its_role,
        a_role_binding_is_recreated_for_another_role,
        a_child_that_could_not_be_recreated_is_not_deleted,
        only_a_child_that_could_be_created_counts_as_immutable,
    );
}

/// The message has `metadata.uid` in it, which is also the field by which the host guards its updates.
async fn a_field_reference_that_is_refused_is_reported(env: &mut TestEnv) -> Result<()> {
    start_with(env, child(with_variables(json!([{"name": "A", "value": "one"}])))).await?;
    let reference = json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uids"}}});
    returns(env, child(with_variables(json!([reference])))).await?;
    refused(env, "ChildInvalid", "field label not supported: metadata.uids").await?;
    is_tried_seldom(env, "deployments").await
}

/// The API server answers 500, as if it were a fault of its own. So it does for the two that follow.
async fn an_environment_variable_that_is_there_twice_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let twice = json!([{"name": "A", "value": "one"}, {"name": "A", "value": "two"}]);
    returns(env, child(with_variables(twice))).await?;
    refused(env, "ChildInvalid", "duplicate entries for key").await?;
    is_tried_seldom(env, "deployments").await
}

async fn a_text_in_the_place_of_a_number_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let mut replicas = with_variables(json!([]));
    replicas["spec"]["replicas"] = "3".into();
    returns(env, child(replicas)).await?;
    refused(env, "ChildInvalid", ".spec.replicas: expected numeric").await?;
    is_tried_seldom(env, "deployments").await
}

async fn a_number_in_the_place_of_a_text_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    returns(env, child(config_map("child", json!({"retries": 3})))).await?;
    refused(env, "ChildInvalid", ".data.retries: expected string").await?;
    is_tried_seldom(env, "configmaps").await
}

/// The API server's message for this field says neither "immutable" nor "forbidden".
async fn a_role_binding_cannot_change_its_role(env: &mut TestEnv) -> Result<()> {
    start_with(env, child(role_binding("reader"))).await?;
    let before = live(env, "RoleBinding").await?;
    returns(env, child(role_binding("writer"))).await?;
    refused(env, "ImmutableField", "cannot change roleRef").await?;
    is_tried_seldom(env, "rolebindings").await?;
    let after = live(env, "RoleBinding").await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {after}");
    ensure!(after["roleRef"]["name"] == "reader", "it was changed: {after}");
    Ok(())
}

async fn a_role_binding_is_recreated_for_another_role(env: &mut TestEnv) -> Result<()> {
    start_with(env, recreated(role_binding("reader"))).await?;
    let before = live(env, "RoleBinding").await?;
    returns(env, recreated(role_binding("writer"))).await?;
    let anew = |binding: &Value| {
        binding["roleRef"]["name"] == "writer" && binding["metadata"]["uid"] != before["metadata"]["uid"]
    };
    env.namespace.until("RoleBinding", "child", "to be made anew", anew).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    Ok(())
}

/// The change needs another StatefulSet, and that one is invalid. The good one serves until the mistake is mended.
async fn a_child_that_could_not_be_recreated_is_not_deleted(env: &mut TestEnv) -> Result<()> {
    start_with(env, recreated(stateful_set("one", "child"))).await?;
    let before = live(env, "StatefulSet").await?;
    returns(env, recreated(stateful_set("two", "not a name"))).await?;
    refused(env, "ChildInvalid", "spec.template.spec.containers[0].name").await?;
    let after = live(env, "StatefulSet").await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {after}");
    ensure!(after["metadata"].get("deletionTimestamp").is_none(), "it is being deleted: {after}");
    let writes = env.host_writes().await?;
    ensure!(!writes.iter().any(|write| write.starts_with("delete ")), "the host deleted something: {writes:#?}");
    is_tried_seldom(env, "statefulsets").await?;

    returns(env, recreated(stateful_set("two", "child"))).await?;
    let anew = |set: &Value| set["spec"]["serviceName"] == "two" && set["metadata"]["uid"] != before["metadata"]["uid"];
    env.namespace.until("StatefulSet", "child", "to be made anew", anew).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    Ok(())
}

/// Deleting it by hand, as one does with an immutable field, would not help.
async fn only_a_child_that_could_be_created_counts_as_immutable(env: &mut TestEnv) -> Result<()> {
    start_with(env, child(stateful_set("one", "child"))).await?;
    returns(env, child(stateful_set("two", "not a name"))).await?;
    refused(env, "ChildInvalid", "spec.template.spec.containers[0].name").await?;
    // With a name that can be, it is the immutable field alone that is in the way.
    returns(env, child(stateful_set("two", "child"))).await?;
    refused(env, "ImmutableField", "updates to statefulset spec").await
}

/// Starts the host with an object that has this child.
async fn start_with(env: &mut TestEnv, child: Value) -> Result<()> {
    env.start(&["scripted"]).await?;
    returns(env, child).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    Ok(())
}

/// Lets the plugin return this child.
async fn returns(env: &TestEnv, child: Value) -> Result<()> {
    env.namespace.apply(answering("object", json!({"children": [child]}))).await?;
    Ok(())
}

async fn live(env: &TestEnv, kind: &str) -> Result<Value> {
    env.namespace.get(kind, "child").await?.context("the child is gone")
}

/// Waits until the object is stalled for a reason, for its present generation, and checks that its condition and an Event have
/// the API server's own words.
async fn refused(env: &TestEnv, reason: &str, words: &str) -> Result<()> {
    let what = format!("to be stalled with {reason} and '{words}'");
    let holds = |object: &Value| {
        let stalled = condition(object, "Stalled");
        stalled["reason"] == reason
            && stalled["observedGeneration"] == object["metadata"]["generation"]
            && stalled["message"].as_str().is_some_and(|message| message.contains(words))
    };
    env.namespace.until("Scripted", "object", &what, holds).await?;
    let event = env.event("Scripted", "object", reason).await?;
    let message = event["message"].as_str().unwrap_or_default();
    ensure!(event["type"] == "Warning" && message.contains(words), "{event}");
    Ok(())
}

/// Waits for some more tries to write the child, and checks the pauses between them.
async fn is_tried_seldom(env: &TestEnv, resource: &str) -> Result<()> {
    let tries = eventually(PATIENCE, &format!("{TRIES} tries to write the child"), async || {
        let tries = refused_writes(env, resource).await?;
        Ok(if tries.len() >= TRIES { Look::Found(tries) } else { Look::NotYet(format!("{} tries", tries.len())) })
    })
    .await?;
    for pair in tries.windows(2) {
        let pause = Duration::try_from(pair[1].duration_since(pair[0]))?;
        ensure!(pause >= SHORTEST_PAUSE, "it was tried again after {pause:?}, and {} times", tries.len());
    }
    Ok(())
}

/// When the API server refused to change the child.
async fn refused_writes(env: &TestEnv, resource: &str) -> Result<Vec<Timestamp>> {
    let begin = format!("patch {resource}/ child ");
    let writes = env.timed_writes_of(HOST_USER).await?.into_iter();
    let refused = writes.filter(|(_, write)| {
        write.strip_prefix(&begin).is_some_and(|code| code.starts_with('4') || code.starts_with('5'))
    });
    Ok(refused.map(|(at, _)| at).collect())
}

fn child(object: Value) -> Value {
    json!({"object": object})
}

/// A child that the plugin wants to be made again where it cannot be changed.
fn recreated(object: Value) -> Value {
    json!({"object": object, "onImmutable": "recreate"})
}

fn with_variables(env: Value) -> Value {
    deployment("child", json!({"name": "child", "image": "example.com/child:1", "env": env}))
}

/// Its service cannot be changed.
fn stateful_set(service: &str, container: &str) -> Value {
    let mut set = deployment("child", json!({"name": container, "image": "example.com/child:1"}));
    set["kind"] = "StatefulSet".into();
    set["spec"]["serviceName"] = service.into();
    set
}

fn role_binding(role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "child"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    })
}
