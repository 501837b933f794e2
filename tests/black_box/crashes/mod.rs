//! Crashes: the next host repairs whatever a host leaves behind that is killed before or after any of its writes. Each scenario
//! runs once without a crash, and then once for each point at which the host can crash; `make test` tries each sixth of them, from another one
//! on in each run, and `make test-all` all.

mod run;
mod scenario;

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use pilothouse_tests::{
    cluster::Cluster,
    proxy::{Moment, Upstream},
    thoroughness::Thoroughness,
};

use self::{
    run::{End, Point, crashed, crashed_with_late_write, without_crash},
    scenario::{SCENARIOS, Scenario},
};
use crate::{
    suite::{Suite, heavy},
    test_env::TestEnv,
};

/// Of how many points one is tried if not all are.
const PART: usize = 6;

/// The number of scenarios that run at the same time. They mostly wait.
const AT_ONCE: usize = 16;

pub fn register(suite: &mut Suite) {
    heavy!(suite, every_crash_ends_as_if_there_had_been_none);
}

/// On a control plane where nobody but the host writes, so that the number of its writes is the same in each run.
async fn every_crash_ends_as_if_there_had_been_none(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    let (cluster, upstream) = (&env.cluster, &env.upstream().await?);
    let ends = stream::iter(&SCENARIOS).map(|scenario| without_crash(cluster, upstream, scenario));
    let ends: Vec<_> = ends.buffered(AT_ONCE).try_collect().await?;
    let part = Part::of_run();
    let points =
        SCENARIOS.iter().zip(&ends).flat_map(|(scenario, end)| part.of(end).map(move |point| (scenario, end, point)));
    let tried = points.map(|(scenario, end, point)| async move {
        crashed(cluster, upstream, scenario, point, end).await?;
        Ok::<_, anyhow::Error>(scenario.name)
    });
    let tried: Vec<_> = stream::iter(tried).buffer_unordered(AT_ONCE).try_collect().await?;
    report(part, &ends, &tried)?;
    late_writes_are_undone(cluster, upstream, &ends).await
}

/// Delays each write of each update until the next host has moved on. The effect of the late write must be undone.
async fn late_writes_are_undone(cluster: &Arc<Cluster>, upstream: &Upstream, ends: &[End]) -> Result<()> {
    let updates = SCENARIOS.iter().zip(ends).filter(|(scenario, _)| scenario.is_update());
    let late = updates.flat_map(|(scenario, end)| (1..=end.writes.len()).map(move |write| (scenario, write)));
    let tried = late.map(|(scenario, write)| crashed_with_late_write(cluster, upstream, scenario, write));
    let tried: Vec<_> = stream::iter(tried).buffer_unordered(AT_ONCE).try_collect().await?;
    let taken = tried.iter().filter(|taken| **taken).count();
    eprintln!("late writes: {}, of which {taken} were taken and undone", tried.len());
    ensure!(taken > 0, "none of {} late writes was taken", tried.len());
    Ok(())
}

/// Every point at which the host can crash in a scenario.
fn points(end: &End) -> impl Iterator<Item = Point> {
    let writes = 1..=end.writes.len();
    writes.flat_map(|write| [Moment::Before, Moment::After].map(|moment| Point { write, moment }))
}

/// The points of each scenario that are tried: from one on, each so many.
#[derive(Clone, Copy)]
struct Part {
    first: usize,
    step: usize,
}

impl Part {
    fn of_run() -> Self {
        match Thoroughness::of_run() {
            Thoroughness::All => Self { first: 0, step: 1 },
            Thoroughness::Part => Self { first: fastrand::usize(..PART), step: PART },
        }
    }

    fn of(self, end: &End) -> impl Iterator<Item = Point> {
        points(end).skip(self.first).step_by(self.step)
    }
}

/// Prints how many crash points were tried, and checks that these are all that should be.
fn report(part: Part, ends: &[End], tried: &[&str]) -> Result<()> {
    let counts = SCENARIOS.iter().zip(ends).map(|(Scenario { name, .. }, end)| {
        (name, tried.iter().filter(|tried| tried == &name).count(), part.of(end).count(), points(end).count())
    });
    let words: Vec<_> = counts.clone().map(|(name, tried, _, all)| format!("{name} {tried} of {all}")).collect();
    eprintln!("crash points tried: {}", words.join(", "));
    for (name, tried, expected, all) in counts {
        ensure!(tried == expected && all > 0, "{name}: {tried} crash points tried, and not {expected} of {all}");
    }
    ensure!(!tried.is_empty(), "no crash point was tried");
    Ok(())
}
