//! Answers with children that every API server would refuse. The host refuses the whole answer before any request and reports it
//! on that object only. It never panics, and a malformed name never ends up in a URL.

use std::path::Path;

use anyhow::{Result, ensure};
use pilothouse_tests::{artifacts, cluster::condition};
use serde_json::{Value, json};

use crate::{
    command::{Ended, file, pilothouse},
    suite::{Suite, tests},
    test_env::{TestEnv, answering, config_map, is_ready, returning, scripted},
};

/// Names that no object can have, of which some would lead to another request.
const NAMES: [&str; 8] = ["a?dryRun=All", "a#b", "my app", "a/b", "../secrets/a", "..", "a%2Fb", "a\nb"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        malformed_labels_and_annotations_refuse_the_whole_answer,
        a_malformed_name_is_never_sent,
        a_name_that_only_some_kinds_allow_is_sent,
        an_event_without_a_reason_refuses_the_answer,
        render_refuses_what_the_host_refuses,
    );
}

/// Cases of malformed metadata: the name of the case, the metadata, and the field that the message must name.
fn malformed_metadata() -> Vec<(&'static str, Value, &'static str)> {
    let long = "x".repeat(64);
    vec![
        ("labels-text", json!({"labels": "x"}), "metadata.labels"),
        ("labels-list", json!({"labels": ["x"]}), "metadata.labels"),
        ("labels-number", json!({"labels": 1}), "metadata.labels"),
        ("label-number", json!({"labels": {"app": 1}}), "metadata.labels"),
        ("label-object", json!({"labels": {"app": {}}}), "metadata.labels"),
        ("label-value", json!({"labels": {"app": "not a value"}}), "metadata.labels"),
        ("label-value-long", json!({"labels": {"app": long}}), "metadata.labels"),
        ("label-key", json!({"labels": {"not a key": "x"}}), "metadata.labels"),
        ("label-key-empty", json!({"labels": {"": "x"}}), "metadata.labels"),
        ("label-key-long", json!({"labels": {long.as_str(): "x"}}), "metadata.labels"),
        ("label-prefix", json!({"labels": {"Not_A_Domain/app": "x"}}), "metadata.labels"),
        ("annotations-text", json!({"annotations": "x"}), "metadata.annotations"),
        ("annotations-list", json!({"annotations": ["x"]}), "metadata.annotations"),
        ("annotation-number", json!({"annotations": {"note": 1}}), "metadata.annotations"),
        ("annotation-object", json!({"annotations": {"note": {}}}), "metadata.annotations"),
        ("annotation-key", json!({"annotations": {"not a key": "x"}}), "metadata.annotations"),
        ("label-of-the-host", json!({"labels": {"pilothouse.dev/owner-uid": "x"}}), "metadata.labels"),
        (
            "annotation-of-the-host",
            json!({"annotations": {"pilothouse.dev/on-removal": "keep"}}),
            "metadata.annotations",
        ),
        ("namespace-number", json!({"namespace": 1}), "metadata.namespace"),
    ]
}

async fn malformed_labels_and_annotations_refuse_the_whole_answer(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    for (case, metadata, _) in malformed_metadata() {
        let mut spec = returning([config_map(&format!("{case}-good"), json!({})), with_metadata(case, &metadata)]);
        // A kept child has other annotations of the host.
        if case.starts_with("annotation") {
            spec["response"]["children"][1]["onRemoval"] = "keep".into();
        }
        env.namespace.apply(scripted(case, spec)).await?;
    }
    for (case, _, field) in malformed_metadata() {
        is_refused(env, case, &[&format!("ConfigMap '{case}'"), field]).await?;
    }
    nothing_was_sent(env).await?;
    serves_other_objects(env).await
}

async fn a_malformed_name_is_never_sent(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    for (number, name) in NAMES.iter().enumerate() {
        let children = [config_map(&format!("good-{number}"), json!({})), config_map(name, json!({}))];
        env.namespace.apply(scripted(&format!("name-{number}"), returning(children))).await?;
    }
    for (number, name) in NAMES.iter().enumerate() {
        let shown = name.lines().next().unwrap_or_default();
        is_refused(env, &format!("name-{number}"), &[shown, "metadata.name"]).await?;
    }
    nothing_was_sent(env).await?;
    serves_other_objects(env).await
}

