//! What the cluster does to the Pods of a job: drains, evictions, preemptions, nodes that shut down or are lost. None of it is a failure
//! of the program, and none of it is a success.

use crate::simulated_cluster::{ChildKey, SimulatedCluster, TrainingJobCluster, is_deleting};
use pilothouse_sdk::Error;
use serde_json::json;
use training_job::api::Phase;

/// Jobs in which one Pod that ends well can be taken for the end of the job, or of a worker.
const JOBS: &[&str] = &[
    "workers: 1",
    "workers: 3",
    "workers: 3, runPolicy: {restartPolicy: Never}",
    "workers: 3, runPolicy: {restartScope: Worker}",
    "workers: 3, elastic: {minWorkers: 1, maxWorkers: 4}",
    "workers: 3, successPolicy: ChiefWorker",
    "framework: tensorflow, workers: 3",
    "framework: tensorflow, workers: 3, parameterServers: 1",
];

#[test]
fn a_drained_worker_that_ends_with_0_has_not_succeeded() -> Result<(), Error> {
    for spec in JOBS {
        for host_was_down in [false, true] {
            let mut cluster = SimulatedCluster::running(spec)?;
            cluster.graceful_deletion = true;
            cluster.evict("mnist-worker-0", "EvictionByEvictionAPI")?;
            if !host_was_down {
                cluster.reconcile_until_stable()?;
            }
            cluster.end_deleted_pods(0);
            cluster.reconcile_until_stable()?;
            cluster.end_deleted_pods(0);
            cluster.finish_deletions();
            cluster.reconcile_until_stable()?;
            let name = format!("{spec}, host down: {host_was_down}");
            assert!(!cluster.is_condition_true("Succeeded"), "{name}");
            assert_eq!(cluster.status()?.restart_count, 0, "{name}: nobody failed");
            assert_eq!(
                cluster.child("Pod", "mnist-worker-0")?["status"]["phase"],
                "Pending",
                "{name}: it is made again"
            );
            cluster.set_phase_of_all_pods("Running");
            cluster.reconcile_until_stable()?;
            assert_eq!(cluster.condition("Ready"), "True TrainingJobRunning", "{name}");
        }
    }
    Ok(())
}

#[test]
fn a_success_that_was_known_before_the_deletion_counts() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.end_pod("mnist-worker-0", 0)?;
    cluster.reconcile_until_stable()?;
    cluster.begin_deletion("mnist-worker-0")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.status()?.worker_statuses[0].status, "Succeeded");
    cluster.finish_deletions();
    cluster.end_pod("mnist-worker-1", 0)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.phase()?, Some(Phase::Succeeded));
    Ok(())
}

#[test]
fn pods_that_end_with_0_in_a_suspension_start_anew_when_the_job_is_resumed() -> Result<(), Error> {
    for spec in JOBS {
        let mut cluster = SimulatedCluster::running(spec)?;
        cluster.graceful_deletion = true;
        cluster.job["spec"]["runPolicy"]["suspend"] = json!(true);
        cluster.reconcile_until_stable()?;
        cluster.job["spec"]["runPolicy"]["suspend"] = json!(false);
        cluster.end_deleted_pods(0);
        cluster.reconcile_until_stable()?;
        assert!(!cluster.is_condition_true("Succeeded"), "{spec}");
        cluster.finish_deletions();
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.child("Pod", "mnist-worker-0")?["status"]["phase"], "Pending", "{spec}");
    }
    Ok(())
}

#[test]
fn a_worker_that_left_in_a_scale_down_comes_back_with_the_scale_up() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 3, elastic: {minWorkers: 1, maxWorkers: 4}")?;
    cluster.graceful_deletion = true;
    cluster.job["spec"]["workers"] = json!(2);
    cluster.reconcile_until_stable()?;
    cluster.end_deleted_pods(0);
    cluster.job["spec"]["workers"] = json!(3);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.phase()?, Some(Phase::Running));
    cluster.finish_deletions();
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.child("Pod", "mnist-worker-2")?["status"]["phase"], "Pending");
    Ok(())
}

/// How the cluster ends a Pod that then has the phase Failed.
type Disruption = fn(&mut SimulatedCluster, &str) -> Result<(), Error>;

