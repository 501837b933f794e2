//! A child is deleted, and comes back as a new object.

use std::time::Instant;

use anyhow::Result;

use super::SHOP;
use crate::{
    cluster::{is_ready, ready, uid},
    log::Mark,
    narrator::Narrator,
    stage::Stage,
};

/// Plays the step.
///
/// # Errors
/// What did not happen.
pub async fn child(narrator: &mut Narrator, stage: &mut Stage) -> Result<()> {
    narrator.step("A child is deleted")?;
    let mark = Mark::here(&stage.host);
    let old = stage.cluster.get("Deployment", SHOP).await?;
    narrator.fact("deployment/shop", format!("uid {}", uid(&old)))?;
    let mut deployment = stage.cluster.follow("Deployment", SHOP).await?;
    narrator.command("kubectl delete deployment shop")?;
    let before = Instant::now();
    stage.cluster.delete("Deployment", SHOP).await?;
    let new = deployment.until("to be created again", |deployment| uid(deployment) != uid(&old)).await?;
    narrator.took("deployment/shop", format!("uid {}, created again", uid(&new)), before.elapsed())?;
    narrator.log(&mark.line(&stage.host, &["Creating Deployment.", SHOP]).await?)?;
    let all_ready = deployment.until("to be ready", |deployment| is_ready(deployment, 3)).await?;
    narrator.took("", format!("{} ready", ready(&all_ready)), before.elapsed())?;
    Ok(())
}
