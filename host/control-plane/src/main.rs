//! The `control-plane` program: a local Kubernetes control plane for the demo and for working by hand.
//! It only reads arguments and prints; the library does the work.

use anyhow::Result;
use clap::{Parser, Subcommand};
use pilothouse_control_plane::{Assets, Options, Part, Parts, Status, Up, down, status, to_stderr, up};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXIT_CODES: &str = "Exit codes:
  0  done; for `status`: it is up
  1  failed, with the reason on standard error
  2  wrong arguments
  3  for `status`: it is not up";

/// Runs a real Kubernetes control plane on this machine, without containers.
#[derive(Parser)]
#[command(
    version,
    after_help = EXIT_CODES
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Get the programs: from $KUBEBUILDER_ASSETS, the cache, the publishers, or built from source with Go.
    ///
    /// The cache is $PILOTHOUSE_CACHE, else $XDG_CACHE_HOME/pilothouse, else ~/.cache/pilothouse.
    /// With PILOTHOUSE_OFFLINE=1 the publishers are not asked.
    Fetch,
    /// Start it, and leave it running. Harmless when it is up; a broken one is repaired and keeps its objects.
    Up {
        #[command(flatten)]
        place: Place,
        /// How much of it to run.
        #[arg(long, value_enum, default_value = "full")]
        parts: Parts,
        /// Log every write request to DIR/logs/audit.jsonl.
        #[arg(long)]
        audit_log: bool,
    },
    /// Stop it and remove its objects. Harmless when nothing runs.
    Down(Place),
    /// Say what runs.
    Status(Place),
}

#[derive(clap::Args)]
struct Place {
    /// The directory of the control plane: data, keys, logs, kubeconfig.
    #[arg(long, default_value = ".pilothouse/control-plane")]
    dir: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse().command).await {
        Ok(code) => code,
        Err(error) => {
            to_stderr(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Fetch => fetch().await?,
        Command::Up { place, parts, audit_log } => {
            let mut options = Options::new(place.dir, parts);
            options.audit_log = audit_log;
            start(&options).await?;
        }
        Command::Down(place) => stop(&place.dir).await?,
        Command::Status(place) => return Ok(show(&status(&place.dir).await?)),
    }
    Ok(ExitCode::SUCCESS)
}

async fn fetch() -> Result<()> {
    let assets = Assets::ensure(to_stderr).await?;
    for part in Parts::Full.list() {
        println!("{}", assets.path(*part)?.display());
    }
    Ok(())
}

async fn start(options: &Options) -> Result<()> {
    let assets = Assets::ensure_for(options.parts, to_stderr).await?;
    let (done, kubeconfig) = up(&assets, options).await?;
    to_stderr(match done {
        Up::Already => "it is already up",
        Up::Started => "it is up",
        Up::Repaired => "it was not right and is up again, with the same objects",
    });
    println!("export KUBECONFIG={}", kubeconfig.display());
    Ok(())
}

async fn stop(dir: &Path) -> Result<()> {
    if dir.exists() {
        down(dir, to_stderr).await?;
    }
    to_stderr("nothing runs");
    Ok(())
}

fn show(status: &Status) -> ExitCode {
    for part in &status.parts {
        println!("{}", line(part.part, part.pid, part.ready));
    }
    if status.is_up() {
        return ExitCode::SUCCESS;
    }
    to_stderr("it is not up");
    ExitCode::from(3)
}

fn line(part: Part, pid: Option<u32>, ready: bool) -> String {
    match pid {
        Some(pid) => format!("{part:<24} process {pid:<8} {}", if ready { "ready" } else { "not ready" }),
        None => format!("{part:<24} stopped"),
    }
}
