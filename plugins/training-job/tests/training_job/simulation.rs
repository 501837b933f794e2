//! Stories of jobs in which the host stops after any of its writes: in the end nothing is counted twice or forgotten, and
//! the cluster is as if it had not stopped.

use crate::world::World;
use pilothouse_sdk::Error;
use serde_json::json;

/// What happens to a job, step by step; between the steps the host does all that there is to do.
type Step = fn(&mut World) -> Result<(), Error>;

struct Story {
    name: &'static str,
    spec: &'static str,
    graceful: bool,
    steps: &'static [Step],
}

const RUN: Step = |world| {
    world.all("Running");
    Ok(())
};

const SUCCEED: Step = |world| {
    world.all("Succeeded");
    Ok(())
};

const FAIL: Step = |world| world.fail("mnist-worker-1", 137);

const FAIL_TWO: Step = |world| {
    world.fail("mnist-worker-0", 1)?;
    world.fail("mnist-worker-2", 1)
};

const COLLECT: Step = |world| {
    world.collect();
    Ok(())
};

const LOSE: Step = |world| {
    world.take("mnist-worker-1");
    Ok(())
};

const PASS: Step = |world| {
    world.pass(60);
    Ok(())
};

const CHANGE: Step = |world| {
    world.job["spec"]["image"] = json!("another");
    Ok(())
};

const SUSPEND: Step = |world| {
    world.job["spec"]["runPolicy"]["suspend"] = json!(true);
    Ok(())
};

const RESUME: Step = |world| {
    world.job["spec"]["runPolicy"]["suspend"] = json!(false);
    Ok(())
};

#[rustfmt::skip]
const STORIES: &[Story] = &[
    Story { name: "success", spec: "runPolicy: {cleanPodPolicy: All}", graceful: false, steps: &[RUN, PASS, SUCCEED] },
    Story { name: "time to live", spec: "runPolicy: {ttlSecondsAfterFinished: 30, cleanPodPolicy: All}", graceful: false,
        steps: &[RUN, SUCCEED, PASS] },
    Story { name: "all restarted", spec: "runPolicy: {}", graceful: false,
        steps: &[RUN, FAIL, RUN, PASS, FAIL_TWO, PASS, RUN, SUCCEED] },
    Story { name: "all restarted, slowly", spec: "runPolicy: {}", graceful: true,
        steps: &[RUN, FAIL, COLLECT, RUN, PASS, FAIL_TWO, COLLECT, PASS, RUN, SUCCEED] },
    Story { name: "one replaced", spec: "runPolicy: {restartScope: Worker}", graceful: false,
        steps: &[RUN, FAIL, RUN, PASS, FAIL_TWO, PASS, RUN, SUCCEED] },
    Story { name: "one replaced, slowly", spec: "runPolicy: {restartScope: Worker}", graceful: true,
        steps: &[RUN, FAIL, COLLECT, RUN, PASS, FAIL_TWO, COLLECT, PASS, RUN, SUCCEED] },
    Story { name: "worn out", spec: "runPolicy: {backoffLimit: 1}", graceful: false, steps: &[RUN, FAIL, RUN, PASS, FAIL] },
    Story { name: "deadline", spec: "runPolicy: {activeDeadlineSeconds: 100}", graceful: true,
        steps: &[RUN, PASS, PASS, COLLECT] },
    Story { name: "another spec", spec: "runPolicy: {}", graceful: true,
        steps: &[RUN, CHANGE, COLLECT, RUN, SUCCEED] },
    Story { name: "suspended", spec: "runPolicy: {}", graceful: true,
        steps: &[RUN, SUSPEND, COLLECT, PASS, RESUME, RUN, PASS, SUCCEED] },
    Story { name: "lost", spec: "runPolicy: {restartScope: Worker}", graceful: false, steps: &[RUN, LOSE, RUN, SUCCEED] },
    Story { name: "all lost with one", spec: "runPolicy: {}", graceful: false, steps: &[RUN, LOSE, RUN, SUCCEED] },
    Story { name: "scaled", spec: "elastic: {minWorkers: 1, maxWorkers: 5}", graceful: false, steps: &[RUN,
        |world| { world.job["spec"]["workers"] = json!(5); Ok(()) }, RUN,
        |world| { world.job["spec"]["workers"] = json!(2); Ok(()) }, RUN, SUCCEED] },
    Story { name: "parameter servers", spec: "framework: tensorflow, parameterServers: 2, runPolicy: {restartPolicy: ExitCode}",
        graceful: false, steps: &[RUN, FAIL, RUN, |world| world.fail("mnist-ps-1", 200), PASS, RUN,
            |world| world.set("mnist-worker-0", "phase: Succeeded")] },
];

