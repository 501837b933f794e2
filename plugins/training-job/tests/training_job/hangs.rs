//! Jobs that do not get on: they say why, and have limits for it.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::json;
use training_job::api::Phase;

#[test]
fn a_job_is_ready_only_when_all_of_it_runs() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 10")?;
    cluster.reconcile_until_stable()?;
    cluster.set_pod_status("mnist-worker-0", "phase: Running")?;
    for index in 1..10 {
        let status = "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, \
                      message: 0/3 nodes}]";
        cluster.set_pod_status(&format!("mnist-worker-{index}"), status)?;
    }
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Running"), "True TrainingJobRunning", "as Kubeflow's operator means it");
    assert_eq!(cluster.condition("Ready"), "False WorkersPending");
    let message = cluster.condition_message("Ready");
    assert_eq!(message, "1 of 10 workers run; mnist-worker-1: Unschedulable: 0/3 nodes");
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Ready"), "True TrainingJobRunning");
    Ok(())
}

#[test]
fn a_worker_that_crashes_again_and_again_does_not_run() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {restartScope: Worker}")?;
    let status = "phase: Running, containerStatuses: [{name: pytorch, restartCount: 1, \
                  state: {waiting: {reason: CrashLoopBackOff}}}]";
    cluster.set_pod_status("mnist-worker-1", status)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Ready"), "False WorkersPending");
    Ok(())
}

#[test]
fn a_pod_that_stays_terminating_is_told_with_its_node_and_since_when() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.graceful_deletion = true;
    cluster.child_mut("Pod", "mnist-worker-1")?["spec"]["nodeName"] = json!("node-7");
    cluster.begin_deletion("mnist-worker-1")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.requeue_after, Some(90), "a minute after the grace period");
    assert_eq!(cluster.event_count("FailedDeletePod"), 0);
    cluster.advance_clock(90);
    // The other one goes as it should.
    cluster.delete_pod("mnist-worker-0");
    cluster.reconcile_until_stable()?;
    let message = cluster.condition_message("Ready");
    let parts =
        ["mnist-worker-1", "node 'node-7'", "2026-01-01T00:00:30Z, more than 1m ago", "--grace-period=0 --force"];
    for part in parts {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    assert_eq!(cluster.event_count("FailedDeletePod"), 1);
    // The age is told in steps: with each second in it, the status would be written each second.
    for (seconds, age, next_look) in [
        (59, "more than 1m ago", 1),
        (1, "more than 2m ago", 180),
        (3600, "more than 1h ago", 3480),
        (86_400, "more than 1d ago", 82_680),
        (86_400, "more than 2d ago", 82_680),
    ] {
        cluster.advance_clock(seconds);
        cluster.reconcile_until_stable()?;
        let told = (cluster.condition_message("Ready"), cluster.requeue_after);
        assert!(told.0.contains(age) && told.1 == Some(next_look), "{age}: {told:?}");
    }
    assert_eq!(cluster.event_count("FailedDeletePod"), 1, "once");
    cluster.finish_deletions();
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2);
    Ok(())
}

#[test]
fn a_job_fails_when_a_pod_does_not_go_for_longer_than_it_says() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {terminationTimeoutSeconds: 600}")?;
    cluster.graceful_deletion = true;
    cluster.begin_deletion("mnist-worker-1")?;
    cluster.reconcile_until_stable()?;
    cluster.advance_clock(629);
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.is_condition_true("Failed"), cluster.requeue_after), (false, Some(1)));
    cluster.advance_clock(1);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Failed"), "True TerminationTimeoutExceeded");
    let message = cluster.condition_message("Failed");
    assert!(message.contains("should have been gone at 2026-01-01T00:00:30Z, 10m ago;"), "{message}");
    Ok(())
}

