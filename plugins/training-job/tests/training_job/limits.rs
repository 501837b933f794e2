//! How long a job may run.

use crate::world::World;
use pilothouse_sdk::Error;
use training_job::api::Phase;

#[test]
fn a_job_fails_at_its_deadline_and_not_a_second_earlier() -> Result<(), Error> {
    let mut world = World::of("workers: 2, runPolicy: {activeDeadlineSeconds: 100}")?;
    world.settle()?;
    assert_eq!(world.requeue, Some(100), "counted from the start, also while Pods wait");
    world.pass(20);
    world.all("Running");
    world.settle()?;
    assert_eq!(world.requeue, Some(30), "a running job is looked at before");
    world.pass(79);
    world.settle()?;
    assert_eq!((world.phase()?, world.requeue), (Some(Phase::Running), Some(1)));
    world.pass(1);
    world.settle()?;
    assert_eq!(world.condition("Failed")?, "True DeadlineExceeded");
    assert_eq!(world.condition("Stalled")?, "True DeadlineExceeded", "nothing more happens");
    assert_eq!(world.condition("Running")?, "False DeadlineExceeded");
    assert_eq!(world.status()?.completion_time, Some(world.time(0)));
    assert_eq!(world.pods(), Vec::<&str>::new(), "its Pods are stopped");
    assert_eq!(world.counted("training_job_duration_seconds"), 100.0);
    Ok(())
}

#[test]
fn a_job_that_succeeds_at_its_deadline_has_succeeded() -> Result<(), Error> {
    let mut world = World::running("workers: 2, runPolicy: {activeDeadlineSeconds: 100}")?;
    world.pass(100);
    world.all("Succeeded");
    world.settle()?;
    assert_eq!(world.phase()?, Some(Phase::Succeeded));
    Ok(())
}

#[test]
fn restarts_do_not_move_the_deadline() -> Result<(), Error> {
    let mut world = World::running("workers: 2, runPolicy: {activeDeadlineSeconds: 100}")?;
    let start = world.status()?.start_time;
    world.pass(60);
    world.fail("mnist-worker-0", 1)?;
    world.settle()?;
    assert_eq!(world.status()?.start_time, start);
    assert_eq!(world.requeue, Some(40));
    world.pass(40);
    world.settle()?;
    assert_eq!(world.condition("Failed")?, "True DeadlineExceeded");
    Ok(())
}

#[test]
fn a_deadline_given_late_counts_from_the_start() -> Result<(), Error> {
    let mut world = World::running("workers: 2")?;
    world.pass(500);
    world.job["spec"]["runPolicy"] = serde_json::json!({ "activeDeadlineSeconds": 100 });
    world.settle()?;
    assert_eq!(world.condition("Failed")?, "True DeadlineExceeded");
    Ok(())
}
