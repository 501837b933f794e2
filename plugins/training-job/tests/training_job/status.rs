//! What the status says of workers and of the job.

use crate::world::World;
use pilothouse_sdk::Error;
use serde_json::json;

#[test]
fn every_worker_is_told_by_its_phase_or_why_it_waits() -> Result<(), Error> {
    let mut world = World::of("workers: 4, runPolicy: {restartPolicy: ExitCode, restartScope: Worker}")?;
    world.settle()?;
    world.set("mnist-worker-0", "phase: Running")?;
    let waiting = "phase: Pending, containerStatuses: [{name: pytorch, restartCount: 3, \
                   state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]";
    world.set("mnist-worker-1", waiting)?;
    let unschedulable = "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, \
                         message: 0/3 nodes are available}]";
    world.set("mnist-worker-2", unschedulable)?;
    world.settle()?;
    assert_eq!(
        world.job["status"]["workerStatuses"],
        json!([
            { "workerId": 0, "podName": "mnist-worker-0", "status": "Running", "podUid": world.uid("mnist-worker-0")? },
            { "workerId": 1, "podName": "mnist-worker-1", "status": "CrashLoopBackOff", "reason": "CrashLoopBackOff",
              "message": "back-off", "restarts": 3, "podUid": world.uid("mnist-worker-1")? },
            { "workerId": 2, "podName": "mnist-worker-2", "status": "Pending", "reason": "Unschedulable",
              "message": "0/3 nodes are available", "podUid": world.uid("mnist-worker-2")? },
            { "workerId": 3, "podName": "mnist-worker-3", "status": "Pending", "podUid": world.uid("mnist-worker-3")? },
        ])
    );
    Ok(())
}

#[test]
fn why_a_job_does_not_start_is_in_its_ready_condition() -> Result<(), Error> {
    let mut world = World::of("workers: 2")?;
    world.settle()?;
    assert_eq!(world.message("Ready")?, "0 of 2 workers run");
    let waiting = "phase: Pending, containerStatuses: [{name: pytorch, \
                   state: {waiting: {reason: ErrImagePull, message: no such image}}}]";
    world.set("mnist-worker-1", waiting)?;
    world.settle()?;
    assert_eq!(world.condition("Ready")?, "False TrainingJobPending");
    assert_eq!(world.message("Ready")?, "0 of 2 workers run; mnist-worker-1: ErrImagePull: no such image");
    Ok(())
}

#[test]
fn workers_are_counted_for_autoscalers_and_people() -> Result<(), Error> {
    let mut world = World::running(
        "workers: 4, elastic: {minWorkers: 1, maxWorkers: 4}, successPolicy: AllWorkers, \
                                    runPolicy: {restartPolicy: Never}",
    )?;
    world.set("mnist-worker-1", "phase: Succeeded")?;
    world.settle()?;
    let status = world.status()?;
    assert_eq!((status.replicas, status.active, status.succeeded, status.failed), (4, 3, 1, 0));
    assert_eq!(status.selector, "ml.example.com/job-name=mnist,ml.example.com/replica-type=worker");
    world.fail("mnist-worker-2", 9)?;
    world.settle()?;
    let status = world.status()?;
    assert_eq!((status.active, status.succeeded, status.failed), (2, 1, 1));
    assert_eq!(status.worker_statuses[2].exit_code, Some(9));
    Ok(())
}

#[test]
fn parameter_servers_have_a_list_of_their_own() -> Result<(), Error> {
    let mut world = World::of("framework: tensorflow, workers: 2, parameterServers: 1")?;
    world.settle()?;
    let status = world.status()?;
    let names = |list: &[training_job::api::WorkerStatus]| list.iter().map(|s| s.pod_name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&status.worker_statuses), ["mnist-worker-0", "mnist-worker-1"]);
    assert_eq!(names(&status.parameter_server_statuses), ["mnist-ps-0"]);
    Ok(())
}

#[test]
fn long_messages_are_cut() -> Result<(), Error> {
    let mut world = World::of("workers: 1")?;
    world.settle()?;
    world.set("mnist-worker-0", &format!("phase: Failed, reason: Evicted, message: {}", "é".repeat(1000)))?;
    world.reconcile()?;
    let status = world.status()?;
    assert_eq!(status.worker_statuses[0].message.as_deref().map(str::len), Some(256));
    Ok(())
}

#[test]
fn the_start_is_when_all_pods_were_there_and_the_end_when_it_was_seen() -> Result<(), Error> {
    let mut world = World::of("workers: 2")?;
    world.settle()?;
    let start = world.time(0);
    world.pass(100);
    world.all("Running");
    world.settle()?;
    world.pass(100);
    world.all("Succeeded");
    world.settle()?;
    let status = world.status()?;
    assert_eq!((status.start_time, status.completion_time), (Some(start), Some(world.time(0))));
    Ok(())
}
