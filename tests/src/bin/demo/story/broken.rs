//! A damaged file takes the plugin's place, and the version that works goes on.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::artifacts;

use super::{PLUGIN, drift};
use crate::{log::Mark, narrator::Narrator, stage::Stage};

/// How much of the file "arrives".
const BYTES: usize = 1000;

/// Plays the step.
///
/// # Errors
/// What did not happen.
pub async fn plugin(narrator: &mut Narrator, stage: &mut Stage) -> Result<()> {
    narrator.step("A damaged plugin file arrives: the version that works goes on")?;
    let (mark, pid) = (Mark::here(&stage.host), stage.host.pid()?);
    let file = artifacts::plugin("app-service")?;
    let whole = std::fs::read(&file)?;
    let part = whole.get(..BYTES).context("the plugin is too small to damage it")?;
    let place = stage.host.plugins().join(PLUGIN);
    narrator.command(&format!("head -c {BYTES} target/plugins/app-service.wasm > {}", place.display()))?;
    std::fs::write(&place, part)?;
    narrator.log(&mark.line(&stage.host, &["the plugin was not loaded"]).await?)?;
    let (status, _) = stage.host.get("health", "/readyz").await?;
    ensure!(status == 200, "the host is not ready any more: {status}");
    narrator.fact("pilothouse", format!("/readyz answers {status}, process {pid}; it still repairs:"))?;
    drift::by_hand(narrator, stage).await
}
