//! The object itself is scaled, as a person or an autoscaler does, and its Deployment follows.

use std::time::Instant;

use anyhow::Result;

use super::HELLO;
use crate::{
    cluster::{is_ready, ready, replicas},
    environment::Environment,
    printer::Printer,
};

/// Plays the step.
///
/// # Errors
/// If the cluster does not show the expected result in time.
pub async fn object(printer: &mut Printer, environment: &mut Environment) -> Result<()> {
    printer.step("The object is scaled from 2 to 4")?;
    let mut deployment = environment.cluster.follow("Deployment", HELLO).await?;
    printer.command("kubectl scale appservice hello --replicas=4")?;
    let before = Instant::now();
    environment.cluster.scale("AppService", HELLO, 4).await?;
    let scaled = deployment.until("to be scaled", |deployment| replicas(deployment) == 4).await?;
    printer.took("deployment/hello", format!("spec.replicas 2 -> {}", replicas(&scaled)), before.elapsed())?;
    let all_ready = deployment.until("to be ready", |deployment| is_ready(deployment, 4)).await?;
    printer.took("", format!("{} ready", ready(&all_ready)), before.elapsed())?;
    Ok(())
}
