//! The plugin is replaced by a newer version while the host runs, and the change arrives in the cluster.

use std::time::Instant;

use anyhow::{Result, ensure};
use pilothouse_tests::artifacts;
use serde_json::Value;

use super::{HELLO, PLUGIN, SHOP};
use crate::{
    cluster::{ready, uid},
    log::Mark,
    narrator::Narrator,
    stage::Stage,
};

/// Plays the step.
///
/// # Errors
/// What did not happen.
pub async fn plugin(narrator: &mut Narrator, stage: &mut Stage) -> Result<()> {
    narrator.step("The plugin is replaced while the host runs: version 0.2.0 marks its Deployments")?;
    let (mark, pid) = (Mark::here(&stage.host), stage.host.pid()?);
    let mut shop = stage.cluster.follow("Deployment", SHOP).await?;
    let mut hello = stage.cluster.follow("Deployment", HELLO).await?;
    let old = stage.cluster.get("Deployment", SHOP).await?;
    let place = stage.host.plugins().join(PLUGIN);
    narrator.command(&format!("cp target/guests/app-service-next.wasm {}", place.display()))?;
    let before = Instant::now();
    stage.host.install(&artifacts::guest("app-service-next")?, PLUGIN)?;
    for (name, deployment) in [("shop", &mut shop), ("hello", &mut hello)] {
        let marked = deployment.until("to be marked by the new version", |deployment| !revision(deployment).is_null());
        let marked = marked.await?;
        let is = format!("annotation apps.example.com/revision: {}", revision(&marked));
        narrator.took(format!("deployment/{name}"), is, before.elapsed())?;
    }
    narrator.log(&mark.line(&stage.host, &["plugin loaded", "0.2.0"]).await?)?;
    let new = stage.cluster.get("Deployment", SHOP).await?;
    ensure!(uid(&new) == uid(&old), "the Deployment is another one now: {new}");
    ensure!(stage.host.pid()? == pid, "the host is another process now");
    narrator.fact("deployment/shop", format!("{} ready, still the same object", ready(&new)))?;
    narrator.fact("pilothouse", format!("process {pid} before and after"))?;
    Ok(())
}

fn revision(deployment: &Value) -> &Value {
    &deployment["metadata"]["annotations"]["apps.example.com/revision"]
}
