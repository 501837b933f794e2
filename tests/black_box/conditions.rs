//! Conditions and status follow the API conventions, whatever a plugin returns and whatever the kind's schema declares.

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::cluster::{api, condition};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, answering, is_ready},
};

/// The longest message of a condition (`metav1.Condition`).
const LONGEST_MESSAGE: usize = 32_768;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_reason_to_wait_must_be_a_word,
        two_conditions_of_one_type_are_refused,
        long_messages_of_conditions_are_cut,
        ready_says_that_the_plugin_leaves_the_children_as_they_are,
        a_status_is_written_without_the_fields_that_the_schema_lacks,
        a_status_field_that_the_schema_loses_and_gets_back_is_noticed,
        a_status_field_that_changes_its_type_is_an_event,
        a_status_subresource_that_the_crd_loses_is_reported,
        a_status_field_of_somebody_else_is_no_fault_of_the_schema,
        a_status_that_the_api_server_refuses_is_reported,
    );
}

/// The reason to wait becomes the reason of a condition.
async fn a_reason_to_wait_must_be_a_word(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    for (name, reason) in [("two-words", "not ready"), ("none", "")] {
        let wait = json!({"reason": reason, "message": "something is missing", "seconds": 300});
        env.namespace.apply(answering(name, json!({"verdict": {"wait": wait}}))).await?;
        let object = env.stalled("Scripted", name, "PluginContractViolated").await?;
        let message = condition(&object, "Stalled")["message"].to_string();
        ensure!(message.contains(&format!("'{reason}'")), "it does not say which reason is wrong: {message}");
    }
    Ok(())
}

/// The API server would refuse them as well, with every retry.
async fn two_conditions_of_one_type_are_refused(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let condition_of = |status: &str| json!({"type": "Available", "status": status, "reason": "Counted"});
    let answer = json!({"status": {"phase": "Up"}, "conditions": [condition_of("True"), condition_of("False")]});
    env.namespace.apply(answering("object", answer)).await?;
    let object = env.stalled("Scripted", "object", "PluginContractViolated").await?;
    let message = condition(&object, "Stalled")["message"].to_string();
    ensure!(message.contains("'Available'"), "it does not say which condition it is: {message}");
    ensure!(object["status"].get("phase").is_none(), "a part of the answer was taken: {object}");
    Ok(())
}

/// The limit counts bytes, and no character is cut in two.
async fn long_messages_of_conditions_are_cut(env: &mut TestEnv) -> Result<()> {
    let long = "ü".repeat(LONGEST_MESSAGE - 5_000);
    env.start(&["scripted"]).await?;
    let available = json!({"type": "Available", "status": "True", "reason": "Counted", "message": long});
    env.namespace.apply(answering("own", json!({"conditions": [available]}))).await?;
    let own = env.namespace.until("Scripted", "own", "to be ready", is_ready).await?;
    env.namespace.apply(answering("hosts", json!({"verdict": {"invalid": long}}))).await?;
    let hosts = env.stalled("Scripted", "hosts", "Invalid").await?;
    for (object, condition_type) in [(own, "Available"), (hosts, "Stalled")] {
        let message = condition(&object, condition_type)["message"].as_str().context("no message")?;
        ensure!(message.len() <= LONGEST_MESSAGE, "{condition_type} has a message of {} bytes", message.len());
        let begin =
            message.strip_suffix('…').with_context(|| format!("{condition_type} does not say that it is cut"))?;
        ensure!(begin.len() > LONGEST_MESSAGE - 10 && begin.chars().all(|c| c == 'ü'), "{condition_type}: {message}");
    }
    Ok(())
}