#[test]
fn a_pod_that_does_not_go_is_forced_away_if_asked_and_the_job_goes_on() -> Result<(), Error> {
    let policy = "runPolicy: {terminationTimeoutSeconds: 600, onTerminationTimeout: ForceDelete}";
    for scope in ["Job", "Worker"] {
        let mut cluster = SimulatedCluster::running(&format!("workers: 2, {policy}"))?;
        cluster.job["spec"]["runPolicy"]["restartScope"] = json!(scope);
        cluster.graceful_deletion = true;
        cluster.child_mut("Pod", "mnist-worker-1")?["spec"]["nodeName"] = json!("node-7");
        cluster.begin_deletion("mnist-worker-1")?;
        cluster.reconcile_until_stable()?;
        cluster.delete_pod("mnist-worker-0");
        cluster.advance_clock(629);
        cluster.reconcile_until_stable()?;
        let stays = cluster.child("Pod", "mnist-worker-1")?.clone();
        assert!(cluster.condition_message("Ready").contains("FailedDeletePod"), "{scope}");
        cluster.advance_clock(1);
        cluster.reconcile_until_stable()?;
        assert_ne!(cluster.child("Pod", "mnist-worker-1")?["metadata"]["uid"], stays["metadata"]["uid"], "{scope}");
        let told = cluster.events.iter().find(|event| event.reason == "ForceDeletePod").map(ToString::to_string);
        let told = told.unwrap_or_default();
        let words = "Pod mnist-worker-1 on node 'node-7' should have been gone at 2026-01-01T00:00:30Z; it is deleted without its node";
        assert!(told.contains(words), "{scope}: {told}");
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.condition("Ready"), "True TrainingJobRunning", "{scope}");
        assert_eq!(cluster.status()?.restart_count, 0, "{scope}: it is no failure of the program");
    }
    Ok(())
}

#[test]
fn a_pod_is_forced_away_only_after_the_status_says_so() -> Result<(), Error> {
    let policy = "runPolicy: {terminationTimeoutSeconds: 600, onTerminationTimeout: ForceDelete}";
    let mut cluster = SimulatedCluster::running(&format!("workers: 2, {policy}"))?;
    cluster.graceful_deletion = true;
    cluster.begin_deletion("mnist-worker-1")?;
    cluster.reconcile_until_stable()?;
    cluster.advance_clock(700);
    assert!(cluster.call_plugin()?.forced_deletions.is_empty());
    cluster.reconcile()?;
    assert_eq!(cluster.requeue_after, Some(0));
    let forced = cluster.call_plugin()?.forced_deletions;
    let names: Vec<_> = forced.iter().map(|pod| &pod["metadata"]["name"]).collect();
    assert_eq!(names, ["mnist-worker-0", "mnist-worker-1"], "its peer was removed with it, and stays as well");
    Ok(())
}

/// The node has ended it, so neither the node nor a deletion without it makes it go.
#[test]
fn a_pod_that_finalizers_keep_is_told_with_them_and_not_forced_away() -> Result<(), Error> {
    for policy in ["", "runPolicy: {terminationTimeoutSeconds: 60, onTerminationTimeout: ForceDelete}"] {
        let mut cluster = SimulatedCluster::running(&format!("workers: 2, {policy}"))?;
        cluster.graceful_deletion = true;
        cluster.child_mut("Pod", "mnist-worker-1")?["metadata"]["finalizers"] = json!(["example.com/audit"]);
        cluster.begin_deletion("mnist-worker-1")?;
        cluster.child_mut("Pod", "mnist-worker-1")?["status"]["phase"] = json!("Failed");
        cluster.reconcile_until_stable()?;
        cluster.delete_pod("mnist-worker-0");
        cluster.advance_clock(120);
        cluster.reconcile_until_stable()?;
        let message = cluster.condition_message("Ready");
        assert!(message.contains("until whoever set them takes them off: example.com/audit"), "{policy}: {message}");
        assert!(!message.contains("node"), "{policy}: {message}");
        assert_eq!((cluster.event_count("ForceDeletePod"), cluster.pod_names().len()), (0, 1), "{policy}");
        // The job goes on once they are off.
        cluster.delete_pod("mnist-worker-1");
        cluster.run_all_pods()?;
        assert_eq!(cluster.condition("Ready"), "True TrainingJobRunning", "{policy}");
    }
    Ok(())
}

