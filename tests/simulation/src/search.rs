//! Runs many histories on several threads, and stops at the first that violates a property. Each thread has a runtime of its own for
//! each history, so threads do not influence each other.

use std::{
    io::{IsTerminal, Write},
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    cluster::Template,
    history::{generate, step::History},
    properties::Violation,
    run::{Recording, run},
};

/// How often the progress is shown.
const PROGRESS: Duration = Duration::from_secs(5);

/// What to search.
#[derive(Clone, Debug)]
pub struct Search {
    /// The seeds of the histories.
    pub seeds: Range<u64>,
    /// How many threads there are.
    pub threads: usize,
    /// Whether to go on after a violation.
    pub keep_going: bool,
    /// After how long no further history begins, although there are seeds left.
    pub longest: Option<Duration>,
}

/// A history that violates a property.
#[derive(Clone, Debug)]
pub struct Found {
    /// The history.
    pub history: History,
    /// What it violates.
    pub violation: Violation,
}

/// What came of a search.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many histories were run.
    pub histories: u64,
    /// How many writes the hosts made.
    pub writes: u64,
    /// How much simulated time passed.
    pub simulated: Duration,
    /// How long it took.
    pub took: Duration,
    /// The histories that violate a property, in the order of their seeds.
    pub found: Vec<Found>,
}

#[derive(Default)]
struct Shared {
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    summary: Mutex<Summary>,
}

/// Runs the histories of all seeds.
///
/// # Errors
/// If a history cannot be run at all.
pub fn search(template: &Template, search: &Search) -> std::io::Result<Summary> {
    let (shared, began) = (Shared::default(), Instant::now());
    shared.next.store(search.seeds.start, Ordering::Relaxed);
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..search.threads.max(1)).map(|_| scope.spawn(|| work(template, search, &shared, began))).collect();
        let mut shown = Instant::now();
        while workers.iter().any(|worker| !worker.is_finished()) {
            // Looks often, so that a short search ends at once, and says something seldom.
            thread::sleep(Duration::from_millis(20));
            if shown.elapsed() >= PROGRESS {
                shown = Instant::now();
                progress(&shared, search, began);
            }
        }
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| std::io::Error::other("a thread panicked"))?)
    })?;
    let mut summary = shared.summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.took = began.elapsed();
    summary.found.sort_by_key(|found| found.history.seed);
    Ok(summary)
}

fn work(template: &Template, search: &Search, shared: &Shared, began: Instant) -> std::io::Result<()> {
    loop {
        let seed = shared.next.fetch_add(1, Ordering::Relaxed);
        if seed >= search.seeds.end || shared.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let history = generate::history(seed);
        let outcome = run(template, &history, Recording::Off)?;
        shared.done.fetch_add(1, Ordering::Relaxed);
        let mut summary = shared.summary.lock().unwrap_or_else(PoisonError::into_inner);
        summary.histories += 1;
        summary.writes += outcome.writes;
        summary.simulated += outcome.lasted;
        if let Some(violation) = outcome.violation {
            eprintln!("seed {seed}: {violation}");
            summary.found.push(Found { history, violation });
            shared.stop.fetch_or(!search.keep_going, Ordering::Relaxed);
        }
        let is_over = search.longest.is_some_and(|longest| began.elapsed() >= longest);
        shared.stop.fetch_or(is_over, Ordering::Relaxed);
    }
}

fn progress(shared: &Shared, search: &Search, began: Instant) {
    let done = shared.done.load(Ordering::Relaxed);
    let rate = done as f64 / began.elapsed().as_secs_f64();
    let bound = match search.longest {
        None => format!(" of {}", search.seeds.end.saturating_sub(search.seeds.start)),
        Some(longest) => {
            let minutes = |time: Duration| time.as_secs() / 60;
            format!(" in {} of {} minutes", minutes(began.elapsed()), minutes(longest))
        }
    };
    let mut out = std::io::stderr().lock();
    let end = if out.is_terminal() { "\r" } else { "\n" };
    // Nothing depends on somebody seeing it.
    drop(write!(out, "{done} histories{bound}, {rate:.0} a second{end}"));
}
