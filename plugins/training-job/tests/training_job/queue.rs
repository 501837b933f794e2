//! Jobs in a queue of Kueue: what they ask for, when they start, and what becomes of them when they lose their quota.

use crate::simulated_cluster::{ChildKey, SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::{Error, Verdict};
use serde_json::{Value, json};
use training_job::api::Phase;

const WORKLOAD: &str = "trainingjob-mnist";

/// A cluster with a job in the queue `research`.
fn queued(spec: &str) -> Result<SimulatedCluster, Error> {
    let mut cluster = SimulatedCluster::new(spec)?;
    cluster.kueue_is_installed = true;
    cluster.job["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "research" });
    cluster.reconcile_until_stable()?;
    Ok(cluster)
}

/// Lets Kueue say something of the Workload.
fn set_condition(cluster: &mut SimulatedCluster, condition: &str, message: &str) -> Result<(), Error> {
    let assignments = json!([{ "name": "worker", "flavors": { "cpu": "spot" }, "count": 2 }]);
    let status = &mut cluster.child_mut("Workload", WORKLOAD)?["status"];
    status["admission"] = json!({ "clusterQueue": "all", "podSetAssignments": assignments });
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(json!({ "type": condition, "status": "True", "reason": condition, "message": message }));
    status["conditions"] = json!(conditions);
    Ok(())
}

/// A job in a queue with quota, whose two workers run.
fn running(spec: &str) -> Result<SimulatedCluster, Error> {
    let mut cluster = queued(spec)?;
    set_condition(&mut cluster, "Admitted", "there is room")?;
    cluster.reconcile_until_stable()?;
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    Ok(cluster)
}

#[test]
fn a_job_asks_for_what_its_roles_need_and_waits() -> Result<(), Error> {
    let cluster = queued(
        "framework: tensorflow, workers: 2, parameterServers: 1, gpuPerWorker: 4, resources: {requests: {cpu: 2}}, \
         roles: [{name: ps, resources: {limits: {memory: 8Gi}}}]",
    )?;
    assert_eq!(cluster.condition("Ready"), "False WaitingForQuota");
    assert_eq!((cluster.pod_names().len(), cluster.child_names("Workload")), (0, vec![WORKLOAD]));
    let workload = cluster.child("Workload", WORKLOAD)?;
    assert_eq!((&workload["spec"]["queueName"], &workload["spec"]["priority"]), (&json!("research"), &json!(0)));
    let sets = workload["spec"]["podSets"].as_array().cloned().unwrap_or_default();
    let of_set = |set: &Value| {
        let requests = &set["template"]["spec"]["containers"][0]["resources"]["requests"];
        (set["name"].clone(), set["count"].clone(), requests.clone())
    };
    let expected = [
        (json!("worker"), json!(2), json!({ "cpu": 2, "nvidia.com/gpu": "4" })),
        (json!("ps"), json!(1), json!({ "memory": "8Gi" })),
    ];
    assert_eq!(sets.iter().map(of_set).collect::<Vec<_>>(), expected);
    Ok(())
}

#[test]
fn a_job_with_quota_runs_on_the_nodes_of_its_flavors() -> Result<(), Error> {
    let mut cluster = queued("workers: 2, nodeSelector: {disk: ssd}")?;
    let toleration = json!({ "key": "spot", "operator": "Exists" });
    cluster.other_objects.push(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": { "name": "spot" },
        "spec": { "nodeLabels": { "pool": "spot" }, "tolerations": [toleration] },
    }));
    set_condition(&mut cluster, "Admitted", "there is room")?;
    cluster.reconcile_until_stable()?;
    let spec = &cluster.child("Pod", "mnist-worker-1")?["spec"];
    assert_eq!(spec["nodeSelector"], json!({ "disk": "ssd", "pool": "spot" }));
    assert_eq!(spec["tolerations"], json!([toleration]));
    Ok(())
}

