//! Objects are applied, and their children appear and become ready.

use std::time::Instant;

use anyhow::Result;
use pilothouse_tests::{artifacts, cluster::condition};

use super::{HELLO, SHOP};
use crate::{
    cluster::{Cluster, is_ready, ready, replicas},
    environment::Environment,
    log::Mark,
    printer::Printer,
};

const SHOP_YAML: &str = include_str!("shop.yaml");
const SAMPLE: &str = "crds/samples/appservice.yaml";

/// Plays the step.
///
/// # Errors
/// If the cluster does not show the expected result in time.
pub async fn apply(printer: &mut Printer, environment: &mut Environment) -> Result<()> {
    printer.step("Two objects: the plugin answers each with a Deployment and a Service")?;
    printer.command("kubectl apply -f - <<EOF")?;
    printer.say(SHOP_YAML)?;
    printer.say("EOF")?;
    let mark = Mark::here(&environment.host);
    first(printer, &environment.cluster).await?;
    printer.log(&mark.line(&environment.host, &["Creating Deployment.", SHOP]).await?)?;
    status(printer, &environment.cluster).await?;
    printer.command(&format!("kubectl apply -f {SAMPLE}"))?;
    second(printer, &environment.cluster).await
}

async fn first(printer: &Printer, cluster: &Cluster) -> Result<()> {
    let mut deployment = cluster.follow("Deployment", SHOP).await?;
    let mut service = cluster.follow("Service", SHOP).await?;
    let before = Instant::now();
    cluster.apply(SHOP_YAML).await?;
    let created = deployment.until("to be created", |_| true).await?;
    let count = replicas(&created);
    printer.took("deployment/shop", format!("created, {count} replicas"), before.elapsed())?;
    let created = service.until("to be created", |_| true).await?;
    let (address, port) = (&created["spec"]["clusterIP"], &created["spec"]["ports"][0]["port"]);
    printer.took(
        "service/shop",
        format!("created, {}:{port}", address.as_str().unwrap_or_default()),
        before.elapsed(),
    )?;
    let all_ready = deployment.until("to be ready", |deployment| is_ready(deployment, 3)).await?;
    printer.took("deployment/shop", format!("{} ready", ready(&all_ready)), before.elapsed()).map_err(Into::into)
}

/// What the plugin reports on the object.
async fn status(printer: &Printer, cluster: &Cluster) -> Result<()> {
    let mut object = cluster.follow("AppService", SHOP).await?;
    let is_ready = |object: &serde_json::Value| condition(object, "Ready")["status"] == "True";
    let object = object.until("to report that it is ready", is_ready).await?;
    let message = &condition(&object, "Ready")["message"];
    printer.fact("appservice/shop", format!("Ready=True: {}", message.as_str().unwrap_or_default()))?;
    printer.fact("", object["status"]["url"].as_str().unwrap_or_default())?;
    Ok(())
}

async fn second(printer: &Printer, cluster: &Cluster) -> Result<()> {
    let sample = std::fs::read_to_string(artifacts::repository().join(SAMPLE))?;
    let mut deployment = cluster.follow("Deployment", HELLO).await?;
    let before = Instant::now();
    cluster.apply(&sample).await?;
    let all_ready = deployment.until("to be ready", |deployment| is_ready(deployment, 2)).await?;
    printer.took("deployment/hello", format!("{} ready", ready(&all_ready)), before.elapsed())?;
    Ok(())
}