/// Most names are DNS names, but those of Roles are not.
async fn a_name_that_only_some_kinds_allow_is_sent(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "web:Reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    });
    env.namespace.apply(scripted("web", returning([role]))).await?;
    env.namespace.until("Role", "web:Reader", "to be created", |_| true).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.namespace.patch("Role", "web:Reader", json!({"rules": []})).await?;
    let is_repaired = |role: &Value| role["rules"][0]["verbs"] == json!(["get"]);
    env.namespace.until("Role", "web:Reader", "to be repaired", is_repaired).await?;
    env.namespace.apply(scripted("web", returning([]))).await?;
    env.namespace.until_gone("Role", "web:Reader").await
}

/// The API server would refuse such an Event, and it would be lost without a report.
async fn an_event_without_a_reason_refuses_the_answer(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    for (name, reason) in [("none", ""), ("two-words", "not ready"), ("long", &*"x".repeat(129))] {
        let event = json!({"reason": reason, "message": "something happened"});
        let answer = json!({"children": [{"object": config_map(name, json!({}))}], "events": [event]});
        env.namespace.apply(answering(name, answer)).await?;
        is_refused(env, name, &["Event", &format!("'{reason}'")]).await?;
    }
    nothing_was_sent(env).await?;
    serves_other_objects(env).await
}

async fn render_refuses_what_the_host_refuses(env: &mut TestEnv) -> Result<()> {
    for (case, metadata, field) in malformed_metadata() {
        let ended = render(env, returning([with_metadata(case, &metadata)])).await?;
        ended.failed_with(&["the plugin returned", &format!("ConfigMap '{case}'"), field])?;
    }
    for name in NAMES {
        let ended = render(env, returning([config_map(name, json!({}))])).await?;
        ended.failed_with(&["the plugin returned", name.lines().next().unwrap_or_default(), "metadata.name"])?;
    }
    Ok(())
}

async fn render(env: &TestEnv, spec: Value) -> Result<Ended> {
    let mut object = scripted("web", spec);
    object["metadata"]["namespace"] = env.namespace.name.clone().into();
    let object = file(object.to_string().as_bytes())?;
    let (plugin, cache) = (artifacts::guest("scripted")?, env.namespace.setup().cache);
    pilothouse([Path::new("render"), &plugin, object.path(), Path::new("--cache-dir"), &cache]).await
}

/// A ConfigMap with additional metadata.
fn with_metadata(name: &str, metadata: &Value) -> Value {
    let mut child = config_map(name, json!({}));
    for (field, value) in metadata.as_object().into_iter().flatten() {
        child["metadata"][field] = value.clone();
    }
    child
}

async fn is_refused(env: &TestEnv, name: &str, words: &[&str]) -> Result<()> {
    let object = env.stalled("Scripted", name, "PluginContractViolated").await?;
    let message = condition(&object, "Stalled")["message"].as_str().unwrap_or_default();
    ensure!(words.iter().all(|word| message.contains(word)), "the message does not name {words:?}: {message}");
    Ok(())
}

/// Checks that the host wrote no child, neither a valid nor a malformed one.
async fn nothing_was_sent(env: &TestEnv) -> Result<()> {
    let writes = env.host_writes().await?;
    let of_children: Vec<_> = writes
        .iter()
        .filter(|write| ["scripteds/", "events/", "pilothouse-kinds"].iter().all(|own| !write.contains(own)))
        .collect();
    ensure!(of_children.is_empty(), "the host wrote {of_children:#?}");
    Ok(())
}

/// Checks that other objects are still reconciled and that the host has not panicked.
async fn serves_other_objects(env: &TestEnv) -> Result<()> {
    env.namespace.apply(scripted("good", returning([config_map("good", json!({}))]))).await?;
    env.namespace.until("Scripted", "good", "to be ready", is_ready).await?;
    let panics = env.metrics().await?.sum("controller_runtime_reconcile_panics_total", &[]);
    ensure!(panics == 0.0, "the host panicked {panics} times");
    Ok(())
}
