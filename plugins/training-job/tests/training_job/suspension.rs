//! Suspended jobs, and what happens when they are resumed.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::json;
use training_job::api::Phase;

#[test]
fn a_suspended_job_has_no_children_and_is_resumed_with_new_pods() -> Result<(), Error> {
    let mut cluster =
        SimulatedCluster::running("workers: 2, hyperparameters: {a: 1}, runPolicy: {activeDeadlineSeconds: 100}")?;
    cluster.advance_clock(60);
    cluster.job["spec"]["runPolicy"]["suspend"] = json!(true);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.children.len(), 0, "all children are gone");
    assert!(cluster.removes_many);
    assert_eq!(cluster.phase()?, Some(Phase::Pending));
    assert_eq!(cluster.condition("Suspended"), "True TrainingJobSuspended");
    assert_eq!(cluster.condition("Running"), "False TrainingJobSuspended");
    assert_eq!(cluster.condition("Ready"), "False TrainingJobSuspended");
    assert_eq!((cluster.status()?.start_time, cluster.requeue_after), (None, None), "the deadline does not count");

    cluster.advance_clock(1000);
    cluster.job["spec"]["runPolicy"]["suspend"] = json!(false);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2);
    assert_eq!(cluster.condition("Suspended"), "False TrainingJobResumed");
    assert_eq!(cluster.status()?.start_time, Some(cluster.time_after(0)), "the deadline counts anew");
    assert_eq!((cluster.event_count("TrainingJobSuspended"), cluster.event_count("TrainingJobResumed")), (1, 1));
    assert_eq!(cluster.event_count("WorkersCreated"), 2);
    assert_eq!(cluster.measured("training_jobs_created_total"), 1.0, "it is still the same job");
    Ok(())
}

#[test]
fn a_job_can_be_created_suspended() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 2, runPolicy: {suspend: true}")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.children.len(), 0);
    assert_eq!(
        (cluster.phase()?, cluster.is_condition_true("Suspended"), cluster.is_condition_true("Created")),
        (Some(Phase::Pending), true, true)
    );
    cluster.job["spec"]["runPolicy"] = json!({});
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2);
    Ok(())
}

#[test]
fn a_resumed_job_waits_until_its_old_pods_are_gone() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.graceful_deletion = true;
    cluster.job["spec"]["runPolicy"] = json!({ "suspend": true });
    cluster.reconcile_until_stable()?;
    cluster.job["spec"]["runPolicy"] = json!({});
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.status()?.start_time, None, "not started again yet");
    cluster.finish_deletions();
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2);
    assert_eq!(cluster.status()?.start_time, Some(cluster.time_after(0)));
    Ok(())
}

/// The API server refused the deletion of a Pod, or the host did not get to it before the job was resumed.
#[test]
fn a_resumed_job_takes_no_old_pod_for_a_new_one() -> Result<(), Error> {
    for spec in ["workers: 2", "workers: 2, elastic: {minWorkers: 1, maxWorkers: 2}"] {
        let mut cluster = SimulatedCluster::running(spec)?;
        let old = cluster.pod_uid("mnist-worker-1")?.to_owned();
        cluster.job["spec"]["runPolicy"] = json!({ "suspend": true });
        cluster.reconcile()?;
        assert!(cluster.is_condition_true("Suspended"), "the status says so, and all Pods are still there");
        cluster.delete_pod("mnist-worker-0");
        cluster.job["spec"]["runPolicy"] = json!({});
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), 2, "{spec}");
        assert_ne!(cluster.pod_uid("mnist-worker-1")?, old, "{spec}");
        assert_eq!(cluster.event_count("TrainingJobRestarting"), 0, "{spec}");
    }
    Ok(())
}

#[test]
fn restarts_before_a_suspension_still_count() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {backoffLimit: 1}")?;
    cluster.fail_pod("mnist-worker-0", 1)?;
    cluster.reconcile_until_stable()?;
    cluster.job["spec"]["runPolicy"]["suspend"] = json!(true);
    cluster.reconcile_until_stable()?;
    cluster.job["spec"]["runPolicy"]["suspend"] = json!(false);
    cluster.reconcile_until_stable()?;
    cluster.fail_pod("mnist-worker-0", 1)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Failed"), "True BackoffLimitExceeded");
    Ok(())
}

#[test]
fn all_workers_of_a_resumed_job_start_anew_wherever_the_host_has_stopped() -> Result<(), Error> {
    for stop in 0..6 {
        let mut cluster = SimulatedCluster::running("workers: 2")?;
        cluster.set_pod_status("mnist-worker-0", "phase: Succeeded")?;
        cluster.reconcile_until_stable()?;
        cluster.job["spec"]["runPolicy"] = json!({ "suspend": true });
        cluster.writes_left = Some(stop);
        for _ in 0..3 {
            cluster.reconcile()?;
        }
        cluster.writes_left = None;
        cluster.job["spec"]["runPolicy"] = json!({});
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names(), ["mnist-worker-0", "mnist-worker-1"], "stopped before write {stop}");
    }
    Ok(())
}

/// Its host was down meanwhile.
#[test]
fn a_job_that_had_succeeded_before_it_was_suspended_has_succeeded() -> Result<(), Error> {
    for (spec, pods) in [
        ("workers: 2", vec!["mnist-worker-0", "mnist-worker-1"]),
        ("framework: tensorflow, workers: 2", vec!["mnist-worker-0"]),
    ] {
        let mut cluster = SimulatedCluster::running(spec)?;
        for pod in pods {
            cluster.set_pod_status(pod, "phase: Succeeded")?;
        }
        cluster.job["spec"]["runPolicy"] = json!({ "suspend": true });
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.phase()?, Some(Phase::Succeeded), "{spec}");
        assert_eq!(cluster.measured("training_jobs_succeeded_total"), 1.0, "{spec}");
        assert_eq!((cluster.event_count("TrainingJobSuspended"), cluster.pod_names().len()), (0, 2), "{spec}");
    }
    Ok(())
}
