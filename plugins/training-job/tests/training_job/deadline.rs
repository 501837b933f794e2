//! The active deadline: how long a job may run.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use training_job::api::Phase;

#[test]
fn a_job_fails_at_its_deadline_and_not_a_second_earlier() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 2, runPolicy: {activeDeadlineSeconds: 100}")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.requeue_after, Some(100), "it counts from the start, also while Pods are pending");
    cluster.advance_clock(20);
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.requeue_after, Some(30), "a running job is reconciled earlier");
    cluster.advance_clock(79);
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.phase()?, cluster.requeue_after), (Some(Phase::Running), Some(1)));
    cluster.advance_clock(1);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Failed"), "True DeadlineExceeded");
    assert_eq!(cluster.condition("Stalled"), "True DeadlineExceeded", "nothing more will happen");
    assert_eq!(cluster.condition("Running"), "False DeadlineExceeded");
    assert_eq!(cluster.status()?.completion_time, Some(cluster.time_after(0)));
    assert_eq!(cluster.pod_names(), Vec::<&str>::new(), "its Pods are stopped");
    assert_eq!(cluster.measured("training_job_duration_seconds"), 100.0);
    Ok(())
}

#[test]
fn a_job_that_succeeds_at_its_deadline_has_succeeded() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {activeDeadlineSeconds: 100}")?;
    cluster.advance_clock(100);
    cluster.set_phase_of_all_pods("Succeeded");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.phase()?, Some(Phase::Succeeded));
    Ok(())
}

#[test]
fn restarts_do_not_move_the_deadline() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {activeDeadlineSeconds: 100}")?;
    let start = cluster.status()?.start_time;
    cluster.advance_clock(60);
    cluster.fail_pod("mnist-worker-0", 1)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.status()?.start_time, start);
    assert_eq!(cluster.requeue_after, Some(40));
    cluster.advance_clock(40);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Failed"), "True DeadlineExceeded");
    Ok(())
}

#[test]
fn a_deadline_that_is_set_later_counts_from_the_start() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.advance_clock(500);
    cluster.job["spec"]["runPolicy"] = serde_json::json!({ "activeDeadlineSeconds": 100 });
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Failed"), "True DeadlineExceeded");
    Ok(())
}
