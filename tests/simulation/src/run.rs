//! Runs one history from its first step to its end, and judges it.
//!
//! # Flow
//!
//! The steps are carried out one after another. Then nothing goes wrong any more, and everything must come to rest as it shall be. A
//! fresh object beside each one must lead to the same children. In the end all objects are deleted and must leave nothing behind.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    cluster::Template,
    history::step::{History, Step},
    log,
    properties::{Property, Violation, at_rest, fresh},
    record::Record,
    time::Time,
    world::World,
};

/// How long everything may take to come to rest once nothing goes wrong any more. It is more than the longest pause between two tries
/// after as many failures as a history can lead to, and far less than the period of the resync, which would hide a lost wake-up.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// For how long nothing may be written at rest.
const QUIET: Duration = Duration::from_secs(15);

/// The same in those histories that look longer. A request without an answer is given up after a minute, and what it kept waiting goes on.
const LONG_QUIET: Duration = Duration::from_secs(65);

/// One in so many histories looks longer whether it is quiet, and restarts its hosts at rest. Most of the time of a history would
/// otherwise go by while watches and leases are renewed.
const LONGER: u64 = 4;

/// In one of so many histories the plugin is removed before its objects are deleted.
const WITHOUT_PLUGIN: u64 = 5;

/// A history that was run.
#[derive(Debug)]
pub struct Outcome {
    /// What was violated; none if all properties held.
    pub violation: Option<Violation>,
    /// What happened, if it was recorded.
    pub record: String,
    /// How much simulated time it took.
    pub lasted: Duration,
    /// How many writes the hosts made, without those of Leases and Events.
    pub writes: u64,
}

/// Whether what happens is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// It is, for somebody to read.
    On,
    /// It is not, which is quicker.
    Off,
}

