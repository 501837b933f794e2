//! Reports of faults: each fault is in the object's conditions, an Event, a metric and a log line. The log line has the plugin,
//! its version, the host's decision and the cause.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use jiff::Timestamp;
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready, misbehaver},
};

/// Acts and the reasons under which they are reported. The denied write is in `permissions`.
const FAULTS: [(&str, &str); 5] = [
    ("refused-child", "ChildInvalid"),
    ("name-taken", "NameConflict"),
    ("trap", "PluginTrapped"),
    ("loop", "PluginDeadlineExceeded"),
    ("lookup-denied", "LookupDenied"),
];

/// The number of objects whose Events are pending when the host is stopped, and how long the write of one takes.
const LAST: usize = 5;
const SLOW: Duration = Duration::from_millis(200);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        faults_are_reported_everywhere,
        a_repeated_fault_is_one_event_with_a_count,
        events_are_in_the_order_in_which_things_happened,
        events_that_wait_are_written_before_the_end,
    );
}

async fn faults_are_reported_everywhere(env: &mut TestEnv) -> Result<()> {
    begin(env).await?;
    for (act, reason) in FAULTS {
        is_reported_everywhere(env, ("Misbehaver", act), ("misbehaver", "0.1.0"), reason).await?;
    }
    Ok(())
}

/// Each object is touched until the count of its Event has gone up, in a later second than the first time.
async fn a_repeated_fault_is_one_event_with_a_count(env: &mut TestEnv) -> Result<()> {
    begin(env).await?;
    for (act, reason) in FAULTS {
        let first = env.event("Misbehaver", act, reason).await?;
        let mut turn = 0;
        eventually(PATIENCE, &format!("{reason} to be counted again"), async || {
            turn += 1;
            env.touch("Misbehaver", act, turn).await?;
            let event = env.event("Misbehaver", act, reason).await?;
            ensure!(event["metadata"]["uid"] == first["metadata"]["uid"], "another Event: {event}");
            ensure!(event["firstTimestamp"] == first["firstTimestamp"], "it began again: {event}");
            let again = event["count"].as_i64() >= Some(2);
            Ok(Look::of(again && event["lastTimestamp"].as_str() > event["firstTimestamp"].as_str(), event))
        })
        .await?;
        let events = env.namespace.list("Event").await?;
        let same = events.iter().filter(|event| event["involvedObject"]["name"] == act && event["reason"] == reason);
        ensure!(same.count() == 1, "more than one Event of {reason}: {events:#?}");
    }
    Ok(())
}

/// As `kubectl get events --sort-by=.lastTimestamp` lists them: every Event has this time, and the latest one comes last.
async fn events_are_in_the_order_in_which_things_happened(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let names = ["second-in-the-alphabet", "first-in-the-alphabet", "third-in-the-alphabet"];
    for name in names {
        env.namespace.apply(misbehaver(name, "invalid")).await?;
        let event = env.event("Misbehaver", name, "Invalid").await?;
        let reported: Timestamp = event["lastTimestamp"].as_str().context("no lastTimestamp")?.parse()?;
        eventually(PATIENCE, "another second", async || {
            let now = Timestamp::now();
            Ok(Look::of(now.as_second() > reported.as_second(), now))
        })
        .await?;
    }
    let mut events = env.namespace.list("Event").await?;
    ensure!(events.iter().all(|event| event["lastTimestamp"].is_string()), "one cannot be sorted: {events:#?}");
    events.sort_by_key(|event| event["lastTimestamp"].as_str().map(str::to_owned));
    let sorted: Vec<_> = events.iter().filter_map(|event| event["involvedObject"]["name"].as_str()).collect();
    ensure!(sorted == names, "they are listed as {sorted:?}");
    Ok(())
}

/// Events are written one after the other in the background. The host is stopped long before the last one is written.
async fn events_that_wait_are_written_before_the_end(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    proxy.faults().delay(Method::POST, "events", SLOW);
    env.start(&["misbehaver"]).await?;
    for number in 0..LAST {
        env.namespace.apply(misbehaver(&format!("proud-{number}"), "warning")).await?;
    }
    for number in 0..LAST {
        env.namespace.until("Misbehaver", &format!("proud-{number}"), "to be ready", is_ready).await?;
    }
    env.host.stop().await?;
    let events = env.namespace.list("Event").await?;
    ensure!(events.len() == LAST, "{} of {LAST} Events were written", events.len());
    Ok(())
}

/// Starts the host with an object for each fault.
async fn begin(env: &mut TestEnv) -> Result<()> {
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}});
    env.namespace.apply(theirs).await?;
    env.start(&["misbehaver"]).await?;
    for (act, _) in FAULTS {
        env.namespace.apply(misbehaver(act, act)).await?;
    }
    Ok(())
}

/// Waits until a fault is reported in an object's conditions, and checks that the Event, the metric and the log say the same.
pub async fn is_reported_everywhere(
    env: &TestEnv,
    (kind, name): (&str, &str),
    (plugin, version): (&str, &str),
    reason: &str,
) -> Result<()> {
    let says = |object: &Value| {
        let ready = condition(object, "Ready");
        ready["status"] == "False" && ready["reason"] == reason
    };
    let object = env.namespace.until(kind, name, &format!("to be not ready for {reason}"), says).await?;
    let event = env.event(kind, name, reason).await?;
    ensure!(event["type"] == "Warning", "no warning: {event}");
    ensure!(event["involvedObject"]["uid"] == object["metadata"]["uid"], "of another object: {event}");
    for timestamp in ["firstTimestamp", "lastTimestamp"] {
        ensure!(event[timestamp].is_string(), "no {timestamp}: {event}");
    }
    let message = event["message"].as_str().filter(|message| !message.is_empty()).context("no message")?;
    let shown = condition(&object, "Ready")["message"].as_str().context("no message")?;
    ensure!(shown.contains(message), "the condition says {shown:?}, and the Event {message:?}");
    let counted = env.metrics().await?.sum("pilothouse_faults_total", &[("plugin", plugin), ("reason", reason)]);
    ensure!(counted >= 1.0, "{reason} is not counted");

    let identity = json!({
        "name": "reconcile", "plugin": plugin, "version": version,
        "object": format!("{}/{name}", env.namespace.name),
    });
    let log = env.host.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = lines.into_iter().find(|line| line["reason"] == reason && line["span"] == identity);
    let line = line.with_context(|| format!("no line in the log tells of {reason} with {identity}"))?;
    ensure!(line["message"] == message, "the log says something else than {message:?}: {line}");
    ensure!(line["decision"].as_str().is_some_and(|decision| decision.len() > 3), "no decision: {line}");
    Ok(())
}