/// Nothing was applied, so `Ready` says nothing about the children, and its message explains that.
async fn ready_says_that_the_plugin_leaves_the_children_as_they_are(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("object", json!({"verdict": "done"}))).await?;
    let object = env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    let message = condition(&object, "Ready")["message"].to_string();
    ensure!(message.contains("the plugin leaves the children as they are"), "{message}");
    env.namespace.apply(answering("other", json!({"children": []}))).await?;
    let object = env.namespace.until("Scripted", "other", "to be ready", is_ready).await?;
    let message = condition(&object, "Ready")["message"].to_string();
    ensure!(!message.contains("leaves"), "it is said also where there shall be none: {message}");
    Ok(())
}

/// The CRD declares `phase`, `note` and `count`. The fields that it lacks are reported once, and the others are written.
async fn a_status_is_written_without_the_fields_that_the_schema_lacks(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let answer = |count: u32| {
        json!({
            "status": {"phase": "Up", "count": count, "endpoint": "here", "usage": {"bytes": count}},
            "conditions": [{"type": "Available", "status": "True", "reason": "Counted"}],
        })
    };
    for count in 1..=3 {
        env.namespace.apply(answering("object", answer(count))).await?;
        let written = |object: &Value| is_ready(object) && object["status"]["count"] == count;
        let object = env.namespace.until("Scripted", "object", "to have the rest of its status", written).await?;
        ensure!(object["status"]["phase"] == "Up", "{object}");
        ensure!(condition(&object, "Available")["status"] == "True", "{object}");
    }
    let event = env.event("Scripted", "object", "StatusFieldsDropped").await?;
    let message = event["message"].to_string();
    ensure!(event["type"] == "Warning", "{event}");
    ensure!(message.contains("endpoint") && message.contains("usage"), "it does not name what is missing: {event}");
    ensure!(!message.contains("phase"), "it names what is there: {event}");
    let reported = env.log_lines().into_iter().filter(|line| line["reason"] == "StatusFieldsDropped").count();
    ensure!(reported == 1, "the log says so {reported} times");
    Ok(())
}

/// Somebody edits the CustomResourceDefinition while the host runs. The host must notice by itself that a field is declared again.
async fn a_status_field_that_the_schema_loses_and_gets_back_is_noticed(env: &mut TestEnv) -> Result<()> {
    const NOTE: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/note";
    start_with_own_crd(env).await?;
    let apply = async |count: u32| {
        let status = json!({"phase": "Up", "note": "here", "count": count});
        env.namespace.apply(answering("object", json!({"status": status}))).await
    };
    let with_note = |object: &Value| is_ready(object) && object["status"]["note"] == "here";
    apply(0).await?;
    env.namespace.until("Scripted", "object", "to have all of its status", with_note).await?;
    for count in 1..=3 {
        edit_crd(env, json!({"op": "remove", "path": NOTE})).await?;
        apply(count).await?;
        let without_note = |object: &Value| {
            let status = &object["status"];
            is_ready(object) && status["count"] == count && status.get("note").is_none()
        };
        env.namespace.until("Scripted", "object", "to have its status without the field", without_note).await?;
        edit_crd(env, json!({"op": "add", "path": NOTE, "value": {"type": "string"}})).await?;
        env.namespace.until("Scripted", "object", "to have all of its status again", with_note).await?;
    }
    Ok(())
}

/// The value that is stored has the wrong type from then on, so no status can be written any more. Only an Event can say so.
async fn a_status_field_that_changes_its_type_is_an_event(env: &mut TestEnv) -> Result<()> {
    const COUNT: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/count/type";
    start_with_own_crd(env).await?;
    env.namespace.apply(answering("object", json!({"status": {"count": 1}}))).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    edit_crd(env, json!({"op": "replace", "path": COUNT, "value": "string"})).await?;
    // Not by an apply: that fails like the host's, once the API server goes by the new schema.
    env.namespace.patch("Scripted", "object", json!({"spec": {"response": {"status": {"count": "two"}}}})).await?;
    let event = env.event("Scripted", "object", "ApiServerError").await?;
    ensure!(event["type"] == "Warning" && event["message"].to_string().contains("status"), "{event}");
    Ok(())
}

