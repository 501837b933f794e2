//! Somebody edits a child by hand, and the host puts it right.

use std::time::Instant;

use anyhow::Result;

use super::SHOP;
use crate::{
    cluster::{is_ready, ready, replicas},
    log::Mark,
    narrator::Narrator,
    stage::Stage,
};

/// Plays the step.
///
/// # Errors
/// What did not happen.
pub async fn repair(narrator: &mut Narrator, stage: &mut Stage) -> Result<()> {
    narrator.step("Drift: somebody scales the Deployment by hand")?;
    by_hand(narrator, stage).await
}

/// Scales `shop`'s Deployment to 1 and sees it come back to 3.
///
/// # Errors
/// What did not happen.
pub async fn by_hand(narrator: &Narrator, stage: &Stage) -> Result<()> {
    let mark = Mark::here(&stage.host);
    let mut deployment = stage.cluster.follow("Deployment", SHOP).await?;
    narrator.command("kubectl scale deployment shop --replicas=1")?;
    let before = Instant::now();
    stage.cluster.scale("Deployment", SHOP, 1).await?;
    let edited = deployment.until("to be edited", |deployment| replicas(deployment) == 1).await?;
    narrator.fact("deployment/shop", format!("spec.replicas 3 -> {}", replicas(&edited)))?;
    let repaired = deployment.until("to be repaired", |deployment| replicas(deployment) == 3).await?;
    narrator.took("", format!("spec.replicas 1 -> {}, repaired", replicas(&repaired)), before.elapsed())?;
    narrator.log(&mark.line(&stage.host, &["Drift detected. Updating Deployment.", SHOP]).await?)?;
    let all_ready = deployment.until("to be ready", |deployment| is_ready(deployment, 3)).await?;
    narrator.took("", format!("{} ready", ready(&all_ready)), before.elapsed())?;
    Ok(())
}
