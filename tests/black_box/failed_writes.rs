//! Reports of failed writes: permanent failures come first, transient ones are reported only if they last, first in the status
//! and then as a Warning Event. The plugin's own status and Events are written nevertheless.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use crate::{
    revisions::Revisions,
    suite::{Suite, tests},
    test_env::{TestEnv, answering, config_map, deployment, is_ready},
};

/// The least time that a transient failure lasts before it becomes a Warning Event: ten seconds, less the rounding of timestamps.
const LASTS: Duration = Duration::from_secs(9);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_first_of_several_failures_and_the_number_of_others_are_reported,
        a_permanent_failure_is_reported_before_a_passing_one,
        a_passing_failure_that_lasts_is_a_warning,
        a_single_failed_request_does_not_make_an_object_unready,
        a_single_conflict_in_a_repair_does_not_make_an_object_unready,
        events_of_an_answer_are_written_also_where_a_write_failed,
    );
}

async fn the_first_of_several_failures_and_the_number_of_others_are_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let children = ["one", "two", "three"].map(invalid);
    returns(env, json!({"children": children})).await?;
    let object = env.stalled("Scripted", "object", "ChildInvalid").await?;
    let message = condition(&object, "Stalled")["message"].as_str().context("no message")?;
    ensure!(message.contains("ConfigMap 'one'"), "the first one is not named: {message}");
    ensure!(message.ends_with("; and 2 more"), "the others are not counted: {message}");
    Ok(())
}

/// The first failure passes by itself. The second one needs somebody to change something.
async fn a_permanent_failure_is_reported_before_a_passing_one(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.start(&["scripted"]).await?;
    proxy.faults().fail(Method::PATCH, "secrets", StatusCode::INTERNAL_SERVER_ERROR);
    let secret = json!({"object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "passing"}}});
    returns(env, json!({"children": [secret, invalid("permanent")]})).await?;
    let object = env.stalled("Scripted", "object", "ChildInvalid").await?;
    let message = condition(&object, "Stalled")["message"].as_str().context("no message")?;
    ensure!(message.contains("ConfigMap 'permanent'"), "another one is named: {message}");
    ensure!(message.ends_with("; and 1 more"), "the other one is not counted: {message}");
    env.event("Scripted", "object", "ChildInvalid").await?;
    Ok(())
}

async fn a_passing_failure_that_lasts_is_a_warning(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.start(&["scripted"]).await?;
    proxy.faults().fail(Method::PATCH, "configmaps", StatusCode::INTERNAL_SERVER_ERROR);
    let object = returns(env, json!({"children": [child("child", "one")]})).await?;
    let event = env.event("Scripted", "object", "ApiServerError").await?;
    ensure!(event["type"] == "Warning", "no warning: {event}");
    ensure!(event["message"].to_string().contains("ConfigMap 'child'"), "it does not say what failed: {event}");
    let began = time(&object["metadata"]["creationTimestamp"])?;
    let lasted = Duration::try_from(time(&event["firstTimestamp"])?.duration_since(began))?;
    ensure!(lasted >= LASTS, "it is a warning after {lasted:?} already");
    proxy.faults().heal();
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    Ok(())
}

/// An alert on an object that is not ready must not fire for a failure that is over with the next try.
async fn a_single_failed_request_does_not_make_an_object_unready(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.start(&["scripted"]).await?;
    returns(env, json!({"children": [child("child", "0")]})).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    for status in [409, 429, 500, 503].map(StatusCode::from_u16) {
        let status = status?;
        let mut revisions = Revisions::of(env, "Scripted", "object").await?;
        proxy.faults().fail_once(Method::PATCH, "configmaps", status);
        returns(env, json!({"children": [child("child", status.as_str())]})).await?;
        let written = |child: &Value| child["data"]["value"] == status.as_str();
        env.namespace.until("ConfigMap", "child", "to be written all the same", written).await?;
        let ready = env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
        revisions.until(&ready).await?;
        was_ready_all_the_time(&revisions).with_context(|| format!("one answer {status}"))?;
    }
    Ok(())
}

/// The port is the key of its list, so a separate request replaces the wrong one before the apply.
async fn a_single_conflict_in_a_repair_does_not_make_an_object_unready(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.start(&["scripted"]).await?;
    let port = json!({"name": "http", "containerPort": 8080});
    let container = json!({"name": "child", "image": "example.com/child:1", "ports": [port]});
    // The plugin says that it is ready. Without that, a Deployment that rolls out would make it unready by itself.
    let ready = json!({"type": "Ready", "status": "True", "reason": "Up"});
    let answer = json!({"children": [{"object": deployment("child", container)}], "conditions": [ready]});
    returns(env, answer).await?;
    env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    let mut revisions = Revisions::of(env, "Scripted", "object").await?;
    proxy.faults().fail_once(Method::PATCH, "deployments", StatusCode::CONFLICT);
    let live = env.namespace.get("Deployment", "child").await?.context("the child is gone")?;
    let mut containers = live["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["ports"][0]["containerPort"] = 9999.into();
    let drifted = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    env.namespace.patch("Deployment", "child", drifted).await?;
    let repaired = |child: &Value| {
        let ports = &child["spec"]["template"]["spec"]["containers"][0]["ports"];
        ports.as_array().is_some_and(|ports| ports.len() == 1 && ports[0]["containerPort"] == 8080)
    };
    env.namespace.until("Deployment", "child", "to have its port again", repaired).await?;
    env.metrics_at_rest().await?;
    let ready = env.namespace.until("Scripted", "object", "to be ready", is_ready).await?;
    revisions.until(&ready).await?;
    was_ready_all_the_time(&revisions)
}

/// The status shows the plugin's transition, so the Events that belong to it must be written, too.
async fn events_of_an_answer_are_written_also_where_a_write_failed(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let answer = json!({
        "children": [invalid("child")],
        "status": {"phase": "Degraded"},
        "events": [{"type": "Warning", "reason": "Degraded", "message": "it got worse"}],
    });
    returns(env, answer).await?;
    let object = env.stalled("Scripted", "object", "ChildInvalid").await?;
    ensure!(object["status"]["phase"] == "Degraded", "the status that the plugin returns is not written: {object}");
    let event = env.event("Scripted", "object", "Degraded").await?;
    ensure!(event["type"] == "Warning" && event["message"] == "it got worse", "{event}");
    Ok(())
}

fn was_ready_all_the_time(revisions: &Revisions) -> Result<()> {
    let is_unready = |object: &&Value| condition(object, "Ready")["status"] != "True";
    let unready = revisions.seen().iter().find(is_unready).map(|object| &object["status"]["conditions"]);
    ensure!(unready.is_none(), "it was unready: {}", unready.unwrap_or_default());
    Ok(())
}

/// Lets the plugin return this answer.
async fn returns(env: &TestEnv, answer: Value) -> Result<Value> {
    env.namespace.apply(answering("object", answer)).await
}

fn child(name: &str, value: &str) -> Value {
    json!({"object": config_map(name, json!({"value": value}))})
}

/// A child that the API server refuses.
fn invalid(name: &str) -> Value {
    json!({"object": config_map(name, json!({"not a key": "x"}))})
}

fn time(value: &Value) -> Result<Timestamp> {
    Ok(value.as_str().context("no time")?.parse()?)
}
