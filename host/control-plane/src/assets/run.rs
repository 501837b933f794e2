//! Runs a program that may take long, and says every ten seconds that it still does. Its output is shown only if
//! it fails.

use crate::Report;
use anyhow::{Context, Result, bail};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;

const EVERY: Duration = Duration::from_secs(10);

/// Gives what the program printed.
pub(crate) async fn run(command: &mut Command, what: &str, report: &Report) -> Result<String> {
    let begin = Instant::now();
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).kill_on_drop(true);
    let mut output = Box::pin(command.output());
    let output = loop {
        match tokio::time::timeout(EVERY, &mut output).await {
            Ok(output) => break output.with_context(|| format!("cannot run {program}"))?,
            Err(_) => report(&format!("{what}: {} s so far", begin.elapsed().as_secs())),
        }
    };
    if !output.status.success() {
        bail!("{what} failed ({program}, {}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
