//! Faulty plugins: each fault is reported on its own object, and everything else goes on, including the process.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready, misbehaver},
};

/// Acts and the reasons under which they are reported.
const FAULTS: [(&str, &str); 21] = [
    ("loop", "PluginDeadlineExceeded"),
    ("allocate", "PluginMemoryLimitExceeded"),
    ("recurse", "PluginTrapped"),
    ("trap", "PluginTrapped"),
    ("invalid-json", "PluginContractViolated"),
    ("deep-json", "PluginContractViolated"),
    ("bad-status", "PluginContractViolated"),
    ("no-name", "PluginContractViolated"),
    ("host-condition", "PluginContractViolated"),
    ("empty-reason", "PluginContractViolated"),
    ("undeclared-measurement", "PluginContractViolated"),
    ("wrong-label", "PluginContractViolated"),
    ("negative-measurement", "PluginContractViolated"),
    ("huge", "PluginOutputLimitExceeded"),
    ("huge-status", "PluginOutputLimitExceeded"),
    ("undeclared-kind", "ChildKindNotDeclared"),
    ("cluster-child", "ChildScopeNotAllowed"),
    ("other-namespace", "ChildScopeNotAllowed"),
    ("duplicate", "DuplicateChild"),
    ("many-children", "TooManyChildren"),
    ("refused-child", "ChildInvalid"),
];

/// The longest time until another plugin's object is reconciled beside faulty ones.
const PROMPT: Duration = Duration::from_secs(3);

/// The limit of a call's computing time, and how long a call may take on a busy machine until it has used that up.
const CPU_LIMIT: f64 = 1.0;
const CPU_LIMIT_SEEN: f64 = 8.0;

/// The number of Events of one answer that are written.
const EVENTS: usize = 25;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        every_fault_is_reported_and_hurts_nobody_else,
        a_trap_is_reported_with_the_plugins_message,
        an_endless_loop_ends_at_its_limit,
        a_fault_deletes_nothing,
        a_flood_of_events_hurts_nobody_else,
    );
}

async fn every_fault_is_reported_and_hurts_nobody_else(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver", "app-service"]).await?;
    let pid = env.host.pid()?;
    env.namespace.apply(app("web")).await?;
    env.at_rest("web").await?;
    for (act, _) in FAULTS {
        let mut object = misbehaver(act, act);
        if act == "many-children" {
            // More than an object may have, but not more than a call may return.
            object["spec"]["number"] = 2_600.into();
        }
        env.namespace.apply(object).await?;
    }
    let asked = Instant::now();
    env.namespace.patch("AppService", "web", json!({"spec": {"replicas": 4}})).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 4;
    env.namespace.until("Deployment", "web", "to have 4 replicas", scaled).await?;
    let took = asked.elapsed();
    eprintln!("an AppService was served {took:?} after its change, beside {} faulty objects", FAULTS.len());
    for (act, reason) in FAULTS {
        let object = env.stalled("Misbehaver", act, reason).await.with_context(|| format!("the act {act}"))?;
        ensure!(condition(&object, "Stalled")["message"] != "", "no message: {object}");
        let event = env.event("Misbehaver", act, reason).await?;
        ensure!(event["type"] == "Warning", "{event}");
        ensure!(env.namespace.get("ConfigMap", act).await?.is_none(), "{act} got its child");
    }
    ensure!(env.namespace.list("Secret").await?.is_empty(), "an undeclared kind was created");
    ensure!(took < PROMPT, "the AppService was served only after {took:?}");
    env.at_rest("web").await?;
    // A valid object of the faulty plugin.
    env.namespace.apply(misbehaver("good", "well")).await?;
    env.namespace.until("ConfigMap", "good", "to be created", |_| true).await?;
    ensure!(env.host.pid()? == pid, "the host is another process");
    ensure!(env.host.get("health", "/healthz").await?.0 == 200, "the host is not healthy");
    Ok(())
}

/// The message and place of a panic are in the object's condition, in one line.
async fn a_trap_is_reported_with_the_plugins_message(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut object = misbehaver("clumsy", "trap");
    object["spec"]["text"] = "no such küche\nin this house".into();
    env.namespace.apply(object).await?;
    let object = env.stalled("Misbehaver", "clumsy", "PluginTrapped").await?;
    let message = condition(&object, "Stalled")["message"].as_str().unwrap_or_default();
    ensure!(
        message.starts_with("the plugin trapped: panicked at ") && message.contains("excess.rs:"),
        "message: {message}"
    );
    ensure!(message.ends_with("no such küche in this house"), "message: {message}");
    Ok(())
}

async fn an_endless_loop_ends_at_its_limit(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("endless", "loop")).await?;
    env.stalled("Misbehaver", "endless", "PluginDeadlineExceeded").await?;
    let metrics = env.metrics().await?;
    let deadlines = metrics.sum("pilothouse_plugin_calls_total", &[("plugin", "misbehaver"), ("outcome", "deadline")]);
    ensure!(deadlines >= 1.0, "no deadline is counted");
    let of_plugin = [("plugin", "misbehaver")];
    let calls = metrics.sum("pilothouse_plugin_call_seconds_count", &of_plugin);
    let mean = metrics.sum("pilothouse_plugin_call_seconds_sum", &of_plugin) / calls;
    eprintln!("an endless loop was ended after {mean:.3} s");
    ensure!((CPU_LIMIT * 0.9..CPU_LIMIT_SEEN).contains(&mean), "the limit is {CPU_LIMIT} s, but it took {mean} s");
    // The plugin is called again with growing delays, and at once when the object changes.
    env.namespace.patch("Misbehaver", "endless", json!({"spec": {"act": "well"}})).await?;
    let ready = |object: &Value| condition(object, "Ready")["status"] == "True";
    env.namespace.until("Misbehaver", "endless", "to be ready", ready).await?;
    Ok(())
}

/// Only the first of ten thousand Events are written, so the Event of another object is not delayed.
async fn a_flood_of_events_hurts_nobody_else(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("flood", "many-events")).await?;
    env.namespace.until("Misbehaver", "flood", "to be ready", is_ready).await?;
    env.namespace.apply(misbehaver("modest", "warning")).await?;
    env.event("Misbehaver", "modest", "Acted").await?;
    let events = env.namespace.list("Event").await?;
    let flood = events.iter().filter(|event| event["involvedObject"]["name"] == "flood").count();
    ensure!(flood == EVENTS, "{flood} Events of one answer were written");
    Ok(())
}

/// An existing child stays, whatever fails later.
async fn a_fault_deletes_nothing(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("fallen", "well")).await?;
    env.namespace.until("ConfigMap", "fallen", "to be created", |_| true).await?;
    for (act, reason) in
        [("trap", "PluginTrapped"), ("undeclared-kind", "ChildKindNotDeclared"), ("huge", "PluginOutputLimitExceeded")]
    {
        env.namespace.patch("Misbehaver", "fallen", json!({"spec": {"act": act}})).await?;
        env.stalled("Misbehaver", "fallen", reason).await?;
        ensure!(env.namespace.get("ConfigMap", "fallen").await?.is_some(), "{act} deleted the child");
    }
    // An empty list is no fault: the plugin wants no children.
    env.namespace.patch("Misbehaver", "fallen", json!({"spec": {"act": "none"}})).await?;
    env.namespace.until_gone("ConfigMap", "fallen").await?;
    eventually(PATIENCE, "the object to be ready", async || {
        let object = env.namespace.get("Misbehaver", "fallen").await?.context("the object is gone")?;
        Ok(Look::of(condition(&object, "Ready")["status"] == "True", object))
    })
    .await
}
