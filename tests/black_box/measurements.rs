//! Metrics that plugins declare themselves: shown as declared, counted once, bounded, and never in the way of others.

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
    scene::{Scene, app, misbehaver},
    suite::{Suite, tests},
};

/// Objects that count at once.
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
        a_metric_in_the_way_of_another_is_refused,
        a_new_version_keeps_what_it_declares_alike,
    );
}

async fn samples_add_set_and_are_observed(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    let metrics = scene.metrics().await?;
    ensure!(metrics.has(COUNTED, &[]) && metrics.sum(COUNTED, &[]) == 0.0, "a counter without labels begins at zero");
    ensure!(
        metrics.families.get("misbehaver_value").is_some_and(|value| value.samples == 0),
        "a gauge begins with a value"
    );

    scene.namespace.apply(with_number("one", "measure", 7)).await?;
    shown(scene, "misbehaver_value", 7.0).await?;
    scene.namespace.apply(with_number("one", "measure", 5)).await?;
    let metrics = shown(scene, "misbehaver_value", 5.0).await?;
    ensure!(metrics.sum("misbehaver_calls_total", &[("act", "measure")]) >= 2.0, "not counted at each answer");
    let help = &metrics.families["misbehaver_calls_total"].help;
    ensure!(help == "Calls, by act.", "the help is {help:?}");

    scene.namespace.apply(with_number("two", "measure-once", 50)).await?;
    let metrics = shown(scene, &format!("{OBSERVED}_sum"), 50.0).await?;
    let bucket = |le: &str| metrics.sum(&format!("{OBSERVED}_bucket"), &[("le", le)]);
    ensure!([bucket("1.0"), bucket("10.0"), bucket("100.0"), bucket("+Inf")] == [0.0, 0.0, 1.0, 1.0], "other buckets");
    Ok(())
}

/// The first answer comes before the child is written, the second with it; only what the status says counts.
async fn a_transition_is_counted_once(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    for number in 0..OBJECTS {
        scene.namespace.apply(with_number(&format!("one-{number}"), "measure-once", 1)).await?;
    }
    for number in 0..OBJECTS {
        measured(scene, &format!("one-{number}"), 1).await?;
    }
    counted(scene, OBJECTS as f64).await?;
    // Reconciled again and again, it is the same transition.
    for turn in 0..5 {
        scene.reconciled_after("misbehaver", async || scene.touch("Misbehaver", "one-0", turn).await).await?;
    }
    scene.namespace.apply(with_number("one-0", "measure-once", 2)).await?;
    measured(scene, "one-0", 2).await?;
    counted(scene, OBJECTS as f64 + 1.0).await
}

async fn a_restart_counts_nothing_again(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(with_number("one", "measure-once", 1)).await?;
    measured(scene, "one", 1).await?;
    scene.host.kill().await?;
    scene.host.resume().await?;
    scene.host.ready().await?;
    scene.reconciled_after("misbehaver", async || scene.touch("Misbehaver", "one", "again").await).await?;
    counted(scene, 0.0).await
}

/// The host learns late of what others do, so that the status meets another state than the plugin saw.
async fn conflicts_count_nothing_twice(scene: &mut Scene) -> Result<()> {
    const NUMBERS: usize = 8;
    let proxy = scene.behind_proxy(&scene.upstream().await?).await?;
    scene.start(&["misbehaver"]).await?;
    proxy.watches().delay(Duration::from_millis(100));
    for number in 1..=NUMBERS {
        scene.namespace.apply(with_number("one", "measure-once", number)).await?;
        for turn in 0..3 {
            scene.touch("Misbehaver", "one", format!("{number}-{turn}")).await?;
        }
        measured(scene, "one", number).await?;
    }
    let conflicts = scene.metrics().await?.sum("rest_client_requests_total", &[("method", "PATCH"), ("code", "409")]);
    ensure!(conflicts > 0.0, "there was no conflict");
    counted(scene, NUMBERS as f64).await
}

