//! A plugin's verdicts: what the host makes of wait, retry and invalid, and of the conditions and Events beside them.

use std::time::Duration;

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    scene::{Scene, app, misbehaver},
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        wait_is_shown_and_asked_again,
        retry_is_shown_and_asked_again_ever_later,
        invalid_is_shown_and_not_asked_again,
        a_plugins_own_condition_counts,
        a_plugins_events_are_written,
        a_missing_lookup_is_awaited,
        a_lookup_by_selector_follows_what_it_selects,
        a_status_that_the_host_writes_wakes_those_who_look_it_up,
        a_lookup_that_cannot_be_is_shown,
    );
}

async fn wait_is_shown_and_asked_again(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(misbehaver("patient", "wait")).await?;
    progressing(scene, "patient", "Missing").await?;
    // It asked for one second.
    for _ in 0..2 {
        scene.reconciled_after("misbehaver", async || Ok(())).await?;
    }
    // What it waits for comes.
    scene.namespace.patch("Misbehaver", "patient", json!({"spec": {"act": "well"}})).await?;
    well(scene, "patient").await
}

async fn retry_is_shown_and_asked_again_ever_later(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(misbehaver("restless", "retry")).await?;
    progressing(scene, "restless", "Retrying").await?;
    // 5 ms, doubled each time: more than 12 calls take 20 s.
    let calls = eventually(PATIENCE, "eight calls", async || {
        let calls = scene.calls("misbehaver").await?;
        Ok(if calls >= 8.0 { Look::Found(calls) } else { Look::NotYet(calls.to_string()) })
    })
    .await?;
    ensure!(calls < 14.0, "{calls} calls are too many for a delay that doubles");
    scene.namespace.patch("Misbehaver", "restless", json!({"spec": {"act": "well"}})).await?;
    well(scene, "restless").await
}

async fn invalid_is_shown_and_not_asked_again(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver", "app-service"]).await?;
    scene.namespace.apply(misbehaver("wrong", "invalid")).await?;
    let object = scene.stalled("Misbehaver", "wrong", "Invalid").await?;
    ensure!(condition(&object, "Stalled")["message"] == "this cannot be", "{object}");
    scene.event("Misbehaver", "wrong", "Invalid").await?;
    // The host is busy with other things meanwhile.
    scene.namespace.apply(app("web")).await?;
    scene.at_rest("web").await?;
    let before = scene.calls("misbehaver").await?;
    scene.reconcile_often("web", 20).await?;
    let after = scene.calls("misbehaver").await?;
    ensure!(after == before, "it was called {} more times", after - before);
    scene.namespace.patch("Misbehaver", "wrong", json!({"spec": {"act": "well"}})).await?;
    well(scene, "wrong").await
}

/// `Ready` is the plugin's own word as long as the host has nothing to say against it.
async fn a_plugins_own_condition_counts(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(misbehaver("humble", "unready")).await?;
    progressing(scene, "humble", "Unready").await?;
    scene.namespace.patch("Misbehaver", "humble", json!({"spec": {"act": "ready"}})).await?;
    let ready = |object: &Value| condition(object, "Ready")["reason"] == "Acted";
    let object = scene.namespace.until("Misbehaver", "humble", "to be ready", ready).await?;
    ensure!(condition(&object, "Ready")["status"] == "True", "{object}");
    ensure!(condition(&object, "Reconciling").is_null(), "{object}");
    Ok(())
}

async fn a_plugins_events_are_written(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(misbehaver("proud", "warning")).await?;
    let event = scene.event("Misbehaver", "proud", "Acted").await?;
    ensure!(event["type"] == "Warning" && event["message"] == "it acted", "{event}");
    for field in ["firstTimestamp", "lastTimestamp"] {
        ensure!(event[field].is_string(), "no {field}: {event}");
    }
    ensure!(event["count"].as_i64() >= Some(1), "{event}");
    Ok(())
}

