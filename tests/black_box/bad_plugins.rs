//! Plugins that are bad in many ways, all at once, from ConfigMaps and from a registry: each is reported in words that say what to do,
//! and costs the host and its other plugins nothing for long.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    bad_plugins::{Bad, BadPlugins},
    cluster::{PATIENCE, condition},
    process::memory,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    plugin_objects::{plugin, plugin_object, start, store, text, works},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

/// What the host may have more than before, after all that, in MiB: far less than one of the large components, so none is kept. What it really has
/// is printed.
const GROWTH: f64 = 40.0;

/// Those that another plugin keeps from work.
const CONFLICTS: [&str; 3] = ["takes-kind", "takes-kind-in-another-version", "takes-name"];

pub fn register(suite: &mut Suite) {
    tests!(suite, every_kind_of_bad_plugin_is_reported_and_harms_nobody);
}

async fn every_kind_of_bad_plugin_is_reported_and_harms_nobody(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    works(env, "before").await?;
    let before = resident(env)?;

    let BadPlugins { all: bad, .. } = &BadPlugins::of(&plugin()?).await?;
    ensure!(bad.len() >= 30, "only {} kinds", bad.len());
    for Bad { name, keys, spec, .. } in bad {
        if let Some(keys) = keys {
            store(env, name, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>()).await?;
        }
        env.namespace.apply(plugin_object(name, spec.clone())).await.with_context(|| name.clone())?;
    }
    works(env, "during").await?;
    let judged = futures::future::join_all(bad.iter().map(|bad| judge(env, bad))).await;
    let wrong: Vec<_> = judged.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(wrong.is_empty(), "{} of {} are told wrongly:\n{}", wrong.len(), bad.len(), wrong.join("\n"));
    for name in CONFLICTS {
        let (log, source) = (env.host.log(), format!("the Plugin '{name}'"));
        let is_told = |line: &&str| line.contains("the plugin was not loaded") && line.contains(&source);
        let tried = log.lines().filter(is_told).count();
        // For itself, and for its ConfigMap where that is seen later; not for each of the others that came.
        ensure!((1..=2).contains(&tried), "nothing but the same was in its way, and {name} was tried {tried} times");
    }
    works(env, "after").await?;
    let object = env.namespace.get("Plugin", "web").await?.context("no Plugin")?;
    ensure!(is_ready(&object) && object["status"]["version"] == "0.1.0", "the good one was disturbed: {object}");
    eventually(PATIENCE + Duration::from_secs(30), "the host to have its memory back", async || {
        let more = resident(env)? - before;
        Ok(Look::of(more <= GROWTH, format!("{more:.1} MiB more than the {before:.1} before")))
    })
    .await?;
    println!("{} bad plugins; the host had {before:.1} MiB, and has {:.1}", bad.len(), resident(env)?);
    Ok(())
}

/// Waits until a bad plugin is reported as it should be.
async fn judge(env: &TestEnv, Bad { name, reason, words, .. }: &Bad) -> Result<()> {
    let is_reported = |object: &Value| {
        let loaded = condition(object, "Loaded");
        loaded["reason"] == *reason && text(&loaded["message"]).contains(words)
    };
    let object = env.namespace.until("Plugin", name, &format!("to say {reason}, {words}"), is_reported).await?;
    ensure!(!is_ready(&object) && object["status"]["version"].is_null(), "it is at work: {object}");
    Ok(())
}

/// The memory that the host has at the moment, in MiB.
fn resident(env: &TestEnv) -> Result<f64> {
    Ok(memory(env.host.pid()?)?.0)
}
