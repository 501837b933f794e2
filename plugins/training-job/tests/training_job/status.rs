//! What the status says of the workers and of the job.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::json;

#[test]
fn the_status_of_a_worker_is_its_phase_or_why_it_cannot_start() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 4, runPolicy: {restartPolicy: ExitCode, restartScope: Worker}")?;
    cluster.reconcile_until_stable()?;
    cluster.set_pod_status("mnist-worker-0", "phase: Running")?;
    let waiting = "phase: Pending, containerStatuses: [{name: pytorch, restartCount: 3, \
                   state: {waiting: {reason: CrashLoopBackOff, message: back-off}}}]";
    cluster.set_pod_status("mnist-worker-1", waiting)?;
    let unschedulable = "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, \
                         message: 0/3 nodes are available}]";
    cluster.set_pod_status("mnist-worker-2", unschedulable)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(
        cluster.job["status"]["workerStatuses"],
        json!([
            { "workerId": 0, "podName": "mnist-worker-0", "status": "Running", "podUid": cluster.pod_uid("mnist-worker-0")? },
            { "workerId": 1, "podName": "mnist-worker-1", "status": "CrashLoopBackOff", "reason": "CrashLoopBackOff",
              "message": "back-off", "restarts": 3, "podUid": cluster.pod_uid("mnist-worker-1")? },
            { "workerId": 2, "podName": "mnist-worker-2", "status": "Pending", "reason": "Unschedulable",
              "message": "0/3 nodes are available", "podUid": cluster.pod_uid("mnist-worker-2")? },
            { "workerId": 3, "podName": "mnist-worker-3", "status": "Pending", "podUid": cluster.pod_uid("mnist-worker-3")? },
        ])
    );
    Ok(())
}

#[test]
fn the_ready_condition_says_why_a_job_does_not_start() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 2")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition_message("Ready"), "0 of 2 workers run");
    let waiting = "phase: Pending, containerStatuses: [{name: pytorch, \
                   state: {waiting: {reason: ErrImagePull, message: no such image}}}]";
    cluster.set_pod_status("mnist-worker-1", waiting)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Ready"), "False TrainingJobPending");
    assert_eq!(cluster.condition_message("Ready"), "0 of 2 workers run; mnist-worker-1: ErrImagePull: no such image");
    Ok(())
}

#[test]
fn the_status_counts_workers_and_has_their_selector() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running(
        "workers: 4, elastic: {minWorkers: 1, maxWorkers: 4}, successPolicy: AllWorkers, \
                                    runPolicy: {restartPolicy: Never}",
    )?;
    cluster.set_pod_status("mnist-worker-1", "phase: Succeeded")?;
    cluster.reconcile_until_stable()?;
    let status = cluster.status()?;
    assert_eq!((status.replicas, status.active, status.succeeded, status.failed), (4, 3, 1, 0));
    assert_eq!(status.selector, "ml.example.com/job-name=mnist,ml.example.com/replica-type=worker");
    cluster.fail_pod("mnist-worker-2", 9)?;
    cluster.reconcile_until_stable()?;
    let status = cluster.status()?;
    assert_eq!((status.active, status.succeeded, status.failed), (2, 1, 1));
    assert_eq!(status.worker_statuses[2].exit_code, Some(9));
    Ok(())
}

#[test]
fn surplus_pods_of_a_job_that_is_scaled_down_are_not_counted() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 4, elastic: {minWorkers: 1, maxWorkers: 4}")?;
    cluster.graceful_deletion = true;
    cluster.job["spec"]["workers"] = json!(2);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 4, "two Pods are still being deleted");
    let status = cluster.status()?;
    assert_eq!((status.replicas, status.active), (2, 2));
    assert_eq!(cluster.condition_message("Ready"), "2 of 2 workers run");
    Ok(())
}

#[test]
fn parameter_servers_have_a_list_of_their_own() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("framework: tensorflow, workers: 2, parameterServers: 1")?;
    cluster.reconcile_until_stable()?;
    let status = cluster.status()?;
    let names = |list: &[training_job::api::WorkerStatus]| list.iter().map(|s| s.pod_name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&status.worker_statuses), ["mnist-worker-0", "mnist-worker-1"]);
    assert_eq!(names(&status.parameter_server_statuses), ["mnist-ps-0"]);
    Ok(())
}

/// What ended a program is said last: by torchrun, which itself always ends with 1, and by Python.
#[test]
fn of_the_log_of_a_failed_worker_the_last_whole_lines_are_kept() -> Result<(), Error> {
    let end = "  exitcode  : -9 (pid: 7)\n  traceback : Signal 9 (SIGKILL) received by PID 7";
    let (line, accents) = ("step 17 loss 0.5 in epoch\n", "é".repeat(1000));
    for (log, expected) in [
        (end.to_owned(), end.to_owned()),
        (format!("{}{end}\n", line.repeat(50)), format!("{}{end}", line.repeat(6))),
        (accents.clone(), accents[..256].to_owned()),
    ] {
        let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {restartPolicy: Never}")?;
        cluster.fail_pod("mnist-worker-1", 1)?;
        let container = &mut cluster.child_mut("Pod", "mnist-worker-1")?["status"]["containerStatuses"][0];
        container["state"]["terminated"]["message"] = json!(log);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.status()?.worker_statuses[1].message, Some(expected));
    }
    Ok(())
}

#[test]
fn long_messages_of_pods_are_cut() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 1")?;
    cluster.reconcile_until_stable()?;
    cluster
        .set_pod_status("mnist-worker-0", &format!("phase: Failed, reason: Evicted, message: {}", "é".repeat(1000)))?;
    cluster.reconcile()?;
    let status = cluster.status()?;
    assert_eq!(status.worker_statuses[0].message.as_deref().map(str::len), Some(256));
    Ok(())
}

#[test]
fn the_start_time_is_when_all_pods_exist_and_the_completion_time_when_the_end_is_observed() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 2")?;
    cluster.reconcile_until_stable()?;
    let start = cluster.time_after(0);
    cluster.advance_clock(100);
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    cluster.advance_clock(100);
    cluster.set_phase_of_all_pods("Succeeded");
    cluster.reconcile_until_stable()?;
    let status = cluster.status()?;
    assert_eq!((status.start_time, status.completion_time), (Some(start), Some(cluster.time_after(0))));
    Ok(())
}
