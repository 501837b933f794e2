//! The verdicts wait, retry and invalid, with the conditions and Events of an answer.

use std::time::Duration;

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, app, misbehaver},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        wait_is_reported_and_called_again_after_its_delay,
        retry_is_reported_and_retried_with_backoff,
        invalid_is_reported_and_not_retried,
        the_plugins_ready_condition_is_written,
        a_plugins_events_are_written,
        a_missing_lookup_is_awaited,
        a_lookup_by_selector_follows_what_it_selects,
        a_status_write_of_the_host_triggers_the_objects_that_looked_it_up,
        a_lookup_that_is_not_possible_is_reported,
    );
}

async fn wait_is_reported_and_called_again_after_its_delay(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("patient", "wait")).await?;
    progressing(env, "patient", "Missing").await?;
    // The plugin asks to be called again after one second.
    for _ in 0..2 {
        env.reconciled_after("misbehaver", async || Ok(())).await?;
    }
    // Then the plugin has nothing left to wait for.
    env.namespace.patch("Misbehaver", "patient", json!({"spec": {"act": "well"}})).await?;
    well(env, "patient").await
}

async fn retry_is_reported_and_retried_with_backoff(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("restless", "retry")).await?;
    progressing(env, "restless", "Retrying").await?;
    // 5 ms, doubled each time: more than 12 calls take 20 s.
    let calls = eventually(PATIENCE, "eight calls", async || {
        let calls = env.calls("misbehaver").await?;
        Ok(if calls >= 8.0 { Look::Found(calls) } else { Look::NotYet(calls.to_string()) })
    })
    .await?;
    ensure!(calls < 14.0, "{calls} calls are too many for a delay that doubles");
    env.namespace.patch("Misbehaver", "restless", json!({"spec": {"act": "well"}})).await?;
    well(env, "restless").await
}

async fn invalid_is_reported_and_not_retried(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver", "app-service"]).await?;
    env.namespace.apply(misbehaver("wrong", "invalid")).await?;
    let object = env.stalled("Misbehaver", "wrong", "Invalid").await?;
    ensure!(condition(&object, "Stalled")["message"] == "this cannot be", "{object}");
    env.event("Misbehaver", "wrong", "Invalid").await?;
    // Meanwhile the host reconciles another object.
    env.namespace.apply(app("web")).await?;
    env.at_rest("web").await?;
    let before = env.calls("misbehaver").await?;
    env.reconcile_often("web", 20).await?;
    let after = env.calls("misbehaver").await?;
    ensure!(after == before, "it was called {} more times", after - before);
    env.namespace.patch("Misbehaver", "wrong", json!({"spec": {"act": "well"}})).await?;
    well(env, "wrong").await
}

/// The plugin's own `Ready` is written as long as the host has no reason against it.
async fn the_plugins_ready_condition_is_written(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("humble", "unready")).await?;
    progressing(env, "humble", "Unready").await?;
    env.namespace.patch("Misbehaver", "humble", json!({"spec": {"act": "ready"}})).await?;
    let ready = |object: &Value| condition(object, "Ready")["reason"] == "Acted";
    let object = env.namespace.until("Misbehaver", "humble", "to be ready", ready).await?;
    ensure!(condition(&object, "Ready")["status"] == "True", "{object}");
    ensure!(condition(&object, "Reconciling").is_null(), "{object}");
    Ok(())
}

async fn a_plugins_events_are_written(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("proud", "warning")).await?;
    let event = env.event("Misbehaver", "proud", "Acted").await?;
    ensure!(event["type"] == "Warning" && event["message"] == "it acted", "{event}");
    for field in ["firstTimestamp", "lastTimestamp"] {
        ensure!(event[field].is_string(), "no {field}: {event}");
    }
    ensure!(event["count"].as_i64() >= Some(1), "{event}");
    Ok(())
}

