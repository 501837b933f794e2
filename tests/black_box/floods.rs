//! Plugins that say too much: Events and log lines have a limit over time, so that one plugin fills neither the API server's storage nor the
//! log, and what the host itself has to say of an object is told all the same.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use pilothouse_tests::{
    cluster::PATIENCE,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    plugin_objects::{self, plugin, plugin_object, store},
    suite::{Suite, tests},
    test_env::{TestEnv, answering, is_ready, misbehaver},
};

/// The Events of one answer, and of one object until time has passed.
const EVENTS: usize = 25;

/// How long it takes until an object may have one more.
const ONE_MORE: Duration = Duration::from_secs(300);

/// The bytes of log lines of a plugin, at once and a second (a little more, for the time of a byte is rounded), and what a line costs
/// besides its own.
const LOG_BYTES: usize = 4 << 20;
const LOG_BYTES_A_SECOND: f64 = 16_500.0;
const LOG_LINE: usize = 256;

/// Objects whose plugin writes ten thousand lines in each call: enough of them go over the limit.
const CHATTERING: usize = 16;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        events_of_a_plugin_have_a_limit_over_time,
        log_lines_of_a_plugin_have_a_limit_over_time,
        a_status_is_not_fought_over_without_end,
    );
}

async fn events_of_a_plugin_have_a_limit_over_time(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let started = Instant::now();
    let saying = |text: &str| -> Vec<Value> {
        (0..EVENTS).map(|number| json!({"reason": "Acted", "message": format!("{text} {number}")})).collect()
    };
    for turn in ["first", "second", "third"] {
        env.namespace.apply(answering("noisy", json!({"events": saying(turn)}))).await?;
        env.namespace.until("Scripted", "noisy", "to be ready", is_ready).await?;
    }
    eventually(PATIENCE, "the Events that are dropped to be counted", async || {
        let dropped = env.metrics().await?.sum("pilothouse_events_dropped_total", &[("plugin", "scripted")]);
        Ok(Look::of(dropped >= EVENTS as f64, dropped))
    })
    .await?;
    // The host's own Events come nevertheless. Events are written in their order, so the plugin's are there by then.
    let refused = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}});
    env.namespace.apply(answering("noisy", json!({"children": [{"object": refused}]}))).await?;
    env.event("Scripted", "noisy", "ChildKindNotDeclared").await?;
    let events = env.namespace.list("Event").await?;
    let written = events.iter().filter(|event| event["reason"] == "Acted").count();
    let most = EVENTS + (started.elapsed().as_secs() / ONE_MORE.as_secs()) as usize;
    ensure!((EVENTS..=most).contains(&written), "{written} Events of the plugin were written, and {most} may be");
    let told = env.host.log().matches("there are more Events than an object or a plugin may have").count();
    ensure!(told == 1, "it was told {told} times that Events are dropped");
    Ok(())
}

async fn log_lines_of_a_plugin_have_a_limit_over_time(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver", "scripted"]).await?;
    let started = Instant::now();
    for number in 0..CHATTERING {
        env.namespace.apply(misbehaver(&format!("chattering-{number}"), "many-logs")).await?;
    }
    for number in 0..CHATTERING {
        env.namespace.until("Misbehaver", &format!("chattering-{number}"), "to be ready", is_ready).await?;
    }
    let told = "the plugin writes more log lines than it may";
    env.host.logged(told).await?;
    // Another plugin's lines are not missed.
    env.namespace.apply(answering("modest", json!({}))).await?;
    env.host.logged("lookups done").await?;
    let dropped = env.metrics_at_rest().await?.sum("pilothouse_log_lines_dropped_total", &[("plugin", "misbehaver")]);
    ensure!(dropped > 10_000.0, "{dropped} lines are counted as dropped");
    let log = env.log_lines();
    let lines = log.iter().filter_map(|line| line["message"].as_str()).filter(|message| message.starts_with("line "));
    let bytes: usize = lines.map(|line| line.len() + LOG_LINE).sum();
    let most = LOG_BYTES as f64 + started.elapsed().as_secs_f64() * LOG_BYTES_A_SECOND;
    ensure!(bytes as f64 <= most, "lines of {bytes} bytes were written, and {most} may be");
    let told = env.host.log().matches(told).count();
    ensure!(told == 1, "it was told {told} times that lines are dropped");
    Ok(())
}

/// A second host of the cluster, as a second release of the chart, writes the status of the same `Plugin`s.
async fn a_status_is_not_fought_over_without_end(env: &mut TestEnv) -> Result<()> {
    plugin_objects::start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    let (api, client) = (env.namespace.api("Plugin")?, env.cluster.plane.client().await?);
    let about = ListParams::default().fields("involvedObject.kind=Plugin,reason=StatusContested");
    let mut total = 1_000;
    eventually(PATIENCE, "the host to tell of somebody else", async || {
        for _ in 0..20 {
            total += 1;
            let other = json!({"status": {"objects": {"total": total}}});
            api.patch_status("web", &PatchParams::default(), &Patch::Merge(other)).await?;
        }
        let events = Api::<Event>::namespaced(client.clone(), "default").list(&about).await?.items;
        Ok(Look::of(events.iter().any(|event| event.involved_object.name.as_deref() == Some("web")), total))
    })
    .await?;
    // What was put off is done once it is quiet.
    let is_right = |object: &Value| object["status"]["objects"]["total"] == 0 && is_ready(object);
    env.namespace.until("Plugin", "web", "to have its own status", is_right).await.map(drop)
}
