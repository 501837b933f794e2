//! Metrics that plugins declare: exposed as declared, counted once, limited in number, and without conflicts.

use std::time::Duration;

use anyhow::{Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::PATIENCE,
    metrics::Samples,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    command::repacked,
    suite::{Suite, tests},
    test_env::{TestEnv, app, misbehaver},
};

/// The number of objects whose plugin counts at the same time.
const OBJECTS: usize = 20;

/// The counter and the histogram of the act `measure-once`.
const COUNTED: &str = "misbehaver_transitions_total";
const OBSERVED: &str = "misbehaver_seconds";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        samples_add_set_and_are_observed,
        a_transition_is_counted_once,
        a_restart_counts_nothing_again,
        conflicts_count_nothing_twice,
        a_metric_has_a_bound,
        a_metric_that_conflicts_with_another_is_refused,
        a_new_version_keeps_what_it_declares_alike,
    );
}

async fn samples_add_set_and_are_observed(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let metrics = env.metrics().await?;
    ensure!(metrics.has(COUNTED, &[]) && metrics.sum(COUNTED, &[]) == 0.0, "a counter without labels begins at zero");
    ensure!(
        metrics.families.get("misbehaver_value").is_some_and(|value| value.samples == 0),
        "a gauge begins with a value"
    );

    env.namespace.apply(with_number("one", "measure", 7)).await?;
    shown(env, "misbehaver_value", 7.0).await?;
    env.namespace.apply(with_number("one", "measure", 5)).await?;
    let metrics = shown(env, "misbehaver_value", 5.0).await?;
    ensure!(metrics.sum("misbehaver_calls_total", &[("act", "measure")]) >= 2.0, "not counted at each answer");
    let help = &metrics.families["misbehaver_calls_total"].help;
    ensure!(help == "Calls, by act.", "the help is {help:?}");

    env.namespace.apply(with_number("two", "measure-once", 50)).await?;
    let metrics = shown(env, &format!("{OBSERVED}_sum"), 50.0).await?;
    let bucket = |le: &str| metrics.sum(&format!("{OBSERVED}_bucket"), &[("le", le)]);
    ensure!([bucket("1.0"), bucket("10.0"), bucket("100.0"), bucket("+Inf")] == [0.0, 0.0, 1.0, 1.0], "other buckets");
    Ok(())
}

/// The plugin is called before and after its child is written. Only the answer whose status is written counts.
async fn a_transition_is_counted_once(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    for number in 0..OBJECTS {
        env.namespace.apply(with_number(&format!("one-{number}"), "measure-once", 1)).await?;
    }
    for number in 0..OBJECTS {
        measured(env, &format!("one-{number}"), 1).await?;
    }
    counted(env, OBJECTS as f64).await?;
    // Further reconciles of the same state are no new transition.
    for turn in 0..5 {
        env.reconciled_after("misbehaver", async || env.touch("Misbehaver", "one-0", turn).await).await?;
    }
    env.namespace.apply(with_number("one-0", "measure-once", 2)).await?;
    measured(env, "one-0", 2).await?;
    counted(env, OBJECTS as f64 + 1.0).await
}

async fn a_restart_counts_nothing_again(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(with_number("one", "measure-once", 1)).await?;
    measured(env, "one", 1).await?;
    env.host.kill().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.reconciled_after("misbehaver", async || env.touch("Misbehaver", "one", "again").await).await?;
    counted(env, 0.0).await
}

/// The watches are late, so a status write meets a newer state than the plugin saw.
async fn conflicts_count_nothing_twice(env: &mut TestEnv) -> Result<()> {
    const NUMBERS: usize = 8;
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.start(&["misbehaver"]).await?;
    proxy.watches().delay(Duration::from_millis(100));
    for number in 1..=NUMBERS {
        env.namespace.apply(with_number("one", "measure-once", number)).await?;
        for turn in 0..3 {
            env.touch("Misbehaver", "one", format!("{number}-{turn}")).await?;
        }
        measured(env, "one", number).await?;
    }
    let conflicts = env.metrics().await?.sum("rest_client_requests_total", &[("method", "PATCH"), ("code", "409")]);
    ensure!(conflicts > 0.0, "there was no conflict");
    counted(env, NUMBERS as f64).await
}

async fn a_metric_has_a_bound(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    for (name, number) in [("some", 900), ("more", 1_000)] {
        env.namespace.apply(with_number(name, "measure-many", number)).await?;
    }
    env.namespace.apply(with_number("others", "measure", 1)).await?;
    let dropped = [("plugin", "misbehaver")];
    env.host.logged("more than 1000 series").await?;
    eventually(PATIENCE, "samples to be dropped", async || {
        let metrics = env.metrics().await?;
        let series = metrics.families["misbehaver_calls_total"].samples;
        let dropped = metrics.sum("pilothouse_measurements_dropped_total", &dropped);
        Ok(Look::of(series == 1_000 && dropped >= 1.0, (series, dropped)))
    })
    .await?;
    let reported = env.host.log().matches("more than 1000 series").count();
    ensure!(reported == 1, "it is reported {reported} times");
    Ok(())
}

