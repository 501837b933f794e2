//! A child is deleted, and the host creates it again as a new object.

use std::time::Instant;

use anyhow::Result;

use super::SHOP;
use crate::{
    cluster::{is_ready, ready, uid},
    environment::Environment,
    log::Mark,
    printer::Printer,
};

/// Plays the step.
///
/// # Errors
/// If the cluster does not show the expected result in time.
pub async fn child(printer: &mut Printer, environment: &mut Environment) -> Result<()> {
    printer.step("A child is deleted")?;
    let mark = Mark::here(&environment.host);
    let old = environment.cluster.get("Deployment", SHOP).await?;
    printer.fact("deployment/shop", format!("uid {}", uid(&old)))?;
    let mut deployment = environment.cluster.follow("Deployment", SHOP).await?;
    printer.command("kubectl delete deployment shop")?;
    let before = Instant::now();
    environment.cluster.delete("Deployment", SHOP).await?;
    let new = deployment.until("to be created again", |deployment| uid(deployment) != uid(&old)).await?;
    printer.took("deployment/shop", format!("uid {}, created again", uid(&new)), before.elapsed())?;
    printer.log(&mark.line(&environment.host, &["Creating Deployment.", SHOP]).await?)?;
    let all_ready = deployment.until("to be ready", |deployment| is_ready(deployment, 3)).await?;
    printer.took("", format!("{} ready", ready(&all_ready)), before.elapsed())?;
    Ok(())
}
