//! `make up` and `make down`: a control plane and a host that are left running, for working by hand. Everything lies in
//! one folder, `.pilothouse` unless told otherwise; nothing that another folder's `up` started is ever touched.

mod addresses;
mod down;
mod files;
mod http;
mod plugins;
mod process;
mod record;
mod status;
mod up;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};
use files::Files;
use pilothouse_tests::artifacts;

const EXIT_CODES: &str = "Exit codes:
  0  done; for `status`: all of it is up
  1  failed, with the reason on standard error
  2  wrong arguments
  3  for `status`: not all of it is up";

/// A control plane and a host on this machine, left running.
#[derive(Parser)]
#[command(name = "local", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The folder for everything. Default: .pilothouse in the repository.
    #[arg(long, global = true)]
    dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Start what does not run yet, and leave it running. Harmless when all of it runs.
    Up,
    /// Stop it and remove the objects; plugins and logs stay. Harmless when nothing runs.
    Down,
    /// Say what runs.
    Status,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<ExitCode> {
    let folder = arguments.dir.unwrap_or_else(|| artifacts::repository().join(".pilothouse"));
    match arguments.command {
        Command::Up => up::up(&Files::create(&folder)?).await?,
        Command::Down => match Files::find(&folder)? {
            Some(files) => down::down(&files).await?,
            None => say("nothing runs"),
        },
        Command::Status => match Files::find(&folder)? {
            Some(files) if status::report(&files).await? => {}
            _ => return Ok(ExitCode::from(3)),
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// A line about what is done; standard output is for what other programs read.
fn say(line: &str) {
    eprintln!("{line}");
}