#[test]
fn a_host_that_stops_anywhere_changes_nothing() -> Result<(), Error> {
    for story in STORIES {
        let undisturbed = end(tell(story, None)?)?;
        let mut stops = 0;
        loop {
            let world = tell(story, Some(stops))?;
            let stopped = world.writes_left.is_none();
            let found = end(world)?;
            assert_eq!(found, undisturbed, "{}: stopped before write {stops}", story.name);
            if !stopped {
                break;
            }
            stops += 1;
        }
        assert!(stops > 8, "{}: there were writes to stop before, {stops} of them", story.name);
    }
    Ok(())
}

#[test]
fn a_host_that_stops_again_and_again_gets_there_all_the_same() -> Result<(), Error> {
    for story in STORIES {
        for every in 1..4 {
            let mut world = begin(story)?;
            for step in std::iter::once(&(PASS as Step)).chain(story.steps) {
                step(&mut world)?;
                for _ in 0..200 {
                    world.writes_left = Some(every);
                    if world.reconcile()? == crate::world::End::Reported && world.requeue != Some(0) {
                        break;
                    }
                }
            }
            let undisturbed = end(tell(story, None)?)?;
            assert_eq!(end(world)?.status, undisturbed.status, "{}: stopped after every {every} writes", story.name);
        }
    }
    Ok(())
}

/// Tells a story; the host stops before the write of that number.
fn tell(story: &Story, stop: Option<usize>) -> Result<World, Error> {
    let mut world = begin(story)?;
    world.writes_left = stop;
    world.pass(60);
    world.settle()?;
    for step in story.steps {
        step(&mut world)?;
        world.settle()?;
    }
    Ok(world)
}

fn begin(story: &Story) -> Result<World, Error> {
    let mut world = World::of(&format!("workers: 3, {}", story.spec))?;
    world.graceful = story.graceful;
    Ok(world)
}

/// What a story comes to. UIDs are left out, for Pods may have been made in another order.
#[derive(Debug, PartialEq)]
struct Ending {
    status: String,
    children: Vec<String>,
    events: Vec<String>,
}

fn end(world: World) -> Result<Ending, Error> {
    let status = world.status()?;
    let workers: Vec<_> =
        status.replica_statuses().map(|worker| format!("{}={}", worker.pod_name, worker.status)).collect();
    let conditions: Vec<_> =
        status.conditions.iter().map(|c| format!("{}={} {}", c.condition_type, c.status, c.reason)).collect();
    let samples = &world.samples;
    let (phase, start, end) = (status.phase, &status.start_time, &status.completion_time);
    let (restarts, retiring) = (status.restart_count, status.retiring_pods.len());
    let mut events: Vec<_> = world.events.iter().map(|(reason, message)| format!("{reason}: {message}")).collect();
    events.sort();
    Ok(Ending {
        status: format!("{phase:?} {start:?} {end:?} {restarts} {retiring} {workers:?} {conditions:?} {samples:?}"),
        children: world.children.keys().map(|(kind, name)| format!("{kind} {name}")).collect(),
        events,
    })
}