const FORCE: &str = "terminationTimeoutSeconds: 600, onTerminationTimeout: ForceDelete";

/// How a Pod comes to be one that the job has no place for any more. It stays on a lost node.
type Leave = fn(&mut SimulatedCluster) -> Result<(), Error>;

const OUTSIDE_THE_SPEC: &[(&str, Leave)] = &[
    ("a worker is scaled away", |cluster| {
        cluster.job["spec"]["workers"] = json!(1);
        cluster.reconcile_until_stable()
    }),
    ("the job is suspended", |cluster| {
        cluster.job["spec"]["runPolicy"]["suspend"] = json!(true);
        cluster.reconcile_until_stable()?;
        cluster.delete_pod("mnist-worker-0");
        cluster.reconcile_until_stable()
    }),
    ("the job has ended", |cluster| {
        cluster.job["spec"]["runPolicy"]["cleanPodPolicy"] = json!("All");
        cluster.end_pod("mnist-worker-0", 0)?;
        cluster.reconcile_until_stable()
    }),
];

fn with_pod_outside_the_spec(policy: &str, leave: Leave) -> Result<SimulatedCluster, Error> {
    let elastic = "elastic: {minWorkers: 1, maxWorkers: 2}";
    let mut cluster = SimulatedCluster::running(&format!("workers: 2, {elastic}, runPolicy: {{{policy}}}"))?;
    cluster.graceful_deletion = true;
    cluster.child_mut("Pod", "mnist-worker-1")?["spec"]["nodeName"] = json!("node-7");
    leave(&mut cluster)?;
    Ok(cluster)
}

#[test]
fn a_pod_outside_the_spec_that_does_not_go_is_told() -> Result<(), Error> {
    for (name, leave) in OUTSIDE_THE_SPEC {
        // The job waits for none of them, so it does not fail.
        let mut cluster = with_pod_outside_the_spec("terminationTimeoutSeconds: 600", *leave)?;
        let before = cluster.phase()?;
        assert!(cluster.requeue_after.is_some_and(|seconds| seconds <= 90), "{name}: {:?}", cluster.requeue_after);
        cluster.advance_clock(90);
        cluster.reconcile_until_stable()?;
        let told = cluster.status()?.stuck_pods;
        assert_eq!(told.iter().map(|pod| &*pod.pod_name).collect::<Vec<_>>(), ["mnist-worker-1"], "{name}");
        for text in [told[0].message.clone(), cluster.condition_message("Ready")] {
            assert!(text.contains("on node 'node-7'") && text.contains("more than 1m ago"), "{name}: {text}");
        }
        assert_eq!(cluster.event_count("FailedDeletePod"), 1, "{name}");
        cluster.advance_clock(3600);
        cluster.reconcile_until_stable()?;
        assert_eq!((cluster.phase()?, cluster.event_count("FailedDeletePod")), (before, 1), "{name}");
        cluster.finish_deletions();
        cluster.reconcile_until_stable()?;
        assert!(cluster.status()?.stuck_pods.is_empty(), "{name}");
    }
    Ok(())
}

#[test]
fn a_pod_outside_the_spec_is_forced_away_if_asked() -> Result<(), Error> {
    for (name, leave) in OUTSIDE_THE_SPEC {
        let mut cluster = with_pod_outside_the_spec(FORCE, *leave)?;
        cluster.advance_clock(629);
        cluster.reconcile_until_stable()?;
        assert!(cluster.pod_names().contains(&"mnist-worker-1"), "{name}");
        cluster.advance_clock(1);
        assert!(cluster.call_plugin()?.forced_deletions.is_empty(), "{name}: the status does not say so yet");
        cluster.reconcile_until_stable()?;
        assert!(!cluster.pod_names().contains(&"mnist-worker-1"), "{name}");
        assert_eq!(cluster.event_count("ForceDeletePod"), 1, "{name}");
        assert!(cluster.status()?.stuck_pods.is_empty(), "{name}");
    }
    Ok(())
}

