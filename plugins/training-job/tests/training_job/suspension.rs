//! Suspended jobs, jobs of somebody else, and what happens when they go on.

use crate::world::World;
use pilothouse_sdk::Error;
use serde_json::json;
use training_job::api::Phase;

#[test]
fn a_suspended_job_has_no_pods_and_goes_on_with_new_ones() -> Result<(), Error> {
    let mut world = World::running("workers: 2, hyperparameters: {a: 1}, runPolicy: {activeDeadlineSeconds: 100}")?;
    world.pass(60);
    world.job["spec"]["runPolicy"]["suspend"] = json!(true);
    world.settle()?;
    assert_eq!(world.children.len(), 0, "Pods and all around them are gone");
    assert!(world.removes_many);
    assert_eq!(world.phase()?, Some(Phase::Pending));
    assert_eq!(world.condition("Suspended")?, "True TrainingJobSuspended");
    assert_eq!(world.condition("Running")?, "False TrainingJobSuspended");
    assert_eq!(world.condition("Ready")?, "False TrainingJobSuspended");
    assert_eq!((world.status()?.start_time, world.requeue), (None, None), "its deadline does not count");

    world.pass(1000);
    world.job["spec"]["runPolicy"]["suspend"] = json!(false);
    world.settle()?;
    assert_eq!(world.pods().len(), 2);
    assert_eq!(world.condition("Suspended")?, "False TrainingJobResumed");
    assert_eq!(world.status()?.start_time, Some(world.time(0)), "and counts anew");
    assert_eq!((world.told("TrainingJobSuspended"), world.told("TrainingJobResumed")), (1, 1));
    assert_eq!(world.told("WorkersCreated"), 2);
    assert_eq!(world.counted("training_jobs_created_total"), 1.0, "it is still the same job");
    Ok(())
}

#[test]
fn a_job_can_be_made_suspended() -> Result<(), Error> {
    let mut world = World::of("workers: 2, runPolicy: {suspend: true}")?;
    world.settle()?;
    assert_eq!(world.children.len(), 0);
    assert_eq!((world.phase()?, world.is("Suspended")?, world.is("Created")?), (Some(Phase::Pending), true, true));
    world.job["spec"]["runPolicy"] = json!({});
    world.settle()?;
    assert_eq!(world.pods().len(), 2);
    Ok(())
}

#[test]
fn pods_on_their_way_out_are_waited_for_when_a_job_goes_on() -> Result<(), Error> {
    let mut world = World::running("workers: 2")?;
    world.graceful = true;
    world.job["spec"]["runPolicy"] = json!({ "suspend": true });
    world.settle()?;
    world.job["spec"]["runPolicy"] = json!({});
    world.settle()?;
    assert_eq!(world.status()?.start_time, None, "not started again yet");
    world.collect();
    world.settle()?;
    assert_eq!(world.pods().len(), 2);
    assert_eq!(world.status()?.start_time, Some(world.time(0)));
    Ok(())
}

#[test]
fn restarts_before_a_suspension_still_count() -> Result<(), Error> {
    let mut world = World::running("workers: 2, runPolicy: {backoffLimit: 1}")?;
    world.fail("mnist-worker-0", 1)?;
    world.settle()?;
    world.job["spec"]["runPolicy"]["suspend"] = json!(true);
    world.settle()?;
    world.job["spec"]["runPolicy"]["suspend"] = json!(false);
    world.settle()?;
    world.fail("mnist-worker-0", 1)?;
    world.settle()?;
    assert_eq!(world.condition("Failed")?, "True BackoffLimitExceeded");
    Ok(())
}

#[test]
fn a_job_that_goes_on_forgets_who_was_done_wherever_the_host_stopped() -> Result<(), Error> {
    for stop in 0..6 {
        let mut world = World::running("workers: 2")?;
        world.set("mnist-worker-0", "phase: Succeeded")?;
        world.settle()?;
        world.job["spec"]["runPolicy"] = json!({ "suspend": true });
        world.writes_left = Some(stop);
        for _ in 0..3 {
            world.reconcile()?;
        }
        world.writes_left = None;
        world.job["spec"]["runPolicy"] = json!({});
        world.settle()?;
        assert_eq!(world.pods(), ["mnist-worker-0", "mnist-worker-1"], "stopped before write {stop}");
    }
    Ok(())
}