/// A lookup that finds nothing is remembered: the object is reconciled as soon as what it looked for is there, changes
/// or goes. The plugin itself asks for five minutes.
async fn a_missing_lookup_is_awaited(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    let mut curious = misbehaver("curious", "lookup");
    curious["spec"]["name"] = "source".into();
    scene.namespace.apply(curious).await?;
    progressing(scene, "curious", "Missing").await?;
    for value in ["one", "two"] {
        let source = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source"}, "data": {"key": value},
        });
        scene.namespace.apply(source).await?;
        let copied = |copy: &Value| copy["data"]["key"] == value;
        scene.namespace.until("ConfigMap", "curious-copy", "to be a copy", copied).await?;
    }
    scene.namespace.delete("ConfigMap", "source").await?;
    progressing(scene, "curious", "Missing").await
}

/// What is selected may come, get another label, and go.
async fn a_lookup_by_selector_follows_what_it_selects(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    let mut curious = misbehaver("curious", "lookup-select");
    curious["spec"]["text"] = "app=web,!hidden".into();
    scene.namespace.apply(curious).await?;
    let found = async |names: &str| {
        let lists = |child: &Value| child["data"]["names"] == names;
        scene.namespace.until("ConfigMap", "curious", &format!("to list '{names}'"), lists).await
    };
    found("").await?;
    for name in ["one", "two"] {
        let labels = json!({"name": name, "labels": {"app": "web"}});
        scene.namespace.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": labels})).await?;
    }
    found("one,two").await?;
    scene.namespace.patch("ConfigMap", "one", json!({"metadata": {"labels": {"hidden": "yes"}}})).await?;
    found("two").await?;
    scene.namespace.delete("ConfigMap", "two").await?;
    found("").await?;
    scene.namespace.patch("ConfigMap", "one", json!({"metadata": {"labels": {"hidden": null}}})).await?;
    found("one").await?;
    Ok(())
}

/// A chain of objects of one host: each waits for the next one's status, the last for a ConfigMap. The watch is late, so that
/// the host has the answer to its status write before the event of it.
async fn a_status_that_the_host_writes_wakes_those_who_look_it_up(scene: &mut Scene) -> Result<()> {
    let proxy = scene.behind_proxy(&scene.upstream().await?).await?;
    proxy.watches().delay(Duration::from_millis(200));
    scene.start(&["misbehaver"]).await?;
    let chain = [("first", "lookup-ready", "second"), ("second", "lookup-ready", "last"), ("last", "lookup", "source")];
    for (name, act, next) in chain {
        let mut object = misbehaver(name, act);
        object["spec"]["name"] = next.into();
        scene.namespace.apply(object).await?;
    }
    progressing(scene, "first", "PeerNotReady").await?;
    progressing(scene, "second", "PeerNotReady").await?;
    progressing(scene, "last", "Missing").await?;
    let source = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source"}});
    scene.namespace.apply(source).await?;
    well(scene, "first").await
}

/// Lookups of a kind that the manifest does not declare, and of one that the cluster does not have.
async fn a_lookup_that_cannot_be_is_shown(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    for (act, reason) in [("lookup-denied", "LookupDenied"), ("lookup-absent", "KindNotInstalled")] {
        scene.namespace.apply(misbehaver(act, act)).await?;
        progressing(scene, act, reason).await?;
    }
    Ok(())
}

/// Waits until an object says that it is on its way, for a reason.
async fn progressing(scene: &Scene, name: &str, reason: &str) -> Result<()> {
    let holds = |object: &Value| {
        let is = |type_: &str, status: &str| condition(object, type_)["status"] == status;
        let same =
            condition(object, "Reconciling")["reason"] == reason && condition(object, "Ready")["reason"] == reason;
        same && is("Reconciling", "True") && is("Ready", "False") && condition(object, "Stalled").is_null()
    };
    scene.namespace.until("Misbehaver", name, &format!("to be reconciling for {reason}"), holds).await?;
    Ok(())
}

async fn well(scene: &Scene, name: &str) -> Result<()> {
    let ready = |object: &Value| condition(object, "Ready")["status"] == "True";
    scene.namespace.until("Misbehaver", name, "to be ready", ready).await?;
    Ok(())
}