#[test]
fn a_job_that_loses_its_quota_gives_it_back_when_its_pods_are_gone_and_asks_anew() -> Result<(), Error> {
    for spec in ["workers: 2", "workers: 2, elastic: {minWorkers: 1, maxWorkers: 4}"] {
        let mut cluster = running(spec)?;
        cluster.graceful_deletion = true;
        let before = cluster.child("Workload", WORKLOAD)?["metadata"]["uid"].clone();
        set_condition(&mut cluster, "Evicted", "Preempted by another")?;
        cluster.reconcile_until_stable()?;
        assert_eq!(
            cluster.child("Workload", WORKLOAD)?["metadata"]["uid"],
            before,
            "{spec}: its Pods still need the quota"
        );
        assert_eq!(cluster.condition("Restarting"), "True QuotaLost", "{spec}");
        cluster.finish_deletions();
        cluster.reconcile_until_stable()?;
        let workload = cluster.child("Workload", WORKLOAD)?;
        assert_eq!(
            (workload["metadata"]["uid"] == before, workload.get("status")),
            (false, None),
            "{spec}: it asks anew"
        );
        assert_eq!((cluster.pod_names().len(), cluster.condition("Ready").as_str()), (0, "False WaitingForQuota"));
        assert_eq!(cluster.phase()?, Some(Phase::Pending), "{spec}");
        set_condition(&mut cluster, "Admitted", "there is room")?;
        cluster.reconcile_until_stable()?;
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
        let status = cluster.status()?;
        assert_eq!((status.phase, status.active, status.restart_count), (Some(Phase::Running), 2, 0), "{spec}");
    }
    Ok(())
}

#[test]
fn the_deadline_does_not_run_while_a_job_waits_for_quota_again() -> Result<(), Error> {
    let limit = "runPolicy: {activeDeadlineSeconds: 100, backoffLimit: 9}";
    for in_a_pause in [false, true] {
        let mut cluster = running(&format!("workers: 2, {limit}"))?;
        cluster.advance_clock(60);
        // The second failure of a row makes it wait without any Pod.
        for _ in 0..if in_a_pause { 2 } else { 0 } {
            cluster.fail_pod("mnist-worker-0", 1)?;
            cluster.reconcile_until_stable()?;
        }
        assert_eq!(cluster.pod_names().len(), if in_a_pause { 0 } else { 2 });
        set_condition(&mut cluster, "Evicted", "Preempted by another")?;
        cluster.reconcile_until_stable()?;
        cluster.advance_clock(10_000);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.condition("Ready"), "False WaitingForQuota", "in a pause: {in_a_pause}");
        assert_eq!((cluster.status()?.start_time, cluster.status()?.elapsed_seconds), (None, 60));
        set_condition(&mut cluster, "Admitted", "there is room")?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.status()?.start_time, Some(cluster.time_after(0)), "the deadline counts anew");
        cluster.advance_clock(99);
        cluster.reconcile_until_stable()?;
        assert!(!cluster.is_condition_true("Failed"), "in a pause: {in_a_pause}");
        cluster.advance_clock(1);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.condition("Failed"), "True DeadlineExceeded", "in a pause: {in_a_pause}");
        assert_eq!(cluster.measured("training_job_duration_seconds"), 160.0, "without the time in the queue");
    }
    Ok(())
}

#[test]
fn a_failure_keeps_the_quota() -> Result<(), Error> {
    let mut cluster = running("workers: 2")?;
    let before = cluster.child("Workload", WORKLOAD)?["metadata"]["uid"].clone();
    cluster.fail_pod("mnist-worker-0", 1)?;
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.pod_names().len(), cluster.status()?.restart_count), (2, 1));
    assert_eq!(cluster.child("Workload", WORKLOAD)?["metadata"]["uid"], before);
    Ok(())
}

/// What is done to the Workload or the labels of a job that runs.
type Change = fn(&mut SimulatedCluster) -> Result<(), Error>;

const WITHOUT_QUOTA: &[(&str, Change)] = &[
    ("its queue is taken off", |cluster| {
        cluster.job["metadata"]["labels"] = json!({});
        Ok(())
    }),
    ("somebody deletes its Workload", |cluster| {
        cluster.children.retain(|key, _| key.kind != "Workload");
        Ok(())
    }),
    ("its Workload is put aside", |cluster| {
        cluster.child_mut("Workload", WORKLOAD)?["spec"]["active"] = json!(false);
        Ok(())
    }),
];