async fn a_metric_has_a_bound(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    for (name, number) in [("some", 900), ("more", 1_000)] {
        scene.namespace.apply(with_number(name, "measure-many", number)).await?;
    }
    scene.namespace.apply(with_number("others", "measure", 1)).await?;
    let dropped = [("plugin", "misbehaver")];
    scene.host.logged("more than 1000 series").await?;
    eventually(PATIENCE, "samples to be dropped", async || {
        let metrics = scene.metrics().await?;
        let series = metrics.families["misbehaver_calls_total"].samples;
        let dropped = metrics.sum("pilothouse_measurements_dropped_total", &dropped);
        Ok(Look::of(series == 1_000 && dropped >= 1.0, (series, dropped)))
    })
    .await?;
    let told = scene.host.log().matches("more than 1000 series").count();
    ensure!(told == 1, "it is told {told} times");
    Ok(())
}

/// The file is told with what is in its way, and what works goes on.
async fn a_metric_in_the_way_of_another_is_refused(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver", "app-service"]).await?;
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
        scene.host.install(packed.path(), "app-service.wasm")?;
        scene.host.logged(&format!("the metric `{name}`")).await?;
        scene.host.logged(why).await?;
    }
    scene.namespace.apply(app("web")).await?;
    scene.at_rest("web").await?;
    // Declared alike, it is shared.
    let packed = repacked(&artifacts::plugin("app-service")?, declared("misbehaver_value", "gauge")).await?;
    scene.host.install(packed.path(), "app-service.wasm")?;
    eventually(PATIENCE, "the plugin to be swapped", async || {
        let swaps = scene.metrics().await?.sum("pilothouse_plugin_swaps_total", &[("plugin", "app-service")]);
        Ok(Look::of(swaps == 1.0, swaps))
    })
    .await
}

async fn a_new_version_keeps_what_it_declares_alike(scene: &mut Scene) -> Result<()> {
    scene.start(&["misbehaver"]).await?;
    scene.namespace.apply(with_number("one", "measure-once", 1)).await?;
    measured(scene, "one", 1).await?;
    counted(scene, 1.0).await?;
    let packed = repacked(&artifacts::guest("misbehaver")?, |manifest| {
        manifest["version"] = json!("2.0.0");
        let measurements = manifest["measurements"].as_array_mut().into_iter().flatten();
        measurements.filter(|one| one["name"] == OBSERVED).for_each(|one| one["buckets"] = json!([5]));
    })
    .await?;
    scene.host.install(packed.path(), "misbehaver.wasm")?;
    eventually(PATIENCE, "the new version's buckets", async || {
        let metrics = scene.metrics().await?;
        let bucket = metrics.has(&format!("{OBSERVED}_bucket"), &[("le", "5.0")]);
        let (count, observed) = (metrics.sum(COUNTED, &[]), metrics.sum(&format!("{OBSERVED}_count"), &[]));
        Ok(Look::of(bucket && (count, observed) == (1.0, 0.0), (bucket, count, observed)))
    })
    .await?;
    std::fs::remove_file(scene.host.plugins().join("misbehaver.wasm"))?;
    eventually(PATIENCE, "the plugin's metrics to go", async || {
        let left = scene.metrics().await?.families.into_keys().find(|name| name.starts_with("misbehaver_"));
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
async fn shown(scene: &Scene, name: &str, value: f64) -> Result<Samples> {
    eventually(PATIENCE, &format!("{name} to be {value}"), async || {
        let metrics = scene.metrics().await?;
        let now = metrics.sum(name, &[]);
        Ok(if now == value { Look::Found(metrics) } else { Look::NotYet(now.to_string()) })
    })
    .await
}

/// Waits until an object's status says what was measured.
async fn measured(scene: &Scene, name: &str, number: usize) -> Result<()> {
    let holds = |object: &Value| object["status"]["measured"] == number;
    scene.namespace.until("Misbehaver", name, &format!("to have measured {number}"), holds).await?;
    Ok(())
}

/// Waits until the queue is at rest; so many transitions have been counted then.
async fn counted(scene: &Scene, times: f64) -> Result<()> {
    let metrics = scene.metrics_at_rest().await?;
    let (count, observed) = (metrics.sum(COUNTED, &[]), metrics.sum(&format!("{OBSERVED}_count"), &[]));
    ensure!(count == times && observed == times, "{count} counted and {observed} observed of {times}");
    Ok(())
}
