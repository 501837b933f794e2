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

/// The shortest pause between two tries of a permanently refused write: half of the first delay.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);

/// The number of edits after which a backoff that begins with a second is longer than a test waits.
const EDITS: usize = 8;

/// The number of tries that a test waits for.
const TRIES: usize = 3;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_field_reference_that_is_refused_is_reported,
        an_environment_variable_that_is_there_twice_is_reported,
        a_text_in_the_place_of_a_number_is_reported,
        a_number_in_the_place_of_a_text_is_reported,
        a_value_of_a_secret_that_is_refused_is_not_quoted,
        a_field_that_the_kind_does_not_have_is_reported,
        a_role_binding_cannot_change_its_role,
        a_role_binding_is_recreated_for_another_role,
        a_service_with_a_fixed_node_port_is_recreated,
        a_service_is_not_deleted_for_a_cluster_ip_that_is_taken,
        a_child_whose_new_form_admission_refuses_is_not_deleted,
        a_policy_that_answers_like_the_validation_denies,
        a_child_that_could_not_be_recreated_is_not_deleted,
        only_a_child_that_could_be_created_counts_as_immutable,
        a_refused_child_does_not_delay_the_call_that_its_plugin_asked_for,
    );
}

/// A plugin has a deadline of its own to keep, however often the write was refused: each edit of the object is one more failure in a row.
async fn a_refused_child_does_not_delay_the_call_that_its_plugin_asked_for(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let invalid = with_variables(json!([{"name": "A", "value": "one"}, {"name": "A", "value": "two"}]));
    env.namespace.apply(answering("object", json!({"children": [{"object": invalid}], "requeueAfter": 2}))).await?;
    refused(env, "ChildInvalid", "duplicate entries for key").await?;
    for edit in 0..EDITS {
        env.reconciled_after("scripted", async || env.touch("Scripted", "object", edit).await).await?;
    }
    let reconciles = env.reconciles("scripted").await?;
    eventually(PATIENCE, "three more reconciles", async || {
        let now = env.reconciles("scripted").await?;
        Ok(Look::of(now >= reconciles + 3.0, now))
    })
    .await
}

/// The message contains `metadata.uid`, which is also the field that guards the host's updates.
async fn a_field_reference_that_is_refused_is_reported(env: &mut TestEnv) -> Result<()> {
    start_with(env, child(with_variables(json!([{"name": "A", "value": "one"}])))).await?;
    let reference = json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uids"}}});
    returns(env, child(with_variables(json!([reference])))).await?;
    refused(env, "ChildInvalid", "field label not supported: metadata.uids").await?;
    is_retried_rarely(env, "deployments").await
}

/// The API server answers 500, as for an error of its own. The same goes for the next two tests.
async fn an_environment_variable_that_is_there_twice_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let twice = json!([{"name": "A", "value": "one"}, {"name": "A", "value": "two"}]);
    returns(env, child(with_variables(twice))).await?;
    refused(env, "ChildInvalid", "duplicate entries for key").await?;
    is_retried_rarely(env, "deployments").await
}

async fn a_text_in_the_place_of_a_number_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let mut replicas = with_variables(json!([]));
    replicas["spec"]["replicas"] = "3".into();
    returns(env, child(replicas)).await?;
    refused(env, "ChildInvalid", ".spec.replicas: expected numeric").await?;
    is_retried_rarely(env, "deployments").await
}

/// The API server quotes a value whose type is wrong.
async fn a_value_of_a_secret_that_is_refused_is_not_quoted(env: &mut TestEnv) -> Result<()> {
    env.host.set_log_level(Some("debug"));
    env.start(&["scripted"]).await?;
    for (data, why) in [
        (json!({"token": 424_242_424}), "data.token is no text"),
        (json!({"token": "hunter-two!"}), "data.token is not in base64"),
        (json!("hunter-two!"), "data is no map"),
    ] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child"}, "data": data});
        returns(env, child(secret)).await?;
        stalled(env, "ChildInvalid", why).await?;
        let object = env.namespace.get("Scripted", "object").await?.context("no object")?;
        let events = json!(env.namespace.list("Event").await?).to_string();
        let (status, log) = (object["status"].to_string(), env.host.log());
        for quoted in ["424242424", "hunter-two"] {
            for (place, text) in [("status", &status), ("Event", &events), ("log", &log)] {
                let line = text.lines().find(|line| line.contains(quoted)).unwrap_or_default();
                ensure!(line.is_empty(), "{data}: the {place} quotes it: {line}");
            }
        }
    }
    Ok(())
}

