//! A bad version answers one object first, fails there, and is taken back by the host itself. The other object is not touched.

use std::{ffi::OsStr, path::Path, process::Stdio, time::Instant};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{artifacts, cluster::condition};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{HELLO, PLUGIN, SHOP};
use crate::{environment::Environment, log::Mark, printer::Printer};

/// The `Plugin`, which has the name of its plugin.
const NAME: &str = "app-service";

/// The annotation in which each version leaves its mark.
const REVISION: &str = "apps.example.com/revision";

/// The account of the host, as `install` binds rights to it.
const ACCOUNT: &str = "default/pilothouse";

/// Plays the step.
///
/// # Errors
/// If the cluster does not show the expected result in time.
pub async fn of_plugin(printer: &mut Printer, environment: &mut Environment) -> Result<()> {
    printer.step("A canary: version 0.3.0 is tried on one of the two objects, and goes back by itself")?;
    become_an_object(printer, environment).await?;
    let rollout = json!({"spec": {"rollout": {"strategy": "Canary", "steps": [{"objects": 1, "seconds": 60}]}}});
    printer.command(&format!("kubectl patch plugin {NAME} --type=merge -p '{rollout}'"))?;
    environment.cluster.patch("Plugin", NAME, &rollout).await?;
    let before = [state(environment, SHOP).await?, state(environment, HELLO).await?];
    let mut plugin = environment.cluster.follow("Plugin", NAME).await?;
    let mark = Mark::here(&environment.host);
    let begun = Instant::now();
    // It ends once the canary has begun, or with an error where that is over already.
    install(printer, environment, "target/guests/app-service-fails.wasm", &artifacts::guest("app-service-fails")?)
        .await?;
    printer.log(&mark.line(&environment.host, &["a new version answers some objects"]).await?)?;
    let is_back = |plugin: &Value| plugin["status"]["rollout"]["phase"] == "RolledBack";
    let plugin = plugin.until("to be taken back", is_back).await?;
    let message = text(&plugin["status"]["rollout"]["message"]);
    printer.took(format!("plugin/{NAME}"), format!("RolledBack: {message}"), begun.elapsed())?;
    printer.log(&mark.line(&environment.host, &["a new version is taken back"]).await?)?;
    printer.fact("", format!("version {} answers all objects", text(&plugin["status"]["version"])))?;
    repaired(printer, environment, &before, begun).await
}

/// The plugin from the directory becomes a `Plugin` of the cluster, for a canary needs one.
async fn become_an_object(printer: &Printer, environment: &mut Environment) -> Result<()> {
    let mark = Mark::here(&environment.host);
    printer.command(&format!("rm {}", environment.host.plugins().join(PLUGIN).display()))?;
    environment.host.remove(PLUGIN)?;
    printer.log(&mark.line(&environment.host, &["plugin", "removed"]).await?)?;
    let before = Instant::now();
    let next = artifacts::guest("app-service-next")?;
    let installed = install(printer, environment, "target/guests/app-service-next.wasm", &next).await?;
    ensure!(installed, "version 0.2.0 is not installed");
    let mut plugin = environment.cluster.follow("Plugin", NAME).await?;
    let is_at_work = |plugin: &Value| {
        condition(plugin, "Ready")["status"] == "True" && plugin["status"]["versions"][0]["version"] == "0.2.0"
    };
    plugin.until("to be at work", is_at_work).await?;
    printer.took(format!("plugin/{NAME}"), "version 0.2.0 at work", before.elapsed())?;
    Ok(())
}

/// The object of the canary is as before, and the other one was never written.
async fn repaired(printer: &Printer, environment: &Environment, before: &[Value; 2], begun: Instant) -> Result<()> {
    for (name, before) in [SHOP, HELLO].into_iter().zip(before) {
        let mut deployment = environment.cluster.follow("Deployment", name).await?;
        let is_as_before = |it: &Value| it["metadata"]["annotations"][REVISION] == "2";
        let now = deployment.until("to be as version 0.2.0 wants it", is_as_before).await?;
        let is = format!("annotation {REVISION}: 2");
        match now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"] {
            true => printer.fact(format!("deployment/{name}"), format!("{is}, never touched"))?,
            false => printer.took(format!("deployment/{name}"), format!("{is}, repaired"), begun.elapsed())?,
        }
    }
    Ok(())
}

async fn state(environment: &Environment, name: &str) -> Result<Value> {
    environment.cluster.get("Deployment", name).await
}

/// Runs `pilothouse install`, and shows what it says. Returns whether it succeeded.
async fn install(printer: &Printer, environment: &Environment, shown: &str, file: &Path) -> Result<bool> {
    printer.command(&format!("pilothouse install {shown} --service-account {ACCOUNT}"))?;
    let kubeconfig = environment.plane.kubeconfig_path();
    let arguments: [&OsStr; 6] = [
        "install".as_ref(),
        file.as_ref(),
        "--service-account".as_ref(),
        ACCOUNT.as_ref(),
        "--kubeconfig".as_ref(),
        kubeconfig.as_ref(),
    ];
    let mut command = Command::new(artifacts::host_binary()?);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let ended = command.output().await.context("failed to run pilothouse install")?;
    printer.say(&String::from_utf8_lossy(&ended.stderr))?;
    Ok(ended.status.success())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
