//! `simulate`: searches histories for violations of the host's properties, shrinks what it finds, and replays it.

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use pilothouse_simulation::{
    cluster::Template,
    history::{generate, step::History},
    plugin::{component::Component, simulated::Code},
    run::{Recording, run},
    search::{Search, Summary, search},
    shrink::shrink,
};

// Histories allocate much and for a short time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many histories are searched if nobody says so.
const HISTORIES: u64 = 10_000;

/// Searches simulated histories of the operator host for violations of its properties.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Run the plugin as this WebAssembly component (`target/guests/simulated.wasm`) and not as native code. Slower; nothing else
    /// differs.
    #[arg(long, global = true, value_name = "FILE")]
    component: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run many histories, and stop at the first that violates a property: it is shrunk and shown.
    Search {
        /// How many histories. Default: 10000, or as many as --hours leaves time for.
        #[arg(short)]
        n: Option<u64>,
        /// Begin no further history after so many hours, such as 8 or 0.5.
        #[arg(long, value_parser = hours)]
        hours: Option<Duration>,
        /// The seed of the first one; each further history has the next seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Threads. Default: one for each processor.
        #[arg(long)]
        threads: Option<usize>,
        /// Go on after a violation, and list the seeds in the end.
        #[arg(long)]
        keep_going: bool,
        /// Do not shrink what is found.
        #[arg(long)]
        no_shrink: bool,
    },
    /// Run the history of one seed, or one from a file, and show all that happens.
    Replay {
        /// The seed.
        #[arg(long, conflicts_with = "file")]
        seed: Option<u64>,
        /// A file with a history as JSON.
        file: Option<PathBuf>,
        /// Shrink it first, if it violates a property.
        #[arg(long)]
        shrink: bool,
    },
}

fn main() -> Result<ExitCode> {
    let Arguments { component, command } = Arguments::parse();
    let template = Template::with(code(component.as_deref())?)?;
    match command {
        Command::Search { n, hours, seed, threads, keep_going, no_shrink } => {
            let n = n.unwrap_or(if hours.is_some() { u64::MAX } else { HISTORIES });
            let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get));
            let seeds = seed..seed.saturating_add(n);
            let summary = search(&template, &Search { seeds, threads, keep_going, longest: hours })?;
            report(&template, &summary, !no_shrink)
        }
        Command::Replay { seed, file, shrink } => {
            let history = match (seed, file) {
                (_, Some(file)) => {
                    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
                    serde_json::from_str(&text).with_context(|| file.display().to_string())?
                }
                (seed, None) => generate::history(seed.context("give --seed or a file")?),
            };
            replay(&template, history, shrink)
        }
    }
}

fn hours(text: &str) -> Result<Duration> {
    let hours: f64 = text.parse()?;
    Ok(Duration::try_from_secs_f64(hours * 3600.0)?)
}

fn code(component: Option<&Path>) -> Result<Code> {
    let Some(file) = component else { return Ok(Code::Native) };
    let cache = std::env::temp_dir().join("pilothouse-simulation");
    Ok(Code::Component(Component::load(file, &cache).with_context(|| file.display().to_string())?))
}

fn report(template: &Template, summary: &Summary, shrinks: bool) -> Result<ExitCode> {
    let rate = summary.histories as f64 / summary.took.as_secs_f64();
    println!(
        "{} histories in {:.1?} ({rate:.0} a second): {} writes, {:.1} hours of simulated time",
        summary.histories,
        summary.took,
        summary.writes,
        summary.simulated.as_secs_f64() / 3600.0
    );
    for found in &summary.found {
        println!("seed {}: {}", found.history.seed, found.violation);
    }
    match summary.found.first() {
        None => Ok(ExitCode::SUCCESS),
        Some(first) if shrinks => replay(template, first.history.clone(), true),
        Some(_) => Ok(ExitCode::FAILURE),
    }
}

fn replay(template: &Template, mut history: History, shrinks: bool) -> Result<ExitCode> {
    if shrinks && let Some(violation) = run(template, &history, Recording::Off)?.violation {
        eprintln!("shrinking {} steps that violate {:?}", history.steps.len(), violation.property);
        history = shrink(template, history, violation.property)?;
    }
    let outcome = run(template, &history, Recording::On)?;
    println!("{}\n\n{}", serde_json::to_string(&history)?, outcome.record);
    match outcome.violation {
        None => Ok(ExitCode::SUCCESS),
        Some(violation) => {
            println!("{violation}");
            Ok(ExitCode::FAILURE)
        }
    }
}