const DISRUPTIONS: &[(&str, Disruption)] = &[
    ("preemption", |cluster, pod| {
        cluster.disrupt(pod, "PreemptionByScheduler")?;
        cluster.fail_pod(pod, 143)
    }),
    ("a taint, and the program exits 1 in the eviction", |cluster, pod| {
        cluster.disrupt(pod, "DeletionByTaintManager")?;
        cluster.fail_pod(pod, 1)
    }),
    ("eviction by the kubelet", |cluster, pod| cluster.set_pod_status(pod, "phase: Failed, reason: Evicted")),
    ("shutdown of the node", |cluster, pod| cluster.set_pod_status(pod, "phase: Failed, reason: Terminated")),
    ("a node that is full", |cluster, pod| cluster.set_pod_status(pod, "phase: Failed, reason: OutOfnvidia.com/gpu")),
];

#[test]
fn disruptions_do_not_count_as_failures_of_the_program() -> Result<(), Error> {
    for policy in ["Never", "OnFailure", "ExitCode", "Always"] {
        for scope in ["Job", "Worker"] {
            for (disruption, disrupt) in DISRUPTIONS {
                let name = format!("{disruption}, {policy}, {scope}");
                let policies = format!("restartPolicy: {policy}, restartScope: {scope}, backoffLimit: 0");
                let mut cluster = SimulatedCluster::running(&format!("workers: 2, runPolicy: {{{policies}}}"))?;
                for times in 1..=2 {
                    disrupt(&mut cluster, "mnist-worker-1")?;
                    cluster.reconcile()?;
                    assert_eq!(cluster.condition("Restarting"), "True WorkerDisrupted", "{name}");
                    cluster.reconcile_until_stable()?;
                    cluster.advance_clock(60);
                    cluster.reconcile_until_stable()?;
                    assert_eq!(cluster.pod_names().len(), 2, "{name}");
                    cluster.set_phase_of_all_pods("Running");
                    cluster.reconcile_until_stable()?;
                    let status = cluster.status()?;
                    assert_eq!((status.phase, status.restart_count), (Some(Phase::Running), 0), "{name}");
                    assert_eq!(status.disruption_count, times, "{name}");
                }
                assert_eq!(cluster.measured("training_jobs_failed_total"), 0.0, "{name}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_job_whose_pods_are_always_taken_away_fails_in_the_end() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {disruptionLimit: 3}")?;
    let mut delays = Vec::new();
    while !cluster.is_condition_true("Failed") && delays.len() < 10 {
        cluster.delete_pod("mnist-worker-1");
        cluster.reconcile_until_stable()?;
        delays.push(cluster.status()?.restart_delay_seconds);
        cluster.advance_clock(300);
        cluster.reconcile_until_stable()?;
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
    }
    assert_eq!(delays, [0, 10, 20, 20], "each restart waits longer than the one before");
    assert_eq!(cluster.condition("Failed"), "True DisruptionLimitExceeded");
    Ok(())
}

#[test]
fn disruptions_of_a_job_that_trains_in_between_are_none_of_a_row() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {disruptionLimit: 1}")?;
    for _ in 0..5 {
        cluster.advance_clock(600);
        cluster.delete_pod("mnist-worker-1");
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), 2, "at once");
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
    }
    assert_eq!((cluster.phase()?, cluster.status()?.disruption_count), (Some(Phase::Running), 1));
    Ok(())
}

/// Jobs whose workers are replaced alone.
const REPLACED_ALONE: &[&str] = &[
    "workers: 4, elastic: {minWorkers: 2, maxWorkers: 4}, runPolicy: {disruptionLimit: 3}",
    "workers: 4, runPolicy: {restartScope: Worker, disruptionLimit: 3}",
    "framework: tensorflow, workers: 4, parameterServers: 1, runPolicy: {disruptionLimit: 3}",
];

