//! An object is deleted, and Kubernetes' garbage collection deletes its children. Another object stays unchanged.

use std::time::Instant;

use anyhow::Result;
use pilothouse_tests::wait::{Look, eventually};

use super::{HELLO, SHOP};
use crate::{cluster::ready, environment::Environment, follow::PATIENCE, printer::Printer};

/// Plays the step.
///
/// # Errors
/// If the cluster does not show the expected result in time.
pub async fn object(printer: &mut Printer, environment: &mut Environment) -> Result<()> {
    printer.step("An object is deleted: its children are collected")?;
    let cluster = &environment.cluster;
    let mut deployment = cluster.follow("Deployment", SHOP).await?;
    let mut service = cluster.follow("Service", SHOP).await?;
    printer.command("kubectl delete appservice shop")?;
    let before = Instant::now();
    cluster.delete("AppService", SHOP).await?;
    service.until_gone().await?;
    printer.took("service/shop", "gone", before.elapsed())?;
    deployment.until_gone().await?;
    printer.took("deployment/shop", "gone", before.elapsed())?;
    eventually(PATIENCE, "the pods of 'shop' to be gone", async || {
        let pods = cluster.names_of("Pod", SHOP).await?;
        Ok(Look::of(pods.is_empty(), pods))
    })
    .await?;
    printer.took("its pods", "gone", before.elapsed())?;
    let other = cluster.get("Deployment", HELLO).await?;
    printer.fact("deployment/hello", format!("{} ready, not touched", ready(&other)))?;
    Ok(())
}
