//! The plugin's file is replaced by a damaged one, and the active version goes on.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::artifacts;

use super::{PLUGIN, drift};
use crate::{environment::Environment, log::Mark, printer::Printer};

/// How much of the file "arrives".
const BYTES: usize = 1000;

/// Plays the step.
///
/// # Errors
/// If the cluster does not show the expected result in time.
pub async fn plugin(printer: &mut Printer, environment: &mut Environment) -> Result<()> {
    printer.step("A damaged plugin file arrives: the version that works goes on")?;
    let (mark, pid) = (Mark::here(&environment.host), environment.host.pid()?);
    let file = artifacts::plugin("app-service")?;
    let whole = std::fs::read(&file)?;
    let part = whole.get(..BYTES).context("the plugin is too small to damage it")?;
    let place = environment.host.plugins().join(PLUGIN);
    printer.command(&format!("head -c {BYTES} target/plugins/app-service.wasm > {}", place.display()))?;
    std::fs::write(&place, part)?;
    printer.log(&mark.line(&environment.host, &["the plugin was not loaded"]).await?)?;
    let (status, _) = environment.host.get("health", "/readyz").await?;
    ensure!(status == 200, "the host is not ready any more: {status}");
    printer.fact("pilothouse", format!("/readyz answers {status}, process {pid}; it still repairs:"))?;
    drift::by_hand(printer, environment).await
}