/// Enough others train all the time: that does not make the losses any fewer.
#[test]
fn losses_of_workers_that_are_replaced_alone_wait_longer_and_have_a_limit() -> Result<(), Error> {
    for spec in REPLACED_ALONE {
        let mut cluster = SimulatedCluster::running(spec)?;
        cluster.advance_clock(3600);
        cluster.reconcile_until_stable()?;
        let peer = cluster.pod_uid("mnist-worker-1")?.to_owned();
        let mut delays = Vec::new();
        while !cluster.is_condition_true("Failed") && delays.len() < 10 {
            cluster.delete_pod("mnist-worker-3");
            cluster.reconcile_until_stable()?;
            delays.push(cluster.status()?.restart_delay_seconds);
            let waits = !cluster.pod_names().contains(&"mnist-worker-3");
            assert_eq!(waits, delays.len() > 1, "{spec}: {delays:?}");
            cluster.advance_clock(100);
            cluster.reconcile_until_stable()?;
            cluster.set_phase_of_all_pods("Running");
            cluster.reconcile_until_stable()?;
        }
        assert_eq!(delays, [0, 10, 20, 20], "{spec}");
        assert_eq!(cluster.condition("Failed"), "True DisruptionLimitExceeded", "{spec}");
        assert_eq!((cluster.pod_uid("mnist-worker-1").ok(), cluster.status()?.restart_count), (None, 0), "{peer}");
    }
    Ok(())
}

#[test]
fn a_loss_beside_enough_others_is_told_and_leaves_an_elastic_job_ready() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running(REPLACED_ALONE[0])?;
    cluster.graceful_deletion = true;
    cluster.evict("mnist-worker-3", "EvictionByEvictionAPI")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Restarting"), "True WorkerLost");
    assert_eq!(cluster.condition_message("Restarting"), "gone: mnist-worker-3; they are replaced");
    assert_eq!((cluster.event_count("TrainingJobRestarting"), cluster.status()?.disruption_count), (1, 1));
    assert_eq!(
        (cluster.phase()?, cluster.condition("Ready").as_str()),
        (Some(Phase::Running), "True TrainingJobRunning")
    );
    cluster.finish_deletions();
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 4);
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Restarting"), "False TrainingJobRunning");
    assert_eq!(cluster.status()?.disruption_count, 1, "once");
    Ok(())
}

#[test]
fn a_loss_beside_a_failure_is_counted_with_it() -> Result<(), Error> {
    let spec = "workers: 3, runPolicy: {restartPolicy: ExitCode, restartScope: Worker}";
    let mut cluster = SimulatedCluster::running(spec)?;
    cluster.delete_pod("mnist-worker-2");
    cluster.fail_pod("mnist-worker-0", 137)?;
    cluster.reconcile_until_stable()?;
    let status = cluster.status()?;
    assert_eq!((status.restart_count, status.disruption_count, cluster.pod_names().len()), (1, 1, 3));
    Ok(())
}

/// The eviction API deletes a Pod after it has set the condition: its phase may never be Failed.
#[test]
fn a_rule_for_a_condition_sees_pods_that_are_deleted() -> Result<(), Error> {
    for scope in ["Job", "Worker"] {
        for (action, restarts, disruptions) in [("FailJob", None, 0), ("Count", Some(1), 0), ("Ignore", Some(0), 1)] {
            let rules = format!("[{{action: {action}, onPodConditions: [{{type: DisruptionTarget}}]}}]");
            let policy = format!("restartScope: {scope}, podFailurePolicy: {{rules: {rules}}}");
            let mut cluster = SimulatedCluster::running(&format!("workers: 2, runPolicy: {{{policy}}}"))?;
            cluster.graceful_deletion = true;
            cluster.evict("mnist-worker-1", "EvictionByEvictionAPI")?;
            cluster.reconcile_until_stable()?;
            let status = cluster.status()?;
            let counted = (!cluster.is_condition_true("Failed")).then_some(status.restart_count);
            assert_eq!((counted, status.disruption_count), (restarts, disruptions), "{scope} {action}");
            // What is not marked is deleted by somebody, and no rule names that.
            let mut cluster = SimulatedCluster::running(&format!("workers: 2, runPolicy: {{{policy}}}"))?;
            cluster.begin_deletion("mnist-worker-1")?;
            cluster.reconcile_until_stable()?;
            let told = (cluster.is_condition_true("Failed"), cluster.status()?.restart_count);
            assert_eq!(told, (false, 0), "{scope} {action}");
        }
    }
    Ok(())
}

