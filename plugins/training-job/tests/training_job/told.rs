//! What is told of a job: Events and metrics, each once.

use crate::world::World;
use pilothouse_sdk::Error;
use serde_json::json;

/// The events so far, in order, as `Reason: message`.
fn events(world: &World) -> Vec<String> {
    world.events.iter().map(|(reason, message)| format!("{reason}: {message}")).collect()
}

#[test]
fn the_story_of_a_job_that_succeeds() -> Result<(), Error> {
    let mut world = World::of("workers: 4")?;
    world.settle()?;
    world.all("Running");
    world.settle()?;
    world.pass(90);
    world.all("Succeeded");
    for _ in 0..5 {
        world.settle()?;
    }
    assert_eq!(
        events(&world),
        [
            "TrainingJobCreated: the job is taken on",
            "WorkersCreated: Created 4 worker pods",
            "TrainingJobSucceeded: 4 workers have succeeded",
        ]
    );
    assert_eq!(world.counted("training_jobs_created_total"), 1.0);
    assert_eq!(world.counted("training_jobs_succeeded_total"), 1.0);
    assert_eq!(world.counted("training_jobs_failed_total"), 0.0);
    assert_eq!(world.counted("training_job_duration_seconds"), 90.0);
    Ok(())
}

#[test]
fn the_story_of_a_job_that_is_restarted_and_fails() -> Result<(), Error> {
    let mut world = World::running("workers: 2, runPolicy: {backoffLimit: 1}")?;
    world.fail("mnist-worker-1", 137)?;
    world.settle()?;
    world.all("Running");
    world.settle()?;
    world.pass(10);
    world.fail("mnist-worker-0", 2)?;
    world.settle()?;
    assert_eq!(
        events(&world)[2..],
        [
            "ExitedWithCode: Pod ml.mnist-worker-1 exited with code 137",
            "TrainingJobRestarting: failed: mnist-worker-1 (exit code 137); all workers are restarted",
            "SuccessfulDeletePod: Deleted mnist-worker-0, mnist-worker-1",
            "WorkersCreated: Created 2 worker pods",
            "ExitedWithCode: Pod ml.mnist-worker-0 exited with code 2",
            "TrainingJobFailed: the backoffLimit of 1 is used up; last: mnist-worker-0 (exit code 2)",
        ]
    );
    assert_eq!(world.counted("training_jobs_restarted_total"), 1.0);
    assert_eq!(world.counted("training_jobs_failed_total"), 1.0);
    assert_eq!(world.counted("training_job_duration_seconds"), 10.0);
    Ok(())
}

#[test]
fn one_worker_that_is_replaced_is_named() -> Result<(), Error> {
    let mut world = World::running("workers: 3, runPolicy: {restartScope: Worker}")?;
    world.fail("mnist-worker-1", 1)?;
    world.settle()?;
    assert_eq!(
        events(&world)[2..],
        [
            "ExitedWithCode: Pod ml.mnist-worker-1 exited with code 1",
            "TrainingJobRestarting: failed: mnist-worker-1 (exit code 1); they are replaced",
            "SuccessfulDeletePod: Deleted mnist-worker-1",
            "SuccessfulCreatePod: Created mnist-worker-1",
        ]
    );
    Ok(())
}

#[test]
fn parameter_servers_are_told_beside_the_workers() -> Result<(), Error> {
    let mut world = World::of("framework: tensorflow, workers: 2, parameterServers: 1")?;
    world.settle()?;
    assert_eq!(
        events(&world)[1..],
        ["WorkersCreated: Created 2 worker pods", "SuccessfulCreatePod: Created mnist-ps-0"]
    );
    Ok(())
}

#[test]
fn trouble_is_told_in_its_own_words_and_once() -> Result<(), Error> {
    let mut world = World::of("workers: 12")?;
    world.settle()?;
    for index in 0..12 {
        let status = "phase: Pending, containerStatuses: [{name: pytorch, state: \
                      {waiting: {reason: ImagePullBackOff, message: no such image}}}]";
        world.set(&format!("mnist-worker-{index}"), status)?;
    }
    world.settle()?;
    world.settle()?;
    let trouble: Vec<_> = world.events.iter().filter(|(reason, _)| reason == "ImagePullBackOff").collect();
    assert_eq!(trouble.len(), 1, "one event for all of them");
    assert!(trouble[0].1.ends_with("and 2 more: no such image"), "{}", trouble[0].1);
    Ok(())
}

#[test]
fn an_evicted_pod_is_told_by_its_own_reason() -> Result<(), Error> {
    let mut world = World::running("workers: 2")?;
    world.set("mnist-worker-1", "phase: Failed, reason: Evicted, message: the node was low on memory")?;
    world.settle()?;
    assert!(events(&world).contains(&"Evicted: Pod mnist-worker-1: the node was low on memory".to_owned()));
    Ok(())
}

#[test]
fn measurements_carry_the_labels_that_the_manifest_declares() -> Result<(), Error> {
    let mut world = World::running("framework: tensorflow, workers: 1")?;
    world.all("Failed");
    let samples = world.ask()?.response.measurements;
    let failed = samples.iter().find(|sample| sample.name == "training_jobs_failed_total");
    let labels = failed.map(|sample| json!(sample.labels.iter().map(|l| [&l.key, &l.value]).collect::<Vec<_>>()));
    assert_eq!(labels, Some(json!([["namespace", "ml"], ["framework", "tensorflow"]])));
    Ok(())
}
