//! Histories that every change must pass: some thousands drawn from seeds, all that once showed a defect, and some twice, for a seed must
//! decide everything.

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use pilothouse_simulation::{
    cluster::Template,
    history::{generate, step::History},
    plugin::{component::Component, simulated::Code},
    run::{Recording, run},
    search::{Search, search},
};

/// How many histories are searched.
const HISTORIES: u64 = 2_000;

/// How many histories run twice.
const TWICE: u64 = 40;

/// How many histories run with the plugin as WebAssembly.
const COMPONENT: u64 = 20;

#[test]
fn every_history_ends_as_it_shall() -> Result<()> {
    let threads = thread::available_parallelism()?.get();
    let search_all = Search { seeds: 1..1 + HISTORIES, threads, keep_going: true, longest: None };
    let summary = search(&Template::new()?, &search_all)?;
    let found: Vec<_> =
        summary.found.iter().map(|found| format!("seed {}: {}", found.history.seed, found.violation)).collect();
    ensure!(found.is_empty(), "replay them with `make simulate SEED=...`:\n{}", found.join("\n"));
    ensure!(summary.histories == HISTORIES && summary.writes > 5 * HISTORIES, "hosts wrote little: {summary:?}");
    Ok(())
}

/// A night's work ends, though there are more seeds than it has time for. Each thread ends the history that it has begun.
#[test]
fn a_search_ends_when_its_time_is_over() -> Result<()> {
    let search_long = Search { seeds: 1..u64::MAX, threads: 1, keep_going: true, longest: Some(Duration::ZERO) };
    let summary = search(&Template::new()?, &search_long)?;
    ensure!(summary.histories == 1, "{summary:?}");
    Ok(())
}

#[test]
fn what_was_mended_stays_mended() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let (template, mut cases) = (Template::new()?, 0);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let history: History =
            serde_json::from_str(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
        let violation = run(&template, &history, Recording::Off)?.violation;
        ensure!(violation.is_none(), "{}: {violation:?}", path.display());
        cases += 1;
    }
    ensure!(cases > 2, "the cases lie elsewhere");
    Ok(())
}

/// The plugin as WebAssembly, through the engine, and as a native function: line by line the same history.
#[test]
fn a_component_leads_to_the_same_histories_as_a_native_plugin() -> Result<()> {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let (file, cache) = (target.join("guests/simulated.wasm"), target.join("tmp/simulated"));
    let component =
        Component::load(&file, &cache).with_context(|| format!("'{}' is built by `make plugins`", file.display()))?;
    let (native, component) = (Template::new()?, Template::with(Code::Component(component))?);
    for seed in 1..=COMPONENT {
        let history = generate::history(seed);
        let (first, second) = (run(&native, &history, Recording::On)?, run(&component, &history, Recording::On)?);
        let mut lines = first.record.lines().zip(second.record.lines());
        let difference = lines.find(|(first, second)| first != second);
        ensure!(first.record == second.record, "seed {seed}: {difference:?}");
    }
    Ok(())
}

/// Also on another thread, and after other histories.
#[test]
fn a_seed_decides_every_line() -> Result<()> {
    let record = |seeds: Vec<u64>| -> Result<Vec<(u64, String)>> {
        let template = Template::new()?;
        let run = |seed| Ok((seed, run(&template, &generate::history(seed), Recording::On)?.record));
        seeds.into_iter().map(run).collect()
    };
    let (first, mut second) = thread::scope(|scope| -> Result<_> {
        let first = scope.spawn(|| record((1..=TWICE).collect()));
        let second = record((1..=TWICE).rev().collect())?;
        Ok((first.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??, second))
    })?;
    second.reverse();
    for ((seed, first), (_, second)) in first.iter().zip(&second) {
        let difference = first.lines().zip(second.lines()).find(|(first, second)| first != second);
        ensure!(first == second, "seed {seed} led to two histories: {difference:?}");
        ensure!(first.lines().count() > 100, "seed {seed} led to little: {first}");
    }
    Ok(())
}