/// What happens to worker 1, and, five seconds later, to worker 0; and what becomes of the job.
struct Cause {
    name: &'static str,
    first: Disruption,
    then: i32,
    becomes: &'static str,
}

const CAUSES: &[Cause] = &[
    Cause {
        name: "a worker is out of memory, and its peer exits 1 for want of it",
        first: |cluster, pod| cluster.fail_pod(pod, 137),
        then: 1,
        becomes: "Restarting",
    },
    Cause {
        name: "a worker exits 1, and its peer is aborted",
        first: |cluster, pod| cluster.fail_pod(pod, 1),
        then: 134,
        becomes: "Failed",
    },
    Cause {
        name: "a worker is drained, and its peer exits 1 for want of it",
        first: |cluster, pod| cluster.evict(pod, "EvictionByEvictionAPI"),
        then: 1,
        becomes: "Restarting",
    },
    Cause {
        name: "a worker is deleted without a trace, and its peer exits 1",
        first: |cluster, pod| {
            cluster.delete_pod(pod);
            Ok(())
        },
        then: 1,
        becomes: "Restarting",
    },
];

/// The host sees both at once, and the names of the Pods are in the wrong order.
#[test]
fn the_member_that_failed_first_is_the_cause() -> Result<(), Error> {
    for Cause { name, first, then, becomes } in CAUSES {
        let mut cluster = SimulatedCluster::running("workers: 3, runPolicy: {restartPolicy: ExitCode}")?;
        cluster.advance_clock(100);
        first(&mut cluster, "mnist-worker-1")?;
        cluster.advance_clock(5);
        cluster.fail_pod("mnist-worker-0", *then)?;
        cluster.reconcile()?;
        assert!(cluster.is_condition_true(becomes), "{name}: {:?}", cluster.status()?.conditions);
    }
    Ok(())
}

#[test]
fn a_message_names_the_first_one_first() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 3")?;
    cluster.fail_pod("mnist-worker-2", 137)?;
    cluster.advance_clock(1);
    cluster.fail_pod("mnist-worker-0", 1)?;
    cluster.reconcile()?;
    let message = cluster.condition_message("Restarting");
    assert!(message.starts_with("failed: mnist-worker-2 (exit code 137), mnist-worker-0 (exit code 1)"), "{message}");
    Ok(())
}

/// A rule, how a worker ends, and what becomes of the job: the restarts that are counted, or none if it fails.
const RULES: &[(&str, Disruption, Option<u32>)] = &[
    ("{action: FailJob, onExitCodes: {operator: In, values: [3]}}", |c, pod| c.fail_pod(pod, 3), None),
    ("{action: FailJob, onExitCodes: {operator: In, values: [3]}}", |c, pod| c.fail_pod(pod, 4), Some(1)),
    ("{action: FailJob, onExitCodes: {operator: NotIn, values: [3]}}", |c, pod| c.fail_pod(pod, 4), None),
    ("{action: Ignore, onExitCodes: {operator: In, values: [3]}}", |c, pod| c.fail_pod(pod, 3), Some(0)),
    (
        "{action: FailJob, onReasons: [OOMKilled]}",
        |c, pod| {
            c.set_pod_status(
                pod,
                "phase: Failed, containerStatuses: [{name: pytorch, \
                 state: {terminated: {exitCode: 137, reason: OOMKilled}}}]",
            )
        },
        None,
    ),
    (
        "{action: FailJob, onReasons: [OOMKilled]}",
        |c, pod| {
            c.set_pod_status(
                pod,
                "phase: Running, containerStatuses: [{name: proxy, state: {running: {}}}, \
                 {name: pytorch, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]",
            )
        },
        None,
    ),
    (
        "{action: Count, onReasons: [Evicted]}",
        |c, pod| c.set_pod_status(pod, "phase: Failed, reason: Evicted"),
        Some(1),
    ),
    (
        "{action: FailJob, onPodConditions: [{type: DisruptionTarget}]}",
        |c, pod| {
            c.disrupt(pod, "TerminationByKubelet")?;
            c.fail_pod(pod, 1)
        },
        None,
    ),
    (
        "{action: FailJob, onReasons: [Evicted], onExitCodes: {operator: In, values: [3]}}",
        |c, pod| c.fail_pod(pod, 3),
        Some(1),
    ),
];

