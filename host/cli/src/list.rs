//! `pilothouse list`: prints the plugins of a cluster and how they are. Changes nothing.

use anyhow::Context;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::ResourceExt;
use pilothouse_controller::api::{Condition, Plugin, list_plugins};
use serde::Serialize;

use crate::{
    age::age,
    cluster::{Cluster, block_on},
    output, table,
};

/// List the plugins of a cluster: their Plugin objects, what is at work, and how their objects are.
#[derive(Args)]
pub struct List {
    /// Print as: a table, or the Plugin objects as JSON.
    #[arg(long, short, default_value = "table")]
    output: Output,
    #[command(flatten)]
    cluster: Cluster,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

impl List {
    /// Runs the command.
    ///
    /// # Errors
    /// If the cluster does not answer, or has no `Plugin`s.
    pub fn execute(&self) -> anyhow::Result<()> {
        let plugins = block_on(async {
            let plugins = list_plugins(self.cluster.client().await?).await;
            plugins.context("failed to list the Plugins; is their CRD there? `pilothouse crd | kubectl apply -f -`")
        })?;
        match self.output {
            Output::Json => {
                let list = Items { api_version: "v1", kind: "List", items: &plugins };
                output::print_line(serde_json::to_string(&list)?)?;
            }
            Output::Table if plugins.is_empty() => {
                eprintln!("no plugins; `pilothouse install FILE.wasm` installs one");
            }
            Output::Table => {
                let header = ["NAME", "KIND", "VERSION", "DIGEST", "OBJECTS", "READY", "FAILING", "AGE", "STATE"];
                output::print(table::table(header, &plugins.iter().map(row).collect::<Vec<_>>()))?;
            }
        }
        Ok(())
    }
}

/// A list as kubectl prints it. Not made of JSON values: those are not nested as deeply as a `config` may be.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Items<'p> {
    api_version: &'static str,
    kind: &'static str,
    items: &'p [Plugin],
}

fn row(plugin: &Plugin) -> [String; 9] {
    let status = plugin.status.clone().unwrap_or_default();
    let objects = status.objects.unwrap_or_default();
    let created = plugin.creation_timestamp().map(|created| age(created.0, Timestamp::now()));
    [
        plugin.name_any(),
        status.reconciles.map(|kind| kind.kind).unwrap_or_default(),
        status.version.unwrap_or_default(),
        status.short_digest.unwrap_or_default(),
        objects.total.to_string(),
        objects.ready.to_string(),
        objects.failing.to_string(),
        created.unwrap_or_default(),
        state(&status.conditions),
    ]
}

/// `AtWork`, or the reason why it is not and what that means.
fn state(conditions: &[Condition]) -> String {
    let condition = |kind: &str| conditions.iter().find(|it| it.condition_type == kind);
    let Some(ready) = condition("Ready") else { return "no host has looked at it yet".to_owned() };
    // One that works may be about to change: a version is tried, or waits for approval.
    let shown = condition("Reconciling").filter(|_| ready.status == "True").unwrap_or(ready);
    match shown.message.is_empty() {
        true => shown.reason.clone(),
        false => format!("{}: {}", shown.reason, shown.message),
    }
}
