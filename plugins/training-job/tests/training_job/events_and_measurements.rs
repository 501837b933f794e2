//! Events and measurements of a job, each reported once.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::json;

/// The events so far, in order, as `Reason: message`.
fn events(cluster: &SimulatedCluster) -> Vec<String> {
    cluster.events.iter().map(ToString::to_string).collect()
}

#[test]
fn a_job_that_succeeds() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 4")?;
    cluster.reconcile_until_stable()?;
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    cluster.advance_clock(90);
    cluster.set_phase_of_all_pods("Succeeded");
    for _ in 0..5 {
        cluster.reconcile_until_stable()?;
    }
    assert_eq!(
        events(&cluster),
        [
            "TrainingJobCreated: the job is taken on",
            "WorkersCreated: Created 4 worker pods",
            "TrainingJobSucceeded: 4 workers have succeeded",
        ]
    );
    assert_eq!(cluster.measured("training_jobs_created_total"), 1.0);
    assert_eq!(cluster.measured("training_jobs_succeeded_total"), 1.0);
    assert_eq!(cluster.measured("training_jobs_failed_total"), 0.0);
    assert_eq!(cluster.measured("training_job_duration_seconds"), 90.0);
    Ok(())
}

#[test]
fn a_job_that_is_restarted_and_fails() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {backoffLimit: 1}")?;
    cluster.fail_pod("mnist-worker-1", 137)?;
    cluster.reconcile_until_stable()?;
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    cluster.advance_clock(10);
    cluster.fail_pod("mnist-worker-0", 2)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(
        events(&cluster)[2..],
        [
            "ExitedWithCode: Pod ml.mnist-worker-1 exited with code 137",
            "TrainingJobRestarting: failed: mnist-worker-1 (exit code 137); all workers are restarted",
            "SuccessfulDeletePod: Deleted mnist-worker-0, mnist-worker-1",
            "WorkersCreated: Created 2 worker pods",
            "ExitedWithCode: Pod ml.mnist-worker-0 exited with code 2",
            "TrainingJobFailed: the backoffLimit of 1 is used up; last: mnist-worker-0 (exit code 2)",
        ]
    );
    assert_eq!(cluster.measured("training_jobs_restarted_total"), 1.0);
    assert_eq!(cluster.measured("training_jobs_failed_total"), 1.0);
    assert_eq!(cluster.measured("training_job_duration_seconds"), 10.0);
    Ok(())
}

#[test]
fn an_event_names_a_worker_that_is_replaced() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 3, runPolicy: {restartScope: Worker}")?;
    cluster.fail_pod("mnist-worker-1", 1)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(
        events(&cluster)[2..],
        [
            "ExitedWithCode: Pod ml.mnist-worker-1 exited with code 1",
            "TrainingJobRestarting: failed: mnist-worker-1 (exit code 1); they are replaced",
            "SuccessfulDeletePod: Deleted mnist-worker-1",
            "SuccessfulCreatePod: Created mnist-worker-1",
        ]
    );
    Ok(())
}

/// What makes Pods go.
type Cause = (&'static str, &'static str, fn(&mut SimulatedCluster) -> Result<(), Error>);

const CAUSES: &[Cause] = &[
    ("workers: 2", "Deleted mnist-worker-0, mnist-worker-1", |cluster| cluster.fail_pod("mnist-worker-1", 1)),
    ("workers: 2", "Deleted mnist-worker-0, mnist-worker-1", |cluster| {
        cluster.job["spec"]["image"] = json!("another");
        Ok(())
    }),
    ("workers: 2", "Deleted mnist-worker-0, mnist-worker-1", |cluster| {
        cluster.job["spec"]["runPolicy"] = json!({ "suspend": true });
        Ok(())
    }),
    ("workers: 2, elastic: {minWorkers: 1, maxWorkers: 4}", "Deleted mnist-worker-1", |cluster| {
        cluster.job["spec"]["workers"] = json!(1);
        Ok(())
    }),
];

/// The host has no right to delete, or waits until somebody confirms it.
#[test]
fn pods_are_told_as_deleted_once_they_are_and_not_while_the_host_holds_that_back() -> Result<(), Error> {
    for (spec, words, cause) in CAUSES {
        for graceful in [true, false] {
            let mut cluster = SimulatedCluster::running(spec)?;
            (cluster.graceful_deletion, cluster.deletes_are_held) = (graceful, true);
            cause(&mut cluster)?;
            for _ in 0..3 {
                cluster.reconcile()?;
            }
            let told = |cluster: &SimulatedCluster| {
                let told = cluster.events.iter().filter(|event| event.reason == "SuccessfulDeletePod");
                told.map(|event| event.message.clone()).collect::<Vec<_>>()
            };
            assert_eq!((told(&cluster), cluster.pod_names().len()), (vec![], 2), "{spec}: they are all there");
            cluster.deletes_are_held = false;
            cluster.reconcile_until_stable()?;
            cluster.finish_deletions();
            cluster.reconcile_until_stable()?;
            assert_eq!(told(&cluster), [*words], "{spec}");
        }
    }
    Ok(())
}

#[test]
fn parameter_servers_have_an_event_beside_that_of_the_workers() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("framework: tensorflow, workers: 2, parameterServers: 1")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(
        events(&cluster)[1..],
        ["WorkersCreated: Created 2 worker pods", "SuccessfulCreatePod: Created mnist-ps-0"]
    );
    Ok(())
}

#[test]
fn a_problem_of_many_pods_is_one_event_with_the_words_of_the_kubelet() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 12")?;
    cluster.reconcile_until_stable()?;
    for index in 0..12 {
        let status = "phase: Pending, containerStatuses: [{name: pytorch, state: \
                      {waiting: {reason: ImagePullBackOff, message: no such image}}}]";
        cluster.set_pod_status(&format!("mnist-worker-{index}"), status)?;
    }
    cluster.reconcile_until_stable()?;
    cluster.reconcile_until_stable()?;
    let problems: Vec<_> = cluster.events.iter().filter(|event| event.reason == "ImagePullBackOff").collect();
    assert_eq!(problems.len(), 1, "one Event for all Pods");
    assert!(problems[0].message.ends_with("and 2 more: no such image"), "{}", problems[0]);
    Ok(())
}

#[test]
fn the_event_of_an_evicted_pod_has_the_reason_of_the_pod() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.set_pod_status("mnist-worker-1", "phase: Failed, reason: Evicted, message: the node was low on memory")?;
    cluster.reconcile_until_stable()?;
    assert!(events(&cluster).contains(&"Evicted: Pod mnist-worker-1: the node was low on memory".to_owned()));
    Ok(())
}

#[test]
fn measurements_carry_the_labels_that_the_manifest_declares() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("framework: tensorflow, workers: 1")?;
    cluster.set_phase_of_all_pods("Failed");
    let measurements = cluster.call_plugin()?.response.measurements;
    let failed = measurements.iter().find(|measurement| measurement.name == "training_jobs_failed_total");
    let labels = failed.map(|failed| json!(failed.labels.iter().map(|l| [&l.key, &l.value]).collect::<Vec<_>>()));
    assert_eq!(labels, Some(json!([["namespace", "ml"], ["framework", "tensorflow"]])));
    Ok(())
}