/// No worker of the new spec starts before the last of the old one is gone, also where the new spec has no place for it.
#[test]
fn a_job_that_shrinks_waits_for_all_its_old_pods_and_not_for_ever() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {terminationTimeoutSeconds: 600}")?;
    cluster.graceful_deletion = true;
    cluster.job["spec"]["workers"] = json!(1);
    cluster.reconcile_until_stable()?;
    cluster.delete_pod("mnist-worker-0");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names(), ["mnist-worker-1"]);
    cluster.advance_clock(630);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Failed"), "True TerminationTimeoutExceeded");
    Ok(())
}

#[test]
fn a_job_that_is_only_partly_made_says_so_and_lets_its_pods_go_in_time() -> Result<(), Error> {
    const WORDS: &str = "pods \"mnist-worker-2\" is forbidden: exceeded quota: gpus";
    let mut cluster = SimulatedCluster::new("workers: 3, runPolicy: {startDeadlineSeconds: 900}")?;
    cluster.refused_pods.insert("mnist-worker-2".to_owned(), WORDS.to_owned());
    cluster.reconcile_until_stable()?;
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    let message = cluster.condition_message("Ready");
    assert!(message.contains(&format!("mnist-worker-2: FailedCreatePod: AdmissionDenied: {WORDS}")), "{message}");
    assert_eq!(cluster.event_count("FailedCreatePod"), 1);
    assert_eq!(cluster.status()?.start_time, None, "not all Pods exist");
    cluster.advance_clock(900);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Failed"), "True StartDeadlineExceeded");
    assert!(cluster.condition_message("Failed").contains(WORDS));
    assert_eq!(cluster.pod_names(), Vec::<&str>::new(), "they held GPUs for nothing");
    Ok(())
}

#[test]
fn a_job_that_starts_in_time_has_no_start_deadline_until_it_starts_again() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {startDeadlineSeconds: 900}")?;
    cluster.advance_clock(10_000);
    cluster.reconcile_until_stable()?;
    assert!(cluster.is_condition_true("Running"));
    cluster.fail_pod("mnist-worker-0", 1)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.requeue_after, Some(900));
    cluster.advance_clock(900);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Failed"), "True StartDeadlineExceeded");
    Ok(())
}

#[test]
fn the_pause_before_a_restart_is_no_part_of_the_start_deadline() -> Result<(), Error> {
    for scope in ["Job", "Worker"] {
        let policy = format!("startDeadlineSeconds: 15, backoffLimit: 50, restartScope: {scope}");
        let spec = format!("framework: tensorflow, workers: 2, runPolicy: {{restartPolicy: ExitCode, {policy}}}");
        let mut cluster = SimulatedCluster::running(&spec)?;
        for delay in [0, 10, 20, 40] {
            cluster.fail_pod("mnist-worker-0", 137)?;
            cluster.reconcile_until_stable()?;
            cluster.advance_clock(delay);
            cluster.reconcile_until_stable()?;
            assert_eq!((cluster.is_condition_true("Failed"), cluster.pod_names().len()), (false, 2), "{scope} {delay}");
            cluster.advance_clock(14);
            cluster.reconcile_until_stable()?;
            assert!(!cluster.is_condition_true("Failed"), "{scope} {delay}");
            if delay < 40 {
                cluster.set_phase_of_all_pods("Running");
                cluster.reconcile_until_stable()?;
            }
        }
        cluster.advance_clock(1);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.condition("Failed"), "True StartDeadlineExceeded", "{scope}");
    }
    Ok(())
}

#[test]
fn the_grace_period_of_old_pods_is_no_part_of_the_start_deadline() -> Result<(), Error> {
    for pods_go in [true, false] {
        let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {startDeadlineSeconds: 15}")?;
        cluster.graceful_deletion = true;
        cluster.fail_pod("mnist-worker-0", 1)?;
        cluster.reconcile_until_stable()?;
        cluster.advance_clock(29);
        cluster.reconcile_until_stable()?;
        if pods_go {
            cluster.finish_deletions();
            cluster.reconcile_until_stable()?;
        }
        cluster.advance_clock(15);
        cluster.reconcile_until_stable()?;
        assert!(!cluster.is_condition_true("Failed"), "{pods_go}");
        cluster.advance_clock(1);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.condition("Failed"), "True StartDeadlineExceeded", "{pods_go}");
    }
    Ok(())
}