/// Of a kind of the API server and of one with a CRD: nothing is dropped without a word.
async fn a_field_that_the_kind_does_not_have_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let mut built_in = with_variables(json!([]));
    built_in["spec"]["maxUnavailable"] = 1.into();
    returns(env, child(built_in)).await?;
    refused(env, "ChildInvalid", ".spec.maxUnavailable: field not declared in schema").await?;
    let custom = json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "ScriptedChild", "metadata": {"name": "child"},
        "spec": {"text": "one", "txet": "two"},
    });
    returns(env, child(custom)).await?;
    stalled(env, "ChildInvalid", ".spec.txet: field not declared in schema").await
}

async fn a_number_in_the_place_of_a_text_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    returns(env, child(config_map("child", json!({"retries": 3})))).await?;
    refused(env, "ChildInvalid", ".data.retries: expected string").await?;
    is_retried_rarely(env, "configmaps").await
}

/// The API server's message for this field says neither "immutable" nor "forbidden".
async fn a_role_binding_cannot_change_its_role(env: &mut TestEnv) -> Result<()> {
    start_with(env, child(role_binding("reader"))).await?;
    let before = live(env, "RoleBinding").await?;
    returns(env, child(role_binding("writer"))).await?;
    refused(env, "ImmutableField", "cannot change roleRef").await?;
    is_retried_rarely(env, "rolebindings").await?;
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

/// The new Service needs the node port of the old one.
async fn a_service_with_a_fixed_node_port_is_recreated(env: &mut TestEnv) -> Result<()> {
    const NODE_PORT: u16 = 32_765;
    let service = |class: &str| {
        let spec = json!({
            "type": "LoadBalancer", "loadBalancerClass": format!("example.com/{class}"), "selector": {"app": "web"},
            "ports": [{"port": 80, "nodePort": NODE_PORT}],
        });
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "child"}, "spec": spec})
    };
    start_with(env, recreated(service("one"))).await?;
    let before = live(env, "Service").await?;
    returns(env, recreated(service("two"))).await?;
    let anew = |service: &Value| {
        service["spec"]["loadBalancerClass"] == "example.com/two"
            && service["spec"]["ports"][0]["nodePort"] == NODE_PORT
            && service["metadata"]["uid"] != before["metadata"]["uid"]
    };
    env.namespace.until("Service", "child", "to be made anew", anew).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    Ok(())
}

/// The API server's dry run would create the Service: it does not look whether the address is free.
async fn a_service_is_not_deleted_for_a_cluster_ip_that_is_taken(env: &mut TestEnv) -> Result<()> {
    let service = |name: &str, mut spec: Value| {
        spec["ports"] = json!([{"port": 80}]);
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
    };
    let taken = env.namespace.apply(service("other", json!({}))).await?["spec"]["clusterIP"].clone();
    start_with(env, recreated(service("child", json!({})))).await?;
    let before = live(env, "Service").await?;
    returns(env, recreated(service("child", json!({"clusterIP": taken})))).await?;
    refused(env, "ImmutableField", "delete it by hand").await?;
    let after = live(env, "Service").await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {after}");
    returns(env, recreated(service("child", json!({"clusterIP": "None"})))).await?;
    let anew = |service: &Value| service["spec"]["clusterIP"] == "None";
    env.namespace.until("Service", "child", "to be made anew without an address", anew).await?;
    Ok(())
}

/// The class of priority does not exist, which an admission plugin of the API server finds out after the validation.
async fn a_child_whose_new_form_admission_refuses_is_not_deleted(env: &mut TestEnv) -> Result<()> {
    let pod = |priority: Value| {
        let container = json!({"name": "child", "image": "example.com/child:1"});
        let spec =
            json!({"containers": [container], "priorityClassName": priority, "terminationGracePeriodSeconds": 0});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "child"}, "spec": spec})
    };
    start_with(env, recreated(pod(Value::Null))).await?;
    let before = live(env, "Pod").await?;
    returns(env, recreated(pod("missing".into()))).await?;
    let denied = |object: &Value| {
        let ready = condition(object, "Ready");
        ready["reason"] == "AdmissionDenied" && ready["message"].to_string().contains("missing")
    };
    env.namespace.until("Scripted", "object", "to be denied", denied).await?;
    let after = live(env, "Pod").await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {after}");
    ensure!(after["metadata"].get("deletionTimestamp").is_none(), "it is being deleted: {after}");

    returns(env, recreated(pod("system-node-critical".into()))).await?;
    let anew = |pod: &Value| pod["spec"]["priorityClassName"] == "system-node-critical";
    env.namespace.until("Pod", "child", "to be made anew", anew).await?;
    Ok(())
}