#[test]
fn no_pod_of_a_job_in_a_queue_runs_without_quota() -> Result<(), Error> {
    for spec in ["workers: 2", "workers: 2, elastic: {minWorkers: 1, maxWorkers: 4}"] {
        for (name, change) in WITHOUT_QUOTA {
            let mut cluster = running(spec)?;
            cluster.graceful_deletion = true;
            let before = cluster.pod_uid("mnist-worker-0")?.to_owned();
            change(&mut cluster)?;
            let workloads = cluster.child_names("Workload").len();
            cluster.reconcile_until_stable()?;
            assert_eq!(cluster.condition("Restarting"), "True QuotaLost", "{name}");
            assert_eq!(cluster.child_names("Workload").len(), workloads, "{name}: its Pods still need the quota");
            cluster.delete_pod("mnist-worker-1");
            cluster.reconcile_until_stable()?;
            assert_eq!(cluster.pod_names(), ["mnist-worker-0"], "{name}: none starts before the last is gone");
            cluster.finish_deletions();
            for _ in 0..3 {
                cluster.reconcile_until_stable()?;
            }
            if *name == "its queue is taken off" {
                assert_eq!((cluster.pod_names().len(), cluster.child_names("Workload").len()), (2, 0), "{name}");
                assert_ne!(cluster.pod_uid("mnist-worker-0")?, before, "{name}");
            } else {
                assert_eq!(cluster.pod_names(), Vec::<&str>::new(), "{name}");
                assert_eq!(cluster.condition("Ready"), "False WaitingForQuota", "{name}");
                assert_eq!(cluster.child_names("Workload"), [WORKLOAD], "{name}");
            }
            assert_eq!(cluster.status()?.restart_count, 0, "{name}");
        }
    }
    Ok(())
}

/// As Kueue does with a Job.
#[test]
fn a_job_that_is_put_into_a_queue_while_it_runs_waits_there() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.kueue_is_installed = true;
    cluster.job["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "research" });
    for _ in 0..3 {
        cluster.reconcile_until_stable()?;
    }
    assert_eq!((cluster.pod_names().len(), cluster.child_names("Workload")), (0, vec![WORKLOAD]));
    assert_eq!(cluster.condition("Ready"), "False WaitingForQuota");
    let status = cluster.status()?;
    let told = (status.active, status.phase, status.worker_statuses[0].status.as_str());
    assert_eq!(told, (0, Some(Phase::Pending), "Missing"), "no Pod of it runs");
    Ok(())
}

#[test]
fn a_priority_class_that_goes_does_not_take_the_quota_with_it() -> Result<(), Error> {
    let mut cluster = queued("workers: 2")?;
    cluster.children.clear();
    cluster.job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!("urgent");
    cluster.other_objects.push(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadPriorityClass", "metadata": { "name": "urgent" },
        "value": 1000,
    }));
    cluster.reconcile_until_stable()?;
    set_condition(&mut cluster, "Admitted", "there is room")?;
    cluster.run_all_pods()?;
    cluster.other_objects.clear();
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.pod_names().len(), cluster.child_names("Workload")), (2, vec![WORKLOAD]));
    set_condition(&mut cluster, "Evicted", "Preempted by another")?;
    for _ in 0..3 {
        cluster.reconcile_until_stable()?;
    }
    assert_eq!((cluster.pod_names().len(), cluster.condition("Ready").as_str()), (0, "False PriorityClassNotFound"));
    Ok(())
}

#[test]
fn a_job_that_becomes_another_one_asks_for_another_quota() -> Result<(), Error> {
    let changes: [fn(&mut Value); 2] = [
        |job| job["spec"]["workers"] = json!(3),
        |job| job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!("other"),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut cluster = running("workers: 2")?;
        change(&mut cluster.job);
        for _ in 0..3 {
            cluster.reconcile_until_stable()?;
        }
        assert_eq!((cluster.pod_names().len(), cluster.condition("Ready").as_str()), (0, "False WaitingForQuota"));
        let spec = &cluster.child("Workload", WORKLOAD)?["spec"];
        let asked = (&spec["podSets"][0]["count"], &spec["queueName"]);
        let expected = [(json!(3), json!("research")), (json!(2), json!("other"))];
        assert_eq!(asked, (&expected[number].0, &expected[number].1));
    }
    Ok(())
}

#[test]
fn a_job_that_ends_or_is_suspended_holds_no_quota() -> Result<(), Error> {
    let mut cluster = running("workers: 2")?;
    cluster.job["spec"]["runPolicy"] = json!({ "suspend": true });
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.child_names("Workload"), Vec::<&str>::new(), "suspended");
    let mut cluster = running("workers: 2")?;
    cluster.set_phase_of_all_pods("Succeeded");
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.phase()?, cluster.child_names("Workload")), (Some(Phase::Succeeded), Vec::new()), "ended");
    Ok(())
}

