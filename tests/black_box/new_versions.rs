//! Whoever is on duty sees how a new version of a plugin stands: in a column of `kubectl get plugins`, and in a metric.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::PATIENCE,
    metrics::Samples,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    approval, canary,
    canary::{LONG, SHARE},
    command::pilothouse,
    failing_canary::bad,
    plugin_objects::{next, plugin, store},
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The metric, one series for each state.
const METRIC: &str = "pilothouse_plugin_new_version";

/// The states, as the column has them and as the metric has them.
const STATES: [(&str, &str); 3] =
    [("AwaitingApproval", "awaiting_approval"), ("Canary", "canary"), ("RolledBack", "rolled_back")];

pub fn register(suite: &mut Suite) {
    tests!(suite, a_version_that_waits_is_seen, a_version_that_is_taken_back_is_seen);
}

async fn a_version_that_waits_is_seen(env: &mut TestEnv) -> Result<()> {
    approval::begin(env, json!({})).await?;
    shows(env, None).await?;
    store(env, "web", &[&next()?]).await?;
    shows(env, Some("AwaitingApproval")).await?;
    // A plugin that is taken from work waits for nothing.
    env.namespace.patch("Plugin", "web", json!({"spec": {"suspended": true}})).await?;
    shows(env, None).await?;
    env.namespace.patch("Plugin", "web", json!({"spec": {"suspended": false}})).await?;
    shows(env, Some("AwaitingApproval")).await?;
    let kubeconfig = env.namespace.setup().kubeconfig;
    let kubeconfig = kubeconfig.to_str().context("a path that is not text")?;
    eventually(PATIENCE, "the version to be approved", async || {
        // Its plan may not be there yet.
        let approved = pilothouse(["approve", "web", "--yes", "--kubeconfig", kubeconfig]).await?;
        Ok(Look::of(approved.code == 0, approved.errors))
    })
    .await?;
    shows(env, None).await
}

async fn a_version_that_is_taken_back_is_seen(env: &mut TestEnv) -> Result<()> {
    canary::begin(env, json!([{"percent": SHARE.0, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    shows(env, Some("Canary")).await?;
    store(env, "web", &[&bad().await?]).await?;
    shows(env, Some("RolledBack")).await?;
    env.host.kill().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    shows(env, Some("RolledBack")).await?;
    store(env, "web", &[&plugin()?]).await?;
    shows(env, None).await?;
    env.namespace.delete("Plugin", "web").await?;
    eventually(PATIENCE, "the series of the Plugin to go", async || {
        let count = env.metrics().await?.matching(METRIC, &[]).count();
        Ok(Look::of(count == 0, count))
    })
    .await
}

/// Waits until column and metric have a state of the `Plugin` web, or none.
async fn shows(env: &TestEnv, expected: Option<&str>) -> Result<()> {
    eventually(PATIENCE, &format!("the column to be {expected:?}"), async || {
        let cell = column(env).await?;
        Ok(Look::of(cell.as_str() == expected, cell))
    })
    .await?;
    let label = STATES.iter().find(|(state, _)| Some(*state) == expected).map(|(_, label)| *label);
    ensure!(label.is_some() == expected.is_some(), "there is no state {expected:?}");
    eventually(PATIENCE, &format!("the metric to be {label:?}"), async || {
        let states = states(&env.metrics().await?);
        let is_it = |(state, value): &(String, f64)| *value == f64::from(u8::from(Some(&**state) == label));
        Ok(Look::of(states.len() == STATES.len() && states.iter().all(is_it), states))
    })
    .await
}

/// The states in the metric, with their values.
fn states(metrics: &Samples) -> Vec<(String, f64)> {
    let samples = metrics.matching(METRIC, &[("plugin", "web")]);
    samples.filter_map(|sample| Some((sample.label("state")?.to_owned(), sample.value))).collect()
}

/// What `kubectl get plugin web` has in the column.
async fn column(env: &TestEnv) -> Result<Value> {
    let request = http::Request::get("/apis/pilothouse.dev/v1alpha1/plugins/web")
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())?;
    let table: Value = env.cluster.plane.client().await?.request(request).await?;
    let columns = table["columnDefinitions"].as_array().context("no columns")?;
    let place = columns.iter().position(|column| column["name"] == "New Version").context("no such column")?;
    Ok(table["rows"][0]["cells"][place].clone())
}