#[test]
fn a_refused_pod_is_made_once_the_cluster_lets_it() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 2")?;
    cluster.refused_pods.insert("mnist-worker-1".to_owned(), "no".to_owned());
    cluster.reconcile_until_stable()?;
    cluster.refused_pods.clear();
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2);
    assert_eq!(cluster.status()?.worker_statuses[1].reason, None);
    Ok(())
}

#[test]
fn a_gang_is_admitted_anew_before_it_starts_again() -> Result<(), Error> {
    let spec = "workers: 2, gangScheduling: {scheduler: volcano}, runPolicy: {startDeadlineSeconds: 60}";
    let mut cluster = SimulatedCluster::new(spec)?;
    cluster.volcano_is_installed = true;
    cluster.reconcile_until_stable()?;
    cluster.child_mut("PodGroup", "mnist")?["status"] = json!({ "phase": "Running" });
    cluster.reconcile_until_stable()?;
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    cluster.graceful_deletion = true;
    cluster.fail_pod("mnist-worker-0", 1)?;
    cluster.reconcile_until_stable()?;
    cluster.child_mut("PodGroup", "mnist")?["status"] = json!({ "phase": "Pending" });
    cluster.finish_deletions();
    cluster.reconcile_until_stable()?;
    cluster.advance_clock(600);
    cluster.reconcile_until_stable()?;
    let waits = (cluster.condition("Ready"), cluster.pod_names().len());
    assert_eq!(waits, ("False WaitingForPodGroup".to_owned(), 0), "and the queue may take its time");
    assert_eq!(cluster.status()?.worker_statuses[0].status, "Missing");
    cluster.child_mut("PodGroup", "mnist")?["status"] = json!({ "phase": "Inqueue" });
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2);
    Ok(())
}

#[test]
fn the_duration_of_a_job_has_the_time_before_a_suspension() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.advance_clock(100);
    cluster.job["spec"]["runPolicy"] = json!({ "suspend": true });
    cluster.reconcile_until_stable()?;
    cluster.advance_clock(10_000);
    cluster.job["spec"]["runPolicy"] = json!({});
    cluster.reconcile_until_stable()?;
    cluster.advance_clock(50);
    cluster.set_phase_of_all_pods("Succeeded");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.measured("training_job_duration_seconds"), 150.0);
    Ok(())
}

#[test]
fn a_sidecar_that_crashes_stops_no_training_that_runs() -> Result<(), Error> {
    let crashes = "state: {waiting: {reason: CrashLoopBackOff, message: back-off}}";
    for (what, containers) in [
        ("a native sidecar", format!("initContainerStatuses: [{{name: logs, {crashes}}}]")),
        (
            "a plain sidecar",
            format!("containerStatuses: [{{name: pytorch, state: {{running: {{}}}}}}, {{name: logs, {crashes}}}]"),
        ),
    ] {
        let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {startDeadlineSeconds: 60}")?;
        cluster.set_pod_status("mnist-worker-0", &format!("phase: Running, {containers}"))?;
        for _ in 0..2 {
            cluster.reconcile_until_stable()?;
            assert_eq!(cluster.condition("Ready"), "True TrainingJobRunning", "{what}");
            assert_eq!(cluster.phase()?, Some(Phase::Running), "{what}");
            cluster.advance_clock(61);
        }
        let worker = &cluster.status()?.worker_statuses[0];
        assert_eq!(worker.status, "CrashLoopBackOff", "{what}: it is told nevertheless");
        let trainer = format!("phase: Running, containerStatuses: [{{name: pytorch, {crashes}}}]");
        cluster.set_pod_status("mnist-worker-0", &trainer)?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.condition("Ready"), "False WorkersPending", "{what}");
    }
    Ok(())
}
