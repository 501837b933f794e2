//! The plugin is replaced by a newer version while the host runs, and the change arrives in the cluster.

use std::time::Instant;

use anyhow::{Result, ensure};
use pilothouse_tests::artifacts;
use serde_json::Value;

use super::{HELLO, PLUGIN, SHOP};
use crate::{
    cluster::{ready, uid},
    environment::Environment,
    log::Mark,
    printer::Printer,
};

/// Plays the step.
///
/// # Errors
/// If the cluster does not show the expected result in time.
pub async fn plugin(printer: &mut Printer, environment: &mut Environment) -> Result<()> {
    printer.step("The plugin is replaced while the host runs: version 0.2.0 marks its Deployments")?;
    let (mark, pid) = (Mark::here(&environment.host), environment.host.pid()?);
    let mut shop = environment.cluster.follow("Deployment", SHOP).await?;
    let mut hello = environment.cluster.follow("Deployment", HELLO).await?;
    let old = environment.cluster.get("Deployment", SHOP).await?;
    let place = environment.host.plugins().join(PLUGIN);
    printer.command(&format!("cp target/guests/app-service-next.wasm {}", place.display()))?;
    let before = Instant::now();
    environment.host.install(&artifacts::guest("app-service-next")?, PLUGIN)?;
    for (name, deployment) in [("shop", &mut shop), ("hello", &mut hello)] {
        let marked = deployment.until("to be marked by the new version", |deployment| !revision(deployment).is_null());
        let marked = marked.await?;
        let is = format!("annotation apps.example.com/revision: {}", revision(&marked));
        printer.took(format!("deployment/{name}"), is, before.elapsed())?;
    }
    printer.log(&mark.line(&environment.host, &["plugin loaded", "0.2.0"]).await?)?;
    let new = environment.cluster.get("Deployment", SHOP).await?;
    ensure!(uid(&new) == uid(&old), "the Deployment is another one now: {new}");
    ensure!(environment.host.pid()? == pid, "the host is another process now");
    printer.fact("deployment/shop", format!("{} ready, still the same object", ready(&new)))?;
    printer.fact("pilothouse", format!("process {pid} before and after"))?;
    Ok(())
}

fn revision(deployment: &Value) -> &Value {
    &deployment["metadata"]["annotations"]["apps.example.com/revision"]
}
