//! Jobs through their life: as large as they may be, at their end, and at their limits.

use crate::{job, master_and_workers, with};
use pilothouse_sdk::Error;
use pilothouse_simulated_cluster::{ChildKey, Plugin, SimulatedCluster};
use serde_json::{Value, json};
use std::collections::BTreeMap;

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

/// What is known of the job could not be kept: a restart would be forgotten, and with it that it counts.
#[test]
fn no_pod_is_made_while_somebody_else_has_the_name_of_the_state() -> Result<(), Error> {
    const STATE: &str = "mnist-pytorchjob-state";
    let mut cluster = cluster_with(job(master_and_workers(2)));
    cluster.taken_names.insert(ChildKey::new("ConfigMap", STATE));
    cluster.reconcile_until_stable()?;
    cluster.advance_clock(60);
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.pod_names().len(), cluster.child_names("Service").len()), (0, 3));
    assert_eq!(cluster.measurements, BTreeMap::new(), "nobody would know that it is counted already");
    cluster.taken_names.clear();
    cluster.run_all_pods()?;
    assert_eq!(cluster.pod_names().len(), 3);
    // Those that are there stay where the name is taken later, and new ones wait for it.
    cluster.children.remove(&ChildKey::new("ConfigMap", STATE));
    cluster.taken_names.insert(ChildKey::new("ConfigMap", STATE));
    let before = cluster.pod_uid("mnist-worker-1")?.to_owned();
    let measured = cluster.measurements.clone();
    for _ in 0..3 {
        cluster.advance_clock(15);
        cluster.reconcile_until_stable()?;
    }
    assert_eq!(cluster.pod_uid("mnist-worker-1")?, before);
    cluster.delete_pod("mnist-worker-1");
    cluster.reconcile_until_stable()?;
    assert!(cluster.pod_uid("mnist-worker-1").is_err(), "a Pod was made although the name is taken");
    assert_eq!(cluster.measurements, measured);
    cluster.taken_names.clear();
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 3);
    Ok(())
}

/// Without it, the Service of its name leads nowhere, or to the Pod of another job.
#[test]
fn a_pod_that_lost_a_label_by_which_it_is_found_gets_it_back_and_goes_on() -> Result<(), Error> {
    for label in ["job-name", "replica-type", "replica-index", "operator-name"] {
        let mut cluster = running(job(master_and_workers(1)))?;
        let pod = cluster.child_mut("Pod", "mnist-worker-0")?;
        pod["spec"]["enableServiceLinks"] = json!(true);
        let before = pod.clone();
        pod["metadata"]["labels"].as_object_mut().and_then(|it| it.remove(&format!("training.kubeflow.org/{label}")));
        cluster.reconcile_until_stable()?;
        assert_eq!(*cluster.child("Pod", "mnist-worker-0")?, before, "{label}");
    }
    Ok(())
}
