//! Somebody edits a child by hand, and the host repairs it.

use std::time::Instant;

use anyhow::Result;

use super::SHOP;
use crate::{
    cluster::{is_ready, ready, replicas},
    environment::Environment,
    log::Mark,
    printer::Printer,
};

/// Plays the step.
///
/// # Errors
/// If the cluster does not show the expected result in time.
pub async fn repair(printer: &mut Printer, environment: &mut Environment) -> Result<()> {
    printer.step("Drift: somebody scales the Deployment by hand")?;
    by_hand(printer, environment).await
}

/// Scales `shop`'s Deployment to 1 and sees it come back to 3.
///
/// # Errors
/// If the cluster does not show the expected result in time.
pub async fn by_hand(printer: &Printer, environment: &Environment) -> Result<()> {
    let mark = Mark::here(&environment.host);
    let mut deployment = environment.cluster.follow("Deployment", SHOP).await?;
    printer.command("kubectl scale deployment shop --replicas=1")?;
    let before = Instant::now();
    environment.cluster.scale("Deployment", SHOP, 1).await?;
    let edited = deployment.until("to be edited", |deployment| replicas(deployment) == 1).await?;
    printer.fact("deployment/shop", format!("spec.replicas 3 -> {}", replicas(&edited)))?;
    let repaired = deployment.until("to be repaired", |deployment| replicas(deployment) == 3).await?;
    printer.took("", format!("spec.replicas 1 -> {}, repaired", replicas(&repaired)), before.elapsed())?;
    printer.log(&mark.line(&environment.host, &["Drift detected. Updating Deployment.", SHOP]).await?)?;
    let all_ready = deployment.until("to be ready", |deployment| is_ready(deployment, 3)).await?;
    printer.took("", format!("{} ready", ready(&all_ready)), before.elapsed())?;
    Ok(())
}
