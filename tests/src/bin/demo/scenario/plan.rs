//! Before a newer version of the plugin is at work, the host says what it would do.

use std::{process::Stdio, time::Instant};

use anyhow::{Result, ensure};
use pilothouse_tests::artifacts;
use tokio::process::Command;

use crate::{environment::Environment, printer::Printer};

/// The exit code of a plan with which something would change.
const CHANGES: i32 = 2;

/// Plays the step.
///
/// # Errors
/// If the plan fails, or says that nothing would change.
pub async fn of_plugin(printer: &mut Printer, environment: &Environment) -> Result<()> {
    printer
        .step("What would version 0.2.0 of the plugin do? The plan asks it about every object, and writes nothing")?;
    printer.command("pilothouse plan target/guests/app-service-next.wasm")?;
    let begun = Instant::now();
    let mut plan = Command::new(artifacts::host_binary()?);
    plan.arg("plan").arg(artifacts::guest("app-service-next")?);
    plan.arg("--kubeconfig").arg(environment.plane.kubeconfig_path());
    plan.arg("--cache-dir").arg(environment.folder.path().join("compiled"));
    let ended = plan.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    let errors = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.code() == Some(CHANGES), "the plan ended with {}: {errors}", ended.status);
    printer.say(&String::from_utf8_lossy(&ended.stdout))?;
    printer.took("exit code", "2: something would change", begun.elapsed())?;
    Ok(())
}
