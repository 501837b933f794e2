//! Plugins that are wrong, endless or greedy: each fault is told on its own object, and everything else goes on. The
//! process survives all of them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    scene::{Scene, app, is_ready, misbehaver},
    suite::{Suite, tests},
};

/// Acts and the reasons under which they are told.
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

/// How soon a good object is served beside bad ones.
const PROMPT: Duration = Duration::from_secs(3);

/// The limit on a call's computing time, and how long a busy machine may take to grant that much.
const CPU_LIMIT: f64 = 1.0;
const CPU_LIMIT_SEEN: f64 = 8.0;

/// Events of one answer that count.
const EVENTS: usize = 25;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        every_fault_is_told_and_hurts_nobody_else,
        a_trap_is_told_in_the_plugins_own_words,
        an_endless_loop_ends_at_its_limit,
        a_fault_deletes_nothing,
        a_flood_of_events_hurts_nobody_else,
    );
}

async fn every_fault_is_told_and_hurts_nobody_else(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver", "app-service"]).await?;
    let pid = scene.host.pid()?;
    scene.namespace.apply(app("web")).await?;
    scene.at_rest("web").await?;
    for (act, _) in FAULTS {
        let mut object = misbehaver(act, act);
        if act == "many-children" {
            // More than an object may have, but not more than a call may return.
            object["spec"]["number"] = 1_100.into();
        }
        scene.namespace.apply(object).await?;
    }
    let asked = Instant::now();
    scene.namespace.patch("AppService", "web", json!({"spec": {"replicas": 4}})).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 4;
    scene.namespace.until("Deployment", "web", "to have 4 replicas", scaled).await?;
    let took = asked.elapsed();
    eprintln!("an AppService was served {took:?} after its change, beside {} faulty objects", FAULTS.len());
    for (act, reason) in FAULTS {
        let object = scene.stalled("Misbehaver", act, reason).await.with_context(|| format!("the act {act}"))?;
        ensure!(condition(&object, "Stalled")["message"] != "", "no message: {object}");
        let event = scene.event("Misbehaver", act, reason).await?;
        ensure!(event["type"] == "Warning", "{event}");
        ensure!(scene.namespace.get("ConfigMap", act).await?.is_none(), "{act} got its child");
    }
    ensure!(scene.namespace.list("Secret").await?.is_empty(), "an undeclared kind was created");
    ensure!(took < PROMPT, "the AppService was served only after {took:?}");
    scene.at_rest("web").await?;
    // A good object of the bad plugin.
    scene.namespace.apply(misbehaver("good", "well")).await?;
    scene.namespace.until("ConfigMap", "good", "to be created", |_| true).await?;
    ensure!(scene.host.pid()? == pid, "the host is another process");
    ensure!(scene.host.get("health", "/healthz").await?.0 == 200, "the host is not healthy");
    Ok(())
}

/// A panic's message and place are on the object, in one line.
async fn a_trap_is_told_in_the_plugins_own_words(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    let mut object = misbehaver("clumsy", "trap");
    object["spec"]["text"] = "no such küche\nin this house".into();
    scene.namespace.apply(object).await?;
    let object = scene.stalled("Misbehaver", "clumsy", "PluginTrapped").await?;
    let told = condition(&object, "Stalled")["message"].as_str().unwrap_or_default();
    ensure!(told.starts_with("the plugin trapped: panicked at ") && told.contains("excess.rs:"), "told: {told}");
    ensure!(told.ends_with("no such küche in this house"), "told: {told}");
    Ok(())
}

async fn an_endless_loop_ends_at_its_limit(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(misbehaver("endless", "loop")).await?;
    scene.stalled("Misbehaver", "endless", "PluginDeadlineExceeded").await?;
    let metrics = scene.metrics().await?;
    let deadlines = metrics.sum("pilothouse_plugin_calls_total", &[("plugin", "misbehaver"), ("outcome", "deadline")]);
    ensure!(deadlines >= 1.0, "no deadline is counted");
    let of_plugin = [("plugin", "misbehaver")];
    let calls = metrics.sum("pilothouse_plugin_call_seconds_count", &of_plugin);
    let mean = metrics.sum("pilothouse_plugin_call_seconds_sum", &of_plugin) / calls;
    eprintln!("an endless loop was ended after {mean:.3} s");
    ensure!((CPU_LIMIT * 0.9..CPU_LIMIT_SEEN).contains(&mean), "the limit is {CPU_LIMIT} s, but it took {mean} s");
    // It is asked again, later and later, and mends as soon as its object changes.
    scene.namespace.patch("Misbehaver", "endless", json!({"spec": {"act": "well"}})).await?;
    let ready = |object: &Value| condition(object, "Ready")["status"] == "True";
    scene.namespace.until("Misbehaver", "endless", "to be ready", ready).await?;
    Ok(())
}

/// Of ten thousand Events the first few are written, and another object's is not behind them for long.
async fn a_flood_of_events_hurts_nobody_else(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(misbehaver("flood", "many-events")).await?;
    scene.namespace.until("Misbehaver", "flood", "to be ready", is_ready).await?;
    scene.namespace.apply(misbehaver("modest", "warning")).await?;
    scene.event("Misbehaver", "modest", "Acted").await?;
    let events = scene.namespace.list("Event").await?;
    let flood = events.iter().filter(|event| event["involvedObject"]["name"] == "flood").count();
    ensure!(flood == EVENTS, "{flood} Events of one answer were written");
    Ok(())
}

/// A child that is there stays, whatever goes wrong later.
async fn a_fault_deletes_nothing(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(misbehaver("fallen", "well")).await?;
    scene.namespace.until("ConfigMap", "fallen", "to be created", |_| true).await?;
    for (act, reason) in
        [("trap", "PluginTrapped"), ("undeclared-kind", "ChildKindNotDeclared"), ("huge", "PluginOutputLimitExceeded")]
    {
        scene.namespace.patch("Misbehaver", "fallen", json!({"spec": {"act": act}})).await?;
        scene.stalled("Misbehaver", "fallen", reason).await?;
        ensure!(scene.namespace.get("ConfigMap", "fallen").await?.is_some(), "{act} deleted the child");
    }
    // An empty list is no fault: then there shall be none.
    scene.namespace.patch("Misbehaver", "fallen", json!({"spec": {"act": "none"}})).await?;
    scene.namespace.until_gone("ConfigMap", "fallen").await?;
    eventually(PATIENCE, "the object to be ready", async || {
        let object = scene.namespace.get("Misbehaver", "fallen").await?.context("the object is gone")?;
        Ok(Look::of(condition(&object, "Ready")["status"] == "True", object))
    })
    .await
}
