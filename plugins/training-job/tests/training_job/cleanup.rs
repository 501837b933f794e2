//! Which children of a job that has ended stay, and when the others go.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use training_job::api::{Phase, TrainingJobStatus};

/// A policy, and which of three workers keep their Pods: the first has succeeded, the second runs, the third is pending.
#[rustfmt::skip]
const POLICIES: &[(&str, &[usize])] = &[
    ("", &[0, 1, 2]),
    ("cleanPodPolicy: None", &[0, 1, 2]),
    ("cleanPodPolicy: Running", &[0]),
    ("cleanPodPolicy: All", &[]),
];

#[test]
fn the_clean_pod_policy_says_which_pods_stay() -> Result<(), Error> {
    for (policy, staying) in POLICIES {
        let mut cluster =
            SimulatedCluster::new(&format!("workers: 3, successPolicy: ChiefWorker, runPolicy: {{{policy}}}"))?;
        cluster.reconcile_until_stable()?;
        cluster.set_pod_status("mnist-worker-0", "phase: Running")?;
        cluster.set_pod_status("mnist-worker-1", "phase: Running")?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), 3, "{policy}: no Pod goes before the end");
        cluster.set_pod_status("mnist-worker-0", "phase: Succeeded")?;
        cluster.reconcile_until_stable()?;
        let expected: Vec<_> = staying.iter().map(|index| format!("mnist-worker-{index}")).collect();
        assert_eq!(cluster.pod_names(), expected, "{policy}");
        assert_eq!(cluster.phase()?, Some(Phase::Succeeded), "{policy}");
        assert_eq!(cluster.removes_many, staying.len() < 3, "{policy}: the host must know that the removal is meant");
    }
    Ok(())
}

/// A policy, the setting by which the job fails, and which of two Pods stay: the first has failed, the second runs.
#[rustfmt::skip]
const FAILURES: &[(&str, &str, &[&str])] = &[
    ("None", "restartPolicy: Never", &["mnist-worker-0", "mnist-worker-1"]),
    ("None", "backoffLimit: 0", &["mnist-worker-0"]),
    ("Running", "restartPolicy: Never", &["mnist-worker-0"]),
    ("Running", "backoffLimit: 0", &["mnist-worker-0"]),
    ("All", "restartPolicy: Never", &[]),
    ("All", "backoffLimit: 0", &[]),
];

#[test]
fn a_limit_that_stops_the_job_stops_its_pods() -> Result<(), Error> {
    for (policy, setting, staying) in FAILURES {
        let mut cluster =
            SimulatedCluster::running(&format!("workers: 2, runPolicy: {{cleanPodPolicy: {policy}, {setting}}}"))?;
        cluster.fail_pod("mnist-worker-0", 1)?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.phase()?, Some(Phase::Failed), "{policy} {setting}");
        assert_eq!(cluster.pod_names(), *staying, "{policy} {setting}");
    }
    Ok(())
}

/// What the status says of a replica, and of how many have a Pod, run, have succeeded and have failed.
type Told<'t> = (Vec<&'t str>, [u32; 4]);

#[test]
fn the_status_of_an_ended_job_says_of_no_pod_that_it_runs_when_it_does_not() -> Result<(), Error> {
    let told = |status: &TrainingJobStatus| -> (Vec<String>, [u32; 4]) {
        let words = status.worker_statuses.iter().map(|worker| worker.status.clone()).collect();
        (words, [status.replicas, status.active, status.succeeded, status.failed])
    };
    let is = |status: &TrainingJobStatus, (words, numbers): Told<'_>| {
        assert_eq!(told(status), (words.into_iter().map(str::to_owned).collect(), numbers));
    };
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {activeDeadlineSeconds: 100}")?;
    cluster.graceful_deletion = true;
    cluster.advance_clock(100);
    cluster.reconcile_until_stable()?;
    cluster.delete_pod("mnist-worker-0");
    cluster.reconcile_until_stable()?;
    is(&cluster.status()?, (vec!["Missing", "Terminating"], [0, 0, 0, 0]));
    cluster.finish_deletions();
    cluster.reconcile_until_stable()?;
    is(&cluster.status()?, (vec!["Missing", "Missing"], [0, 0, 0, 0]));

    // Pods that are kept run on, and end later.
    let mut cluster = SimulatedCluster::running("workers: 3, successPolicy: ChiefWorker")?;
    cluster.end_pod("mnist-worker-0", 0)?;
    cluster.reconcile_until_stable()?;
    is(&cluster.status()?, (vec!["Succeeded", "Running", "Running"], [3, 2, 1, 0]));
    cluster.fail_pod("mnist-worker-1", 1)?;
    cluster.delete_pod("mnist-worker-0");
    cluster.reconcile_until_stable()?;
    is(&cluster.status()?, (vec!["Succeeded", "Failed", "Running"], [2, 1, 1, 1]));
    Ok(())
}

#[test]
fn other_children_go_with_the_pods() -> Result<(), Error> {
    for (policy, services, maps) in [("None", 1, 1), ("Running", 0, 1), ("All", 0, 0)] {
        let spec = format!("workers: 1, hyperparameters: {{a: 1}}, runPolicy: {{cleanPodPolicy: {policy}}}");
        let mut cluster = SimulatedCluster::running(&spec)?;
        cluster.set_phase_of_all_pods("Succeeded");
        cluster.reconcile_until_stable()?;
        assert_eq!(
            (cluster.child_names("Service").len(), cluster.child_names("ConfigMap").len()),
            (services, maps),
            "{policy}"
        );
    }
    Ok(())
}

#[test]
fn the_status_of_a_finished_job_says_when_it_is_deleted() -> Result<(), Error> {
    for end in ["Succeeded", "Failed"] {
        let mut cluster =
            SimulatedCluster::running("workers: 2, runPolicy: {restartPolicy: Never, ttlSecondsAfterFinished: 100}")?;
        cluster.advance_clock(50);
        assert_eq!(cluster.status()?.expiration_time, None, "{end}: not before its end");
        cluster.set_phase_of_all_pods(end);
        cluster.reconcile_until_stable()?;
        let ended = cluster.status()?;
        assert_eq!(ended.expiration_time, Some(cluster.time_after(100)), "{end}");
        assert_eq!(
            (cluster.requeue_after, cluster.pod_names().len()),
            (None, 2),
            "{end}: the host deletes the job by itself"
        );
        cluster.advance_clock(1000);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.status()?, ended, "{end}: later calls return the same time");
        for (policy, later) in [("ttlSecondsAfterFinished", Some(2000)), ("backoffLimit", None)] {
            cluster.job["spec"]["runPolicy"] = serde_json::json!({ policy: 2000 });
            cluster.reconcile_until_stable()?;
            let expected = later.map(|seconds: i64| cluster.time_after(seconds - 1000));
            assert_eq!(cluster.status()?.expiration_time, expected, "{end}: {policy}");
        }
    }
    Ok(())
}

#[test]
fn a_finished_job_asks_for_no_further_call() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.set_phase_of_all_pods("Succeeded");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.requeue_after, None);
    Ok(())
}

#[test]
fn a_change_of_the_spec_keeps_the_pods_of_a_finished_job() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.set_phase_of_all_pods("Succeeded");
    cluster.reconcile_until_stable()?;
    let children = cluster.children.clone();
    cluster.job["spec"]["image"] = serde_json::json!("another");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.children, children);
    cluster.job["spec"]["runPolicy"] = serde_json::json!({ "cleanPodPolicy": "All" });
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.children.len(), 0, "the policy still removes them");
    Ok(())
}
