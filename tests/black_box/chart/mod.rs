//! The charts in `deploy/helm-charts`, with the real Helm on a real API server: what they render to, what they give rights to, and that the
//! hosts and plugins that they deploy work with that and nothing more.

mod commands;
mod expressions;
mod image;
mod kubernetes_fields;
mod odd_values;
mod plugin_schema;
mod pods;
mod preflight;
mod probes;
mod releases;
mod rendered;
mod rights;
pub mod running;

use std::path::PathBuf;

use anyhow::{Context, Result};
use pilothouse_tests::artifacts;

use crate::suite::Suite;

/// The reference plugins.
pub const PLUGINS: [&str; 7] =
    ["app-service", "training-job", "pytorch-job", "ai-llm-model", "llm-model", "llm-deployment", "model-deployment"];

/// The charts.
const CHARTS: [&str; 2] = ["pilothouse", "llm-operator"];

/// Turns on all that is off by default.
const ALL: [&str; 2] = [
    "--set",
    "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,preflight.enabled=true,priorityAndFairness.enabled=true",
];

pub fn register(suite: &mut Suite) {
    rendered::register(suite);
    odd_values::register(suite);
    kubernetes_fields::register(suite);
    plugin_schema::register(suite);
    releases::register(suite);
    pods::register(suite);
    preflight::register(suite);
    probes::register(suite);
    rights::register(suite);
    running::register(suite);
    expressions::register(suite);
    image::register(suite);
    commands::register(suite);
}

/// The values that install the reference plugins.
fn reference_plugins() -> Result<String> {
    let file: PathBuf = artifacts::repository().join("deploy/helm-charts/pilothouse/examples/reference-plugins.yaml");
    Ok(file.to_str().context("a path that is not text")?.to_owned())
}