#[test]
fn a_priority_is_that_of_a_class_which_exists() -> Result<(), Error> {
    let mut cluster = queued("workers: 2")?;
    cluster.children.clear();
    cluster.job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = json!("urgent");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Ready"), "False PriorityClassNotFound");
    cluster.other_objects.push(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadPriorityClass", "metadata": { "name": "urgent" },
        "value": 1000,
    }));
    cluster.reconcile_until_stable()?;
    let spec = &cluster.child("Workload", WORKLOAD)?["spec"];
    assert_eq!((&spec["priority"], &spec["priorityClassName"]), (&json!(1000), &json!("urgent")));
    Ok(())
}

#[test]
fn a_queue_without_kueue_is_told() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 2")?;
    cluster.job["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "research" });
    cluster.reconcile_until_stable()?;
    let waits = matches!(&cluster.verdict, Verdict::Wait(wait) if wait.reason == "QueueNotInstalled");
    assert!(waits && cluster.children.is_empty(), "{:?}", cluster.verdict);
    Ok(())
}

/// In which way a job ends that runs, and what makes it end so.
type End = (&'static str, fn(&mut SimulatedCluster));

const ENDS: [End; 4] = [
    ("suspended", |cluster| cluster.job["spec"]["runPolicy"] = json!({ "suspend": true })),
    ("stopped by a limit", |cluster| cluster.advance_clock(60)),
    ("deleted", |cluster| cluster.job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")),
    ("deleted with a spec that nobody can read", |cluster| {
        cluster.job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        cluster.job["spec"] = json!("none");
    }),
];

#[test]
fn a_job_that_is_suspended_stopped_or_deleted_keeps_its_quota_until_its_pods_are_gone() -> Result<(), Error> {
    for (name, end) in ENDS {
        let mut cluster = running("workers: 2, runPolicy: {activeDeadlineSeconds: 60}")?;
        cluster.graceful_deletion = true;
        end(&mut cluster);
        cluster.reconcile_until_stable()?;
        assert_eq!((cluster.pod_names().len(), cluster.child_names("Workload")), (2, vec![WORKLOAD]), "{name}");
        cluster.delete_pod("mnist-worker-0");
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.child_names("Workload"), [WORKLOAD], "{name}: the other one still uses it");
        cluster.finish_deletions();
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.child_names("Workload"), Vec::<&str>::new(), "{name}");
    }
    Ok(())
}

/// By the policy of the user, the Pods of its peers stay and run on.
#[test]
fn a_job_that_failed_holds_its_quota_while_its_peers_run_on() -> Result<(), Error> {
    let mut cluster = running("workers: 2, runPolicy: {restartPolicy: Never}")?;
    cluster.fail_pod("mnist-worker-0", 1)?;
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.phase()?, cluster.pod_names().len()), (Some(Phase::Failed), 2));
    assert_eq!(cluster.child_names("Workload"), [WORKLOAD], "its other Pod uses it");
    let mut evicted = running("workers: 2, runPolicy: {restartPolicy: Never}")?;
    evicted.fail_pod("mnist-worker-0", 1)?;
    evicted.reconcile_until_stable()?;
    cluster.end_pod("mnist-worker-1", 0)?;
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.child_names("Workload"), cluster.pod_names().len()), (Vec::new(), 2));

    set_condition(&mut evicted, "Evicted", "Preempted by another")?;
    evicted.reconcile_until_stable()?;
    assert_eq!((evicted.child_names("Workload"), evicted.pod_names()), (Vec::new(), vec!["mnist-worker-0"]));
    Ok(())
}

/// Though it looks like one of the job, and Kueue has admitted it.
#[test]
fn a_workload_of_somebody_else_gives_a_job_no_quota() -> Result<(), Error> {
    let theirs = running("workers: 2")?.child("Workload", WORKLOAD)?.clone();
    let mut cluster = SimulatedCluster::new("workers: 2")?;
    cluster.kueue_is_installed = true;
    cluster.job["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "research" });
    cluster.other_objects.push(theirs);
    cluster.taken_names.insert(ChildKey::new("Workload", WORKLOAD));
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.pod_names().len(), &*cluster.condition("Ready")), (0, "False WaitingForQuota"));
    assert_eq!(cluster.condition_message("Ready"), "waiting in the queue 'research' for quota");
    // The name is free.
    cluster.other_objects.clear();
    cluster.taken_names.clear();
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.child_names("Workload"), [WORKLOAD]);
    set_condition(&mut cluster, "Admitted", "there is room")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2);
    Ok(())
}