/// A policy may answer 422, as the validation does. Nothing is wrong with the child then, and it can be let in without a change of it.
async fn a_policy_that_answers_like_the_validation_denies(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let name = env.namespace.name.clone();
    let group = "admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]});
    let policy = json!({
        "apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{
                "expression": "!has(object.data) || !('denied' in object.data)", "message": "not in here", "reason": "Invalid",
            }],
        },
    });
    let binding = json!({
        "apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {
            "policyName": name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}},
        },
    });
    env.namespace.apply(policy).await?;
    env.namespace.apply(binding).await?;
    let denied = || config_map("child", json!({"denied": "yes"}));
    eventually(PATIENCE, "the policy to be obeyed", async || {
        let made = env.namespace.apply(denied()).await;
        if made.is_ok() {
            env.namespace.delete("ConfigMap", "child").await?;
        }
        Ok(Look::of(made.is_err(), "it lets everything in"))
    })
    .await?;

    returns(env, child(denied())).await?;
    let is_denied = |object: &Value| {
        let ready = condition(object, "Ready");
        ready["reason"] == "AdmissionDenied" && ready["message"].to_string().contains("not in here")
    };
    env.namespace.until("Scripted", "object", "to be denied", is_denied).await?;
    env.namespace.delete("ValidatingAdmissionPolicyBinding", &name).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    env.namespace.delete("ValidatingAdmissionPolicy", &name).await
}

/// The change would need a new StatefulSet, which is invalid. The old one stays until the mistake is corrected.
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
    is_retried_rarely(env, "statefulsets").await?;

    returns(env, recreated(stateful_set("two", "child"))).await?;
    let anew = |set: &Value| set["spec"]["serviceName"] == "two" && set["metadata"]["uid"] != before["metadata"]["uid"];
    env.namespace.until("StatefulSet", "child", "to be made anew", anew).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    Ok(())
}

/// `ImmutableField` would suggest to delete the child by hand, which would not help here.
async fn only_a_child_that_could_be_created_counts_as_immutable(env: &mut TestEnv) -> Result<()> {
    start_with(env, child(stateful_set("one", "child"))).await?;
    returns(env, child(stateful_set("two", "not a name"))).await?;
    refused(env, "ChildInvalid", "spec.template.spec.containers[0].name").await?;
    // With a valid name, only the immutable field is left as the cause.
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

/// Waits until the object is stalled for this reason in its present generation, and checks that its condition and an Event have
/// these words of the API server.
async fn refused(env: &TestEnv, reason: &str, words: &str) -> Result<()> {
    stalled(env, reason, words).await?;
    let event = env.event("Scripted", "object", reason).await?;
    let message = event["message"].as_str().unwrap_or_default();
    ensure!(event["type"] == "Warning" && message.contains(words), "{event}");
    Ok(())
}

/// Waits until the object is stalled for this reason in its present generation, with these words of the API server.
async fn stalled(env: &TestEnv, reason: &str, words: &str) -> Result<()> {
    let what = format!("to be stalled with {reason} and '{words}'");
    let holds = |object: &Value| {
        let stalled = condition(object, "Stalled");
        stalled["reason"] == reason
            && stalled["observedGeneration"] == object["metadata"]["generation"]
            && stalled["message"].as_str().is_some_and(|message| message.contains(words))
    };
    env.namespace.until("Scripted", "object", &what, holds).await?;
    Ok(())
}

/// Waits for some more tries to write the child, and checks the pauses between them.
async fn is_retried_rarely(env: &TestEnv, resource: &str) -> Result<()> {
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

/// The times at which the API server refused the content of the child. A conflict (409) is none: the child's own controller wrote its
/// status at the same time, and the next try is about the new state.
async fn refused_writes(env: &TestEnv, resource: &str) -> Result<Vec<Timestamp>> {
    let begin = format!("patch {resource}/ child ");
    let writes = env.timed_writes_of(HOST_USER).await?.into_iter();
    let refused = writes.filter(|(_, write)| {
        let code = write.strip_prefix(&begin);
        code.is_some_and(|code| (code.starts_with('4') && code != "409") || code.starts_with('5'))
    });
    Ok(refused.map(|(at, _)| at).collect())
}

fn child(object: Value) -> Value {
    json!({"object": object})
}

/// A child with the policy to recreate it if an immutable field changes.
fn recreated(object: Value) -> Value {
    json!({"object": object, "onImmutable": "recreate"})
}

fn with_variables(env: Value) -> Value {
    deployment("child", json!({"name": "child", "image": "example.com/child:1", "env": env}))
}

/// A StatefulSet. Its `serviceName` is immutable.
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