#[test]
fn rules_go_before_the_restart_policy() -> Result<(), Error> {
    for (rule, fail, expected) in RULES {
        for scope in ["Job", "Worker"] {
            let spec = format!(
                "workers: 2, runPolicy: {{restartPolicy: OnFailure, restartScope: {scope}, podFailurePolicy: {{rules: [{rule}]}}}}"
            );
            let mut cluster = SimulatedCluster::running(&spec)?;
            let pod = &cluster.child("Pod", "mnist-worker-1")?["spec"];
            assert_eq!(pod["restartPolicy"], "Never", "the kubelet would restart it before anybody looks");
            fail(&mut cluster, "mnist-worker-1")?;
            cluster.reconcile_until_stable()?;
            let counted = (!cluster.is_condition_true("Failed")).then_some(cluster.status()?.restart_count);
            assert_eq!(counted, *expected, "{rule} {scope}");
        }
    }
    Ok(())
}

#[test]
fn the_first_rule_that_fits_counts() -> Result<(), Error> {
    let rules = "[{action: Ignore, onExitCodes: {operator: In, values: [3]}}, \
                 {action: FailJob, onExitCodes: {operator: In, values: [3, 4]}}]";
    let spec = format!("workers: 2, runPolicy: {{podFailurePolicy: {{rules: {rules}}}}}");
    for (code, has_failed) in [(3, false), (4, true)] {
        let mut cluster = SimulatedCluster::running(&spec)?;
        cluster.fail_pod("mnist-worker-1", code)?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.is_condition_true("Failed"), has_failed, "{code}");
    }
    Ok(())
}

/// Without parameter servers, the peers of a lost worker would wait for it for ever.
#[test]
fn peers_of_a_failed_tensorflow_worker_do_not_hang() -> Result<(), Error> {
    for (spec, fails) in [
        ("framework: tensorflow, workers: 3", true),
        ("framework: tensorflow, workers: 3, parameterServers: 1", false),
        ("framework: tensorflow, workers: 3, successPolicy: ChiefWorker", false),
    ] {
        let mut cluster = SimulatedCluster::running(spec)?;
        cluster.fail_pod("mnist-worker-2", 1)?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.is_condition_true("Failed"), fails, "{spec}");
    }
    Ok(())
}

#[test]
fn peers_of_a_lost_tensorflow_worker_do_not_hang() -> Result<(), Error> {
    let together = "framework: tensorflow, workers: 3";
    for (spec, stay) in [(together, false), ("framework: tensorflow, workers: 3, parameterServers: 1", true)] {
        let mut cluster = SimulatedCluster::running(spec)?;
        let peer = cluster.pod_uid("mnist-worker-0")?.to_owned();
        cluster.delete_pod("mnist-worker-2");
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_uid("mnist-worker-0")? == peer, stay, "{spec}");
        assert!(cluster.pod_names().contains(&"mnist-worker-2"), "{spec}");
    }
    Ok(())
}

#[test]
fn a_chief_of_its_own_decides_and_an_evaluator_never_does() -> Result<(), Error> {
    let spec = "framework: tensorflow, workers: 2, parameterServers: 1, roles: [{name: chief}, {name: evaluator}]";
    for (pod, exit_code, phase) in [
        ("worker-0", 0, Phase::Running),
        ("worker-0", 1, Phase::Running),
        ("evaluator-0", 1, Phase::Running),
        ("ps-0", 1, Phase::Failed),
        ("chief-0", 1, Phase::Failed),
        ("chief-0", 0, Phase::Succeeded),
    ] {
        let mut cluster = SimulatedCluster::running(spec)?;
        cluster.end_pod(&format!("mnist-{pod}"), exit_code)?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.phase()?, Some(phase), "{pod} {exit_code}");
        assert_eq!(cluster.status()?.chief_statuses.len(), 1);
    }
    Ok(())
}