/// The API server answers as if there were no such object.
async fn a_status_subresource_that_the_crd_loses_is_reported(env: &mut TestEnv) -> Result<()> {
    const SUBRESOURCES: &str = "/spec/versions/0/subresources";
    start_with_own_crd(env).await?;
    env.namespace.apply(answering("object", json!({"status": {"count": 1}}))).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    edit_crd(env, json!({"op": "remove", "path": SUBRESOURCES})).await?;
    env.namespace.apply(answering("object", json!({"status": {"count": 2}}))).await?;
    let event = env.event("Scripted", "object", "StatusSubresourceMissing").await?;
    ensure!(event["type"] == "Warning", "{event}");

    edit_crd(env, json!({"op": "add", "path": SUBRESOURCES, "value": {"status": {}}})).await?;
    let written = |object: &Value| is_ready(object) && object["status"]["count"] == 2;
    env.namespace.until("Scripted", "object", "to have its new status", written).await?;
    Ok(())
}

/// Starts the plugin `scripted` on an API server of its own, because the test edits the plugin's CustomResourceDefinition.
async fn start_with_own_crd(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["tests/guests/scripted/child-crd.yaml", "tests/guests/scripted/crd.yaml"]).await?;
    env.start(&["scripted"]).await
}

/// Edits the CustomResourceDefinition of `Scripted` by an operation of a JSON patch.
async fn edit_crd(env: &TestEnv, operation: Value) -> Result<()> {
    let patch: Patch<Value> = Patch::Json(serde_json::from_value(json!([operation]))?);
    let crds = api(&env.namespace.client(), "CustomResourceDefinition", None)?;
    crds.patch("scripteds.test.pilothouse.dev", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Another controller writes a status field that the schema declares. The host neither removes it nor reports it.
async fn a_status_field_of_somebody_else_is_no_fault_of_the_schema(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("object", json!({"status": {"phase": "Up"}}))).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    env.reconciled_after("scripted", async || {
        let theirs = json!({
            "apiVersion": "test.pilothouse.dev/v1", "kind": "Scripted", "status": {"note": "theirs"},
        });
        let other = PatchParams::apply("other");
        env.namespace.api("Scripted")?.patch_status("object", &other, &Patch::Apply(theirs)).await?;
        Ok(())
    })
    .await?;
    env.namespace.apply(answering("object", json!({"status": {"phase": "Down"}}))).await?;
    let written = |object: &Value| is_ready(object) && object["status"]["phase"] == "Down";
    let object = env.namespace.until("Scripted", "object", "to have a new status", written).await?;
    ensure!(object["status"]["note"] == "theirs", "their field is gone: {object}");
    env.metrics_at_rest().await?;
    let warnings: Vec<_> = env.log_lines().into_iter().filter(|line| line["level"] == "WARN").collect();
    ensure!(warnings.is_empty(), "the host warns: {warnings:#?}");
    Ok(())
}

/// The value of a field has a wrong type. An object that was ready before must not stay ready, and its conditions say what is
/// wrong.
async fn a_status_that_the_api_server_refuses_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("object", json!({"children": [], "status": {"count": 1}}))).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    env.namespace.apply(answering("object", json!({"children": [], "status": {"count": "one"}}))).await?;
    let stalled = env.stalled("Scripted", "object", "StatusInvalid").await?;
    ensure!(condition(&stalled, "Stalled")["observedGeneration"] == stalled["metadata"]["generation"], "{stalled}");
    ensure!(stalled["status"]["count"] == 1, "what was there before stays: {stalled}");
    env.event("Scripted", "object", "StatusInvalid").await?;
    env.namespace.apply(answering("object", json!({"children": [], "status": {"count": 2}}))).await?;
    env.namespace.until("Scripted", "object", "to be ready again", is_ready).await?;
    Ok(())
}