/// The log names the conflict, and the active version goes on.
async fn a_metric_that_conflicts_with_another_is_refused(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver", "app-service"]).await?;
    let declared = |name: &str, kind: &str| {
        let measurement = json!({"name": name, "kind": kind, "help": "Help.", "labels": []});
        move |manifest: &mut Value| manifest["measurements"] = json!([measurement])
    };
    for (name, kind, why) in [
        ("workqueue_depth", "gauge", "has the name of a metric of the host"),
        ("misbehaver_value", "histogram", "declared by plugin 'misbehaver'"),
        ("misbehaver_value_total", "counter", "declared by plugin 'misbehaver'"),
        ("misbehaver_calls_total", "counter", "declared by plugin 'misbehaver'"),
    ] {
        let packed = repacked(&artifacts::plugin("app-service")?, declared(name, kind)).await?;
        env.host.install(packed.path(), "app-service.wasm")?;
        env.host.logged(&format!("the metric `{name}`")).await?;
        env.host.logged(why).await?;
    }
    env.namespace.apply(app("web")).await?;
    env.at_rest("web").await?;
    // A metric that is declared in the same way is shared.
    let packed = repacked(&artifacts::plugin("app-service")?, declared("misbehaver_value", "gauge")).await?;
    env.host.install(packed.path(), "app-service.wasm")?;
    eventually(PATIENCE, "the plugin to be swapped", async || {
        let swaps = env.metrics().await?.sum("pilothouse_plugin_swaps_total", &[("plugin", "app-service")]);
        Ok(Look::of(swaps == 1.0, swaps))
    })
    .await
}

async fn a_new_version_keeps_what_it_declares_alike(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(with_number("one", "measure-once", 1)).await?;
    measured(env, "one", 1).await?;
    counted(env, 1.0).await?;
    let packed = repacked(&artifacts::guest("misbehaver")?, |manifest| {
        manifest["version"] = json!("2.0.0");
        let measurements = manifest["measurements"].as_array_mut().into_iter().flatten();
        measurements.filter(|one| one["name"] == OBSERVED).for_each(|one| one["buckets"] = json!([5]));
    })
    .await?;
    env.host.install(packed.path(), "misbehaver.wasm")?;
    eventually(PATIENCE, "the new version's buckets", async || {
        let metrics = env.metrics().await?;
        let bucket = metrics.has(&format!("{OBSERVED}_bucket"), &[("le", "5.0")]);
        let (count, observed) = (metrics.sum(COUNTED, &[]), metrics.sum(&format!("{OBSERVED}_count"), &[]));
        Ok(Look::of(bucket && (count, observed) == (1.0, 0.0), (bucket, count, observed)))
    })
    .await?;
    env.host.remove("misbehaver.wasm")?;
    eventually(PATIENCE, "the plugin's metrics to go", async || {
        let left = env.metrics().await?.families.into_keys().find(|name| name.starts_with("misbehaver_"));
        Ok(Look::of(left.is_none(), left))
    })
    .await
}

fn with_number(name: &str, act: &str, number: usize) -> Value {
    let mut object = misbehaver(name, act);
    object["spec"]["number"] = json!(number);
    object
}

/// Waits until a metric has a value.
async fn shown(env: &TestEnv, name: &str, value: f64) -> Result<Samples> {
    eventually(PATIENCE, &format!("{name} to be {value}"), async || {
        let metrics = env.metrics().await?;
        let now = metrics.sum(name, &[]);
        Ok(if now == value { Look::Found(metrics) } else { Look::NotYet(now.to_string()) })
    })
    .await
}

/// Waits until the status of an object shows this measurement.
async fn measured(env: &TestEnv, name: &str, number: usize) -> Result<()> {
    let holds = |object: &Value| object["status"]["measured"] == number;
    env.namespace.until("Misbehaver", name, &format!("to have measured {number}"), holds).await?;
    Ok(())
}

/// Waits until the queue is at rest, and checks the number of transitions that were counted.
async fn counted(env: &TestEnv, times: f64) -> Result<()> {
    let metrics = env.metrics_at_rest().await?;
    let (count, observed) = (metrics.sum(COUNTED, &[]), metrics.sum(&format!("{OBSERVED}_count"), &[]));
    ensure!(count == times && observed == times, "{count} counted and {observed} observed of {times}");
    Ok(())
}
