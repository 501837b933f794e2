//! `make demo`: one plugin at work on a real API server, shown as it happens with what the cluster really answers.
//! It leaves nothing behind, neither processes nor files, and never touches a control plane that it did not start.

mod cluster;
mod environment;
mod follow;
mod interrupt;
mod log;
mod printer;
mod scenario;

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use environment::Environment;
use interrupt::Interrupt;
use printer::Printer;

/// What a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// How many of the host's log lines an error quotes.
const QUOTED_LINES: usize = 15;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("\nInterrupted. Everything is stopped.");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the scenario; false where a signal ended it. What was started is stopped on every way out.
async fn run() -> Result<bool> {
    let mut interrupt = Interrupt::listen()?;
    let mut printer = Printer::new();
    let mut environment = tokio::select! {
        environment = scenario::open(&mut printer) => environment?,
        () = interrupt.came() => return Ok(false),
    };
    let completed = tokio::select! {
        completed = scenario::run(&mut printer, &mut environment) => completed.map(|()| true),
        () = interrupt.came() => Ok(false),
    };
    let completed = completed.map_err(|error| anyhow!("{error:#}\n\n{}", last_words(&environment)));
    let to_its_end = completed.as_ref().is_ok_and(|completed| *completed);
    tokio::select! {
        closed = scenario::close(&mut printer, environment, to_its_end) => completed.and_then(|completed| closed.map(|()| completed)),
        // The second Ctrl-C: what still runs is killed as its owner is dropped.
        () = interrupt.came() => Ok(false),
    }
}

/// What the host said last, for an error.
fn last_words(environment: &Environment) -> String {
    let lines = log::lines(&environment.host.log());
    let tail = lines.get(lines.len().saturating_sub(QUOTED_LINES)..).unwrap_or_default();
    format!("The host's log ends with\n  {}", tail.join("\n  "))
}
