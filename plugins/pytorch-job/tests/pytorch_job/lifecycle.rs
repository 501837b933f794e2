//! Jobs through their life: as large as they may be, at their end, and at their limits.

use crate::{job, master_and_workers, with};
use pilothouse_sdk::Error;
use pilothouse_simulated_cluster::{ChildKey, Plugin, SimulatedCluster};
use serde_json::{Value, json};

/// A cluster with this job.
fn cluster_with(job: Value) -> SimulatedCluster {
    SimulatedCluster::of(Plugin { reconcile: pytorch_job::reconcile_raw, finalize: None }, job)
}

/// A cluster with a job of which all Pods run.
fn running(job: Value) -> Result<SimulatedCluster, Error> {
    let mut cluster = cluster_with(job);
    cluster.run_all_pods()?;
    Ok(cluster)
}

#[test]
fn the_largest_job_fits_into_each_answer_whatever_its_pods_say() -> Result<(), Error> {
    let mut object = job(master_and_workers(499));
    object["metadata"]["name"] = json!("a".repeat(52));
    let mut cluster = cluster_with(object);
    cluster.reconcile_until_stable()?;
    for status in [
        json!({ "phase": "Running" }),
        json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "\"no\" ".repeat(100) },
        ] }),
        json!({ "phase": "Failed", "reason": "Evicted", "message": "\"no\" ".repeat(100) }),
    ] {
        cluster.pods_mut().for_each(|pod| pod["status"] = status.clone());
        cluster.reconcile_until_stable()?;
        let (pods, services) = (cluster.pod_names().len(), cluster.child_names("Service").len());
        assert_eq!((pods, services), (500, 500), "{status}");
    }
    Ok(())
}

#[test]
fn the_clean_pod_policy_says_which_pods_and_services_stay() -> Result<(), Error> {
    for (policy, stay) in [
        (None, vec!["mnist-master-0", "mnist-worker-0", "mnist-worker-1"]),
        (Some("None"), vec!["mnist-master-0", "mnist-worker-0", "mnist-worker-1"]),
        (Some("Running"), vec!["mnist-master-0", "mnist-worker-1"]),
        (Some("All"), vec![]),
    ] {
        let run_policy = json!({ "runPolicy": { "cleanPodPolicy": policy } });
        let mut cluster = running(job(with(master_and_workers(2), run_policy)))?;
        for pod in ["mnist-master-0", "mnist-worker-1"] {
            cluster.end_pod(pod, 0)?;
        }
        cluster.reconcile_until_stable()?;
        assert!(cluster.is_condition_true("Succeeded"), "{policy:?}");
        for kind in ["Pod", "Service"] {
            assert_eq!(cluster.child_names(kind), stay, "{policy:?} {kind}");
        }
    }
    Ok(())
}

#[test]
fn a_job_fails_at_its_active_deadline() -> Result<(), Error> {
    let run_policy = json!({ "runPolicy": { "activeDeadlineSeconds": 60 } });
    let mut cluster = running(job(with(master_and_workers(1), run_policy)))?;
    cluster.advance_clock(59);
    cluster.reconcile_until_stable()?;
    assert!(!cluster.is_condition_true("Failed"));
    cluster.advance_clock(1);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition_message("Failed"), "the job ran longer than its activeDeadlineSeconds of 60");
    assert_eq!(cluster.pod_names(), Vec::<&str>::new());
    Ok(())
}

#[test]
fn a_job_fails_when_a_restart_goes_beyond_the_backoff_limit() -> Result<(), Error> {
    for (limit, restarts, fails) in [(None, 9, false), (Some(0), 1, true), (Some(2), 2, false), (Some(2), 3, true)] {
        let run_policy = json!({ "runPolicy": { "backoffLimit": limit } });
        let mut cluster = running(job(with(master_and_workers(1), run_policy)))?;
        cluster.advance_clock(30);
        cluster.restart_container("mnist-worker-0", 1)?;
        cluster.child_mut("Pod", "mnist-worker-0")?["status"]["containerStatuses"][0]["restartCount"] = json!(restarts);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.is_condition_true("Failed"), fails, "{limit:?} {restarts}");
    }
    Ok(())
}

#[test]
fn no_pod_is_made_while_somebody_else_has_the_name_of_a_service() -> Result<(), Error> {
    let mut cluster = cluster_with(job(master_and_workers(2)));
    cluster.taken_names.insert(ChildKey::new("Service", "mnist-worker-1"));
    cluster.reconcile_until_stable()?;
    let services = ["mnist-master-0", "mnist-worker-0"];
    assert_eq!((cluster.pod_names().len(), cluster.child_names("Service")), (0, services.to_vec()));
    cluster.taken_names.clear();
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 3);
    Ok(())
}