/// Runs a history.
///
/// # Errors
/// If the runtime cannot be built, or the log cannot be recorded.
pub fn run(template: &Template, history: &History, recording: Recording) -> std::io::Result<Outcome> {
    // Backoff of watches draws from the thread's own random numbers.
    fastrand::seed(history.seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(live(template, history, recording))
}

async fn live(template: &Template, history: &History, recording: Recording) -> std::io::Result<Outcome> {
    let time = Time::begin();
    let record = match recording {
        Recording::On => Record::begin(time),
        Recording::Off => Record::none(),
    };
    let _log = match recording {
        Recording::On => Some(log::into_record(&record).map_err(std::io::Error::other)?),
        Recording::Off => None,
    };
    let world = World::begin(template, history, time, record.clone());
    let violation = through(&world, history).await.err();
    if let Some(violation) = &violation {
        record.note("violation", || violation.to_string());
    }
    Ok(Outcome { violation, record: record.text(), lasted: time.elapsed(), writes: world.writes.count().0 })
}

async fn through(world: &Arc<World>, history: &History) -> Result<(), Violation> {
    if history.is_ordinary() {
        world.watch_ready();
        world.writes.judge_order();
    }
    for timed in &history.steps {
        tokio::time::sleep(Duration::from_millis(timed.after.into())).await;
        world.take(&timed.step).await;
        if timed.step == Step::Rest {
            world.calm();
            world.bring_back_plugin();
            come_to_rest(world).await?;
        }
        so_far(world)?;
    }
    world.calm();
    finish_without_plugin(world).await?;
    come_to_rest(world).await?;
    if history.seed.is_multiple_of(LONGER) {
        be_quiet(world, LONG_QUIET).await?;
        world.watch_ready();
        restart(world).await?;
    } else {
        be_quiet(world, QUIET).await?;
        world.watch_ready();
    }
    world.users.create_fresh();
    come_to_rest(world).await?;
    fresh::difference(&world.snapshot(), world.version()).map_or(Ok(()), Err)?;
    if history.seed.is_multiple_of(WITHOUT_PLUGIN) {
        world.take(&Step::RemovePlugin).await;
    }
    world.users.delete_all();
    finish_without_plugin(world).await?;
    come_to_rest(world).await?;
    leave_nothing(world).await
}

/// The first violation that a write led to.
fn so_far(world: &World) -> Result<(), Violation> {
    world.writes.violation().map_or(Ok(()), Err)
}

/// Waits until everything is as it shall be.
async fn come_to_rest(world: &Arc<World>) -> Result<(), Violation> {
    let going =
        || Violation { property: Property::ComesToRest, what: "a CRD or a namespace is still going".to_owned() };
    until_none(
        world,
        |is_prepared| {
            if is_prepared { at_rest::problem(&world.snapshot(), world.version()) } else { Some(going()) }
        },
    )
    .await
}

/// If the plugin is removed: waits until there is nothing that has to go all the same, and loads the plugin again. A CRD or a namespace may
/// wait for the plugin, and children for them.
async fn finish_without_plugin(world: &Arc<World>) -> Result<(), Violation> {
    if !world.is_plugin_removed() {
        return Ok(());
    }
    until_none(world, |is_prepared| at_rest::left_in_order(&world.snapshot()).filter(|_| is_prepared)).await?;
    world.bring_back_plugin();
    Ok(())
}

/// Waits until there is no problem, while users go on with what they have begun. `problem` gets whether they are done.
async fn until_none(world: &Arc<World>, problem: impl Fn(bool) -> Option<Violation>) -> Result<(), Violation> {
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(200);
    // What was seen last, and of which state.
    let mut seen = None;
    loop {
        tokio::time::sleep(pause).await;
        so_far(world)?;
        let is_prepared = world.users.prepare();
        let state = (is_prepared, world.cluster.judged().get());
        let found = match seen.take_if(|(before, _)| *before == state) {
            Some((_, found)) => Some(found),
            None => problem(is_prepared),
        };
        let Some(found) = found else { return Ok(()) };
        if Instant::now() > end {
            return Err(found);
        }
        seen = Some((state, found));
        pause = (pause * 2).min(Duration::from_secs(20));
    }
}

/// Waits until nothing is written any more for a while, and all is as it shall be at the end of it. A late answer, the count of an Event or
/// a detail of a status may come before; a watch that was stalled may tell of a rollout only after that.
async fn be_quiet(world: &Arc<World>, quiet: Duration) -> Result<(), Violation> {
    let end = Instant::now() + PATIENCE;
    loop {
        let (before, _) = world.writes.count();
        tokio::time::sleep(quiet).await;
        so_far(world)?;
        let (after, latest) = world.writes.count();
        let problem = if after == before {
            at_rest::problem(&world.snapshot(), world.version())
        } else {
            let what = format!("{} writes while nothing changed; the latest: {latest}", after - before);
            Some(Violation { property: Property::QuietAtRest, what })
        };
        match problem {
            None => return Ok(()),
            Some(problem) if Instant::now() > end => return Err(problem),
            Some(_) => {}
        }
    }
}

/// Ends the hosts and makes sure that those in their places write nothing.
async fn restart(world: &Arc<World>) -> Result<(), Violation> {
    let (before, _) = world.writes.count();
    for host in 0..3 {
        world.crash(host, 1);
    }
    tokio::time::sleep(LONG_QUIET).await;
    let (after, latest) = world.writes.count();
    if after > before {
        let what = format!("{} writes of hosts that started anew; the latest: {latest}", after - before);
        return Err(Violation { property: Property::QuietAfterRestart, what });
    }
    so_far(world)
}

/// Waits until all objects are gone with what they control.
async fn leave_nothing(world: &Arc<World>) -> Result<(), Violation> {
    let snapshot = world.snapshot();
    match snapshot.reconciled().next() {
        None => so_far(world)?,
        Some(object) => {
            let what = format!("the object {} is still there", object.name());
            return Err(Violation { property: Property::LeavesNothing, what });
        }
    }
    let end = Instant::now() + LONG_QUIET;
    loop {
        match world.remembered() {
            0 => return Ok(()),
            objects if Instant::now() > end => {
                let what = format!("hosts remember something of {objects} objects, and there are none");
                return Err(Violation { property: Property::ForgetsWhatIsGone, what });
            }
            _ => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
}