/// Without parameter servers, workers restart together; but nobody waits for the evaluator.
#[test]
fn an_evaluator_is_replaced_alone() -> Result<(), Error> {
    type Incident = fn(&mut SimulatedCluster) -> Result<(), Error>;
    const INCIDENTS: [Incident; 2] = [
        |cluster| cluster.fail_pod("mnist-evaluator-0", 1),
        |cluster| {
            cluster.delete_pod("mnist-evaluator-0");
            Ok(())
        },
    ];
    let spec = "framework: tensorflow, workers: 2, roles: [{name: evaluator}], runPolicy: {restartPolicy: OnFailure}";
    for incident in INCIDENTS {
        let mut cluster = SimulatedCluster::running(spec)?;
        let uids = |cluster: &SimulatedCluster| -> Result<[String; 2], Error> {
            Ok([cluster.pod_uid("mnist-worker-0")?.to_owned(), cluster.pod_uid("mnist-evaluator-0")?.to_owned()])
        };
        let before = uids(&cluster)?;
        incident(&mut cluster)?;
        cluster.reconcile_until_stable()?;
        let after = uids(&cluster)?;
        assert_eq!(before[0], after[0], "the workers go on");
        assert_ne!(before[1], after[1]);
    }
    Ok(())
}

/// The kubelet ends the containers of a Pod that it evicts one after the other, and deletes no Pod: a trainer that writes a checkpoint on
/// SIGTERM ends with 0 before a plain sidecar has ended.
#[test]
fn a_worker_that_an_eviction_ends_with_0_beside_a_sidecar_has_not_succeeded() -> Result<(), Error> {
    let condition = "conditions: [{type: DisruptionTarget, status: 'True', reason: TerminationByKubelet}]";
    let trainer = "{name: pytorch, state: {terminated: {exitCode: 0}}}";
    for (name, status) in [
        (
            "at first",
            format!(
                "phase: Running, {condition}, containerStatuses: [{trainer}, {{name: proxy, state: {{running: {{}}}}}}]"
            ),
        ),
        ("in the end", format!("phase: Failed, reason: Evicted, {condition}, containerStatuses: [{trainer}]")),
        ("of an older kubelet", format!("phase: Failed, reason: Evicted, containerStatuses: [{trainer}]")),
    ] {
        for policy in ["OnFailure", "Never"] {
            let mut cluster =
                SimulatedCluster::running(&format!("workers: 1, runPolicy: {{restartPolicy: {policy}}}"))?;
            let before = cluster.pod_uid("mnist-worker-0")?.to_owned();
            cluster.set_pod_status("mnist-worker-0", &status)?;
            cluster.reconcile_until_stable()?;
            assert_eq!(cluster.condition("Restarting"), "True WorkerDisrupted", "{name} {policy}");
            assert_ne!(cluster.pod_uid("mnist-worker-0")?, before, "{name} {policy}");
            assert_eq!(cluster.status()?.restart_count, 0, "{name} {policy}");
        }
    }
    Ok(())
}

/// As when somebody takes the host's label off a Pod and the host takes it back for its name: the process in it is that of before.
#[test]
fn a_pod_that_comes_back_after_the_job_restarted_without_it_is_removed() -> Result<(), Error> {
    for scope in ["Job", "Worker"] {
        let mut cluster = SimulatedCluster::running(&format!("workers: 2, runPolicy: {{restartScope: {scope}}}"))?;
        cluster.graceful_deletion = true;
        let key = ChildKey::new("Pod", "mnist-worker-1");
        let hidden = cluster.children.remove(&key).ok_or_else(|| Error::Test("no Pod".to_owned()))?;
        // The restart is known, and no new Pod is made yet.
        while cluster.status()?.retiring_pods.is_empty() {
            cluster.reconcile()?;
        }
        let uid = hidden["metadata"]["uid"].clone();
        cluster.children.insert(key.clone(), hidden);
        cluster.reconcile_until_stable()?;
        assert!(cluster.children.get(&key).is_none_or(is_deleting), "{scope}: {:?}", cluster.children.get(&key));
        for _ in 0..2 {
            cluster.finish_deletions();
            cluster.advance_clock(60);
            cluster.run_all_pods()?;
        }
        assert_ne!(cluster.child("Pod", "mnist-worker-1")?["metadata"]["uid"], uid, "{scope}");
        let status = cluster.status()?;
        assert_eq!((status.phase, status.retiring_pods.len()), (Some(Phase::Running), 0), "{scope}");
    }
    Ok(())
}
