//! `make demo`: shows one plugin on a real API server, with the real answers of the cluster. It leaves no processes and no files
//! behind, and never touches a control plane that it did not start.

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

/// The exit code that a shell reports for a program that Ctrl-C ended.
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

/// Runs the scenario. Returns false if a signal ended it. Whatever was started is stopped in every case.
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
        // The second Ctrl-C: the processes that still run are killed when their owners are dropped.
        () = interrupt.came() => Ok(false),
    }
}

/// The last lines of the host's log, for an error message.
fn last_words(environment: &Environment) -> String {
    let lines = log::lines(&environment.host.log());
    let tail = lines.get(lines.len().saturating_sub(QUOTED_LINES)..).unwrap_or_default();
    format!("The host's log ends with\n  {}", tail.join("\n  "))
}