/// A lookup that finds nothing is indexed, too: the object is reconciled when the object that it looked up is created, changed or
/// deleted. The delay that the plugin requests is five minutes.
async fn a_missing_lookup_is_awaited(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut curious = misbehaver("curious", "lookup");
    curious["spec"]["name"] = "source".into();
    env.namespace.apply(curious).await?;
    progressing(env, "curious", "Missing").await?;
    for value in ["one", "two"] {
        let source = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source"}, "data": {"key": value},
        });
        env.namespace.apply(source).await?;
        let copied = |copy: &Value| copy["data"]["key"] == value;
        env.namespace.until("ConfigMap", "curious-copy", "to be a copy", copied).await?;
    }
    env.namespace.delete("ConfigMap", "source").await?;
    progressing(env, "curious", "Missing").await
}

/// A selected object may be created, relabelled and deleted.
async fn a_lookup_by_selector_follows_what_it_selects(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut curious = misbehaver("curious", "lookup-select");
    curious["spec"]["text"] = "app=web,!hidden".into();
    env.namespace.apply(curious).await?;
    let found = async |names: &str| {
        let lists = |child: &Value| child["data"]["names"] == names;
        env.namespace.until("ConfigMap", "curious", &format!("to list '{names}'"), lists).await
    };
    found("").await?;
    for name in ["one", "two"] {
        let labels = json!({"name": name, "labels": {"app": "web"}});
        env.namespace.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": labels})).await?;
    }
    found("one,two").await?;
    env.namespace.patch("ConfigMap", "one", json!({"metadata": {"labels": {"hidden": "yes"}}})).await?;
    found("two").await?;
    env.namespace.delete("ConfigMap", "two").await?;
    found("").await?;
    env.namespace.patch("ConfigMap", "one", json!({"metadata": {"labels": {"hidden": null}}})).await?;
    found("one").await?;
    Ok(())
}

/// A chain of objects: each waits for the status of the next one, and the last one for a ConfigMap. The watch is late, so the host
/// has the response to its status write before the watch event.
async fn a_status_write_of_the_host_triggers_the_objects_that_looked_it_up(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    proxy.watches().delay(Duration::from_millis(200));
    env.start(&["misbehaver"]).await?;
    let chain = [("first", "lookup-ready", "second"), ("second", "lookup-ready", "last"), ("last", "lookup", "source")];
    for (name, act, next) in chain {
        let mut object = misbehaver(name, act);
        object["spec"]["name"] = next.into();
        env.namespace.apply(object).await?;
    }
    progressing(env, "first", "PeerNotReady").await?;
    progressing(env, "second", "PeerNotReady").await?;
    progressing(env, "last", "Missing").await?;
    let source = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source"}});
    env.namespace.apply(source).await?;
    well(env, "first").await
}

/// Lookups of a kind that the manifest does not declare, and of one that the cluster does not have.
async fn a_lookup_that_is_not_possible_is_reported(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    for (act, reason) in [("lookup-denied", "LookupDenied"), ("lookup-absent", "KindNotInstalled")] {
        env.namespace.apply(misbehaver(act, act)).await?;
        progressing(env, act, reason).await?;
    }
    Ok(())
}

/// Waits until an object is reconciling for this reason.
async fn progressing(env: &TestEnv, name: &str, reason: &str) -> Result<()> {
    let holds = |object: &Value| {
        let is = |type_: &str, status: &str| condition(object, type_)["status"] == status;
        let same =
            condition(object, "Reconciling")["reason"] == reason && condition(object, "Ready")["reason"] == reason;
        same && is("Reconciling", "True") && is("Ready", "False") && condition(object, "Stalled").is_null()
    };
    env.namespace.until("Misbehaver", name, &format!("to be reconciling for {reason}"), holds).await?;
    Ok(())
}

async fn well(env: &TestEnv, name: &str) -> Result<()> {
    let ready = |object: &Value| condition(object, "Ready")["status"] == "True";
    env.namespace.until("Misbehaver", name, "to be ready", ready).await?;
    Ok(())
}
