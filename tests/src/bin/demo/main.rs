//! `make demo`: the story of one plugin on a real API server, told as it happens with what the cluster really answers.
//! It leaves nothing behind, neither processes nor files, and never touches a control plane that it did not start.

mod cluster;
mod follow;
mod interrupt;
mod log;
mod narrator;
mod stage;
mod story;

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use interrupt::Interrupt;
use narrator::Narrator;
use stage::Stage;

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

/// Tells the story; false where a signal ended it. What was started is stopped on every way out.
async fn run() -> Result<bool> {
    let mut interrupt = Interrupt::listen()?;
    let mut narrator = Narrator::new();
    let mut stage = tokio::select! {
        stage = story::open(&mut narrator) => stage?,
        () = interrupt.came() => return Ok(false),
    };
    let told = tokio::select! {
        told = story::tell(&mut narrator, &mut stage) => told.map(|()| true),
        () = interrupt.came() => Ok(false),
    };
    let told = told.map_err(|error| anyhow!("{error:#}\n\n{}", last_words(&stage)));
    let to_its_end = told.as_ref().is_ok_and(|told| *told);
    tokio::select! {
        closed = story::close(&mut narrator, stage, to_its_end) => told.and_then(|told| closed.map(|()| told)),
        // The second Ctrl-C: what still runs is killed as its owner is dropped.
        () = interrupt.came() => Ok(false),
    }
}

/// What the host said last, for an error.
fn last_words(stage: &Stage) -> String {
    let lines = log::lines(&stage.host.log());
    let tail = lines.get(lines.len().saturating_sub(QUOTED_LINES)..).unwrap_or_default();
    format!("The host's log ends with\n  {}", tail.join("\n  "))
}
