//! What happens after failures: which are retried, what a retry restarts, and how many times.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::json;
use training_job::api::Phase;

/// A restart policy, an exit code (0: the Pod has none), and whether the failure is retried.
#[rustfmt::skip]
const POLICIES: &[(&str, i32, bool)] = &[
    ("Always", 1, true), ("Always", 137, true), ("Always", 0, true),
    ("OnFailure", 1, true), ("OnFailure", 137, true), ("OnFailure", 0, true),
    ("Never", 1, false), ("Never", 137, false), ("Never", 0, false),
    ("ExitCode", 1, false), ("ExitCode", 2, false), ("ExitCode", 126, false), ("ExitCode", 127, false),
    ("ExitCode", 128, true), ("ExitCode", 130, true), ("ExitCode", 137, true), ("ExitCode", 143, true),
    ("ExitCode", 255, true), ("ExitCode", 0, true),
];

#[test]
fn the_restart_policy_says_which_failures_are_retried() -> Result<(), Error> {
    for framework in ["pytorch", "tensorflow", "jax"] {
        for (policy, code, is_retried) in POLICIES {
            let spec = format!("framework: {framework}, workers: 2, runPolicy: {{restartPolicy: {policy}}}");
            let mut cluster = SimulatedCluster::running(&spec)?;
            cluster.fail_pod("mnist-worker-0", *code)?;
            cluster.reconcile_until_stable()?;
            let status = cluster.status()?;
            let name = format!("{framework} {policy} {code}");
            assert_eq!(status.restart_count, u32::from(*is_retried), "{name}");
            assert_eq!(status.phase == Some(Phase::Failed), !is_retried, "{name}");
            assert_eq!(cluster.pod_names().len(), 2, "{name}");
        }
    }
    Ok(())
}

/// A restart policy, a scope, and the restart policy of the Pods.
#[rustfmt::skip]
const POD_RESTART_POLICIES: &[(&str, &str, &str)] = &[
    ("", "", "Never"),
    ("restartPolicy: OnFailure", "restartScope: Job", "Never"),
    ("restartPolicy: OnFailure", "restartScope: Worker", "OnFailure"),
    ("restartPolicy: Always", "restartScope: Job", "Never"),
    ("restartPolicy: Always", "restartScope: Worker", "Always"),
    ("restartPolicy: Never", "restartScope: Worker", "Never"),
    ("restartPolicy: ExitCode", "restartScope: Worker", "Never"),
];

#[test]
fn the_kubelet_restarts_containers_only_where_workers_restart_alone() -> Result<(), Error> {
    for (policy, scope, expected) in POD_RESTART_POLICIES {
        let both = if policy.is_empty() { String::new() } else { format!("{policy}, {scope}") };
        let mut cluster = SimulatedCluster::new(&format!("workers: 1, runPolicy: {{{both}}}"))?;
        cluster.reconcile_until_stable()?;
        let pod = cluster.child("Pod", "mnist-worker-0")?;
        assert_eq!(pod["spec"]["restartPolicy"], *expected, "{both}");
    }
    Ok(())
}

/// More of the spec, and which workers are new after worker 1 failed.
const SCOPES: &[(&str, &[usize])] = &[
    ("framework: pytorch", &[0, 1, 2]),
    ("framework: pytorch, runPolicy: {restartScope: Worker}", &[1]),
    ("framework: pytorch, elastic: {minWorkers: 1, maxWorkers: 3}", &[1]),
    ("framework: tensorflow, runPolicy: {restartPolicy: OnFailure}", &[0, 1, 2]),
    ("framework: tensorflow, parameterServers: 1, runPolicy: {restartPolicy: OnFailure}", &[1]),
    ("framework: tensorflow, runPolicy: {restartPolicy: OnFailure, restartScope: Job}", &[0, 1, 2]),
];

#[test]
fn the_scope_says_whether_one_worker_or_all_are_replaced() -> Result<(), Error> {
    for (spec, expected) in SCOPES {
        let mut cluster = SimulatedCluster::running(&format!("workers: 3, {spec}"))?;
        let before = uids(&cluster)?;
        cluster.fail_pod("mnist-worker-1", 137)?;
        cluster.reconcile_until_stable()?;
        let new: Vec<_> =
            (0..3).zip(before.iter().zip(uids(&cluster)?)).filter(|(_, (old, new))| **old != *new).collect();
        let new: Vec<_> = new.into_iter().map(|(index, _)| index).collect();
        assert_eq!(new, *expected, "{spec}");
        assert_eq!(cluster.status()?.restart_count, 1, "{spec}");
        assert_eq!(cluster.measured("training_jobs_restarted_total"), 1.0, "{spec}");
    }
    Ok(())
}

#[test]
fn no_new_worker_starts_before_the_last_old_one_is_gone() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 3")?;
    cluster.graceful_deletion = true;
    let before = uids(&cluster)?;
    cluster.fail_pod("mnist-worker-1", 1)?;
    cluster.reconcile_until_stable()?;
    assert!(cluster.removes_many, "the host must know that the removal is meant");
    assert_eq!(cluster.condition("Restarting"), "True TrainingJobRestarting");
    assert_eq!(cluster.pod_names(), ["mnist-worker-0", "mnist-worker-2"], "two are still being deleted");
    cluster.end_deleted_pods(0);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2, "their volumes take their time");
    cluster.finish_deletions();
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 3);
    assert!(before.iter().zip(uids(&cluster)?).all(|(old, new)| *old != new));
    assert_eq!(cluster.condition("Restarting"), "True TrainingJobRestarting", "until they run");
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Restarting"), "False TrainingJobRunning");
    assert_eq!(cluster.condition("Running"), "True TrainingJobRunning");
    assert_eq!(cluster.status()?.retiring_pods, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_single_worker_is_replaced_while_another_is_still_being_deleted() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 3, runPolicy: {restartScope: Worker}")?;
    cluster.begin_deletion("mnist-worker-2")?;
    cluster.fail_pod("mnist-worker-1", 1)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.child("Pod", "mnist-worker-1")?["status"]["phase"], "Pending");
    assert!(cluster.child("Pod", "mnist-worker-2")?.pointer("/metadata/deletionTimestamp").is_some());
    assert_eq!(cluster.status()?.restart_count, 1);
    assert_eq!(cluster.phase()?, Some(Phase::Running), "worker 0 has been running all the time");
    Ok(())
}

/// A backoff limit, and how many failures exceed it.
const LIMITS: &[(u32, u32)] = &[(0, 1), (1, 2), (3, 4)];

#[test]
fn a_job_fails_when_the_backoff_limit_is_exceeded() -> Result<(), Error> {
    for scope in ["Job", "Worker"] {
        for (limit, failures) in LIMITS {
            let spec = format!("workers: 2, runPolicy: {{backoffLimit: {limit}, restartScope: {scope}}}");
            let mut cluster = SimulatedCluster::running(&spec)?;
            for failure in 1..=*failures {
                assert_ne!(cluster.phase()?, Some(Phase::Failed), "{scope} {limit}: before failure {failure}");
                cluster.fail_pod("mnist-worker-1", 1)?;
                cluster.reconcile_until_stable()?;
                cluster.advance_clock(400);
                cluster.reconcile_until_stable()?;
                if cluster.phase()? != Some(Phase::Failed) {
                    cluster.set_phase_of_all_pods("Running");
                    cluster.reconcile_until_stable()?;
                }
            }
            assert_eq!(cluster.condition("Failed"), "True BackoffLimitExceeded", "{scope} {limit}");
            assert_eq!(cluster.status()?.restart_count, *limit, "{scope}");
            assert_eq!(cluster.pod_names(), ["mnist-worker-1"], "the running worker is stopped");
        }
    }
    Ok(())
}

#[test]
fn the_budget_is_used_up_by_the_same_rule_in_place_and_otherwise() -> Result<(), Error> {
    for limit in 0..3 {
        for scope in ["Job", "Worker"] {
            let in_place = scope == "Worker";
            let spec = format!("workers: 2, runPolicy: {{restartScope: {scope}, backoffLimit: {limit}}}");
            let mut cluster = SimulatedCluster::running(&spec)?;
            for incident in 0..=limit {
                assert_ne!(cluster.phase()?, Some(Phase::Failed), "{scope} {limit}: before incident {incident}");
                cluster.advance_clock(1000);
                match in_place {
                    true => cluster.restart_container("mnist-worker-1", 1)?,
                    false => cluster.fail_pod("mnist-worker-1", 1)?,
                }
                cluster.reconcile_until_stable()?;
                if !in_place && incident < limit {
                    cluster.advance_clock(1000);
                    cluster.reconcile_until_stable()?;
                    cluster.set_phase_of_all_pods("Running");
                    cluster.reconcile_until_stable()?;
                }
            }
            assert_eq!(cluster.condition("Failed"), "True BackoffLimitExceeded", "{scope} {limit}");
            assert_eq!(cluster.status()?.restart_count, limit, "{scope}");
        }
    }
    Ok(())
}

/// Jobs whose containers the kubelet restarts.
const RESTARTED_IN_PLACE: &[&str] = &[
    "workers: 8, elastic: {minWorkers: 2, maxWorkers: 8}, runPolicy: {backoffLimit: 1}",
    "framework: tensorflow, workers: 6, parameterServers: 2, runPolicy: {restartPolicy: OnFailure, backoffLimit: 1}",
    "workers: 8, runPolicy: {restartScope: Worker, backoffLimit: 1}",
];

#[test]
fn an_incident_is_charged_once_and_not_once_per_member() -> Result<(), Error> {
    for (spec, is_seen_at_once) in RESTARTED_IN_PLACE.iter().flat_map(|spec| [(spec, false), (spec, true)]) {
        let mut cluster = SimulatedCluster::running(spec)?;
        cluster.advance_clock(3600);
        // The peers of the first notice one after the other.
        for pod in cluster.pod_names().iter().map(|&name| name.to_owned()).collect::<Vec<_>>() {
            cluster.restart_container(&pod, 1)?;
            if !is_seen_at_once {
                cluster.reconcile_until_stable()?;
            }
            cluster.advance_clock(20);
        }
        cluster.reconcile_until_stable()?;
        assert_eq!((cluster.status()?.restart_count, cluster.phase()?), (1, Some(Phase::Running)), "{spec}");
        assert_eq!(cluster.measured("training_jobs_restarted_total"), 1.0, "{spec}");
        cluster.restart_container("mnist-worker-0", 1)?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.condition("Failed"), "True BackoffLimitExceeded", "{spec}: it falls again");
    }
    Ok(())
}

/// A day ahead, a failure is in the future, and all that follows would seem to belong to it.
#[test]
fn a_node_with_a_wrong_clock_does_not_turn_the_backoff_limit_off() -> Result<(), Error> {
    for skew in [86_400, -86_400] {
        let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {backoffLimit: 3, restartScope: Worker}")?;
        let mut incidents = 0;
        while !cluster.is_condition_true("Failed") && incidents < 10 {
            incidents += 1;
            cluster.advance_clock(700);
            // Worker 0 is on the node with the wrong clock.
            let (worker, skew) = if incidents % 2 == 1 { ("mnist-worker-0", skew) } else { ("mnist-worker-1", 0) };
            cluster.now += skew;
            cluster.restart_container(worker, 1)?;
            cluster.now -= skew;
            cluster.reconcile_until_stable()?;
            assert!(cluster.status()?.last_failure_time <= Some(cluster.time_after(0)), "{skew}");
        }
        assert_eq!((incidents, cluster.condition("Failed").as_str()), (4, "True BackoffLimitExceeded"), "{skew}");
    }
    Ok(())
}

#[test]
fn restarts_that_the_host_has_not_seen_are_charged() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {restartScope: Worker}")?;
    for _ in 0..3 {
        cluster.advance_clock(60);
        cluster.restart_container("mnist-worker-1", 137)?;
    }
    cluster.reconcile_until_stable()?;
    let status = cluster.status()?;
    assert_eq!((status.restart_count, status.worker_statuses[1].exit_code), (3, Some(137)));
    assert_eq!(cluster.event_count("ExitedWithCode"), 1);
    Ok(())
}

#[test]
fn a_container_that_is_to_run_always_has_not_failed_when_it_ends_well() -> Result<(), Error> {
    let spec = "workers: 2, runPolicy: {restartPolicy: Always, restartScope: Worker, backoffLimit: 0}";
    let mut cluster = SimulatedCluster::running(spec)?;
    cluster.restart_container("mnist-worker-1", 0)?;
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.status()?.restart_count, cluster.phase()?), (0, Some(Phase::Running)));
    Ok(())
}

#[test]
fn a_job_that_has_trained_long_enough_has_its_budget_back() -> Result<(), Error> {
    let spec = "workers: 2, runPolicy: {backoffLimit: 1, backoffResetSeconds: 3600}";
    let mut cluster = SimulatedCluster::running(spec)?;
    for (trained, expected) in [(0, 1), (3600, 1), (3599, 2)] {
        cluster.advance_clock(trained);
        cluster.reconcile_until_stable()?;
        cluster.fail_pod("mnist-worker-0", 1)?;
        cluster.reconcile_until_stable()?;
        let has_failed = cluster.is_condition_true("Failed");
        assert_eq!(has_failed, expected > 1, "after {trained} s");
        assert_eq!(cluster.status()?.restart_count, 1, "after {trained} s");
        cluster.advance_clock(400);
        cluster.reconcile_until_stable()?;
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
    }
    Ok(())
}

/// The host stood still, or was busy, when the time was over.
#[test]
fn a_budget_comes_back_also_where_nobody_looks_before_the_next_failure() -> Result<(), Error> {
    for (trained, has_failed) in [(14, true), (15, false)] {
        let mut cluster =
            SimulatedCluster::running("workers: 2, runPolicy: {backoffLimit: 1, backoffResetSeconds: 15}")?;
        cluster.fail_pod("mnist-worker-0", 1)?;
        cluster.reconcile_until_stable()?;
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
        cluster.advance_clock(trained);
        cluster.fail_pod("mnist-worker-1", 1)?;
        cluster.advance_clock(100);
        cluster.reconcile_until_stable()?;
        let told = (cluster.is_condition_true("Failed"), cluster.status()?.restart_count);
        assert_eq!(told, (has_failed, 1), "after {trained} s");
        let restarts = if has_failed { 1.0 } else { 2.0 };
        assert_eq!(cluster.measured("training_jobs_restarted_total"), restarts, "after {trained} s");
    }
    Ok(())
}

#[test]
fn later_restarts_wait_for_the_backoff_and_no_longer() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    for delay in [0, 10, 20, 40] {
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
        cluster.fail_pod("mnist-worker-0", 1)?;
        cluster.reconcile_until_stable()?;
        if delay > 0 {
            assert_eq!(cluster.pod_names(), Vec::<&str>::new(), "{delay}");
            assert_eq!(cluster.requeue_after, Some(delay));
            cluster.advance_clock(i64::from(delay) - 1);
            cluster.reconcile_until_stable()?;
            assert_eq!((cluster.pod_names().len(), cluster.requeue_after), (0, Some(1)), "{delay}");
            cluster.advance_clock(1);
            cluster.reconcile_until_stable()?;
        }
        assert_eq!(cluster.pod_names().len(), 2, "{delay}");
    }
    Ok(())
}

#[test]
fn a_pod_that_somebody_deletes_is_created_again() -> Result<(), Error> {
    for (spec, others_stay) in [("restartScope: Worker", true), ("restartScope: Job", false)] {
        let mut cluster = SimulatedCluster::running(&format!("workers: 3, runPolicy: {{{spec}, backoffLimit: 0}}"))?;
        let before = uids(&cluster)?;
        cluster.delete_pod("mnist-worker-1");
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), 3, "{spec}");
        let after = uids(&cluster)?;
        assert_ne!(after[1], before[1], "{spec}");
        assert_eq!((after[0] == before[0], after[2] == before[2]), (others_stay, others_stay), "{spec}");
        assert_eq!(cluster.status()?.restart_count, 0, "{spec}: nobody failed");
    }
    Ok(())
}

#[test]
fn a_worker_that_has_succeeded_does_not_run_again_when_its_pod_is_gone() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 3")?;
    cluster.set_pod_status("mnist-worker-1", "phase: Succeeded")?;
    cluster.reconcile_until_stable()?;
    cluster.delete_pod("mnist-worker-1");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names(), ["mnist-worker-0", "mnist-worker-2"]);
    assert_eq!(cluster.status()?.worker_statuses[1].status, "Succeeded");
    cluster.set_phase_of_all_pods("Succeeded");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.phase()?, Some(Phase::Succeeded));
    Ok(())
}

#[test]
fn a_restart_of_all_workers_restarts_those_that_have_succeeded() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 3")?;
    cluster.set_pod_status("mnist-worker-1", "phase: Succeeded")?;
    cluster.reconcile_until_stable()?;
    cluster.fail_pod("mnist-worker-2", 1)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 3);
    assert_eq!(cluster.child("Pod", "mnist-worker-1")?["status"]["phase"], "Pending");
    Ok(())
}

/// What restarts all workers.
type Cause = fn(&mut SimulatedCluster) -> Result<(), Error>;

const CAUSES: &[(&str, Cause)] = &[
    ("a failure", |cluster| cluster.fail_pod("mnist-worker-0", 1)),
    ("a loss", |cluster| {
        cluster.delete_pod("mnist-worker-0");
        Ok(())
    }),
    ("a hang", |cluster| {
        cluster.advance_clock(60);
        Ok(())
    }),
    ("another image", |cluster| {
        cluster.job["spec"]["image"] = json!("another");
        Ok(())
    }),
];

#[test]
fn a_restart_of_all_workers_restarts_those_whose_pods_went_after_their_success() -> Result<(), Error> {
    for (cause, restart) in CAUSES {
        for graceful_deletion in [false, true] {
            let spec = "workers: 3, runPolicy: {progressDeadlineSeconds: 60, onHang: Restart}";
            let mut cluster = SimulatedCluster::running(spec)?;
            cluster.graceful_deletion = graceful_deletion;
            cluster.end_pod("mnist-worker-1", 0)?;
            cluster.reconcile_until_stable()?;
            cluster.delete_pod("mnist-worker-1");
            cluster.reconcile_until_stable()?;
            restart(&mut cluster)?;
            cluster.reconcile_until_stable()?;
            cluster.finish_deletions();
            cluster.reconcile_until_stable()?;
            assert_eq!(cluster.pod_names().len(), 3, "{cause}: the others would wait for it for ever");
            cluster.end_pod("mnist-worker-0", 0)?;
            cluster.end_pod("mnist-worker-2", 0)?;
            cluster.reconcile_until_stable()?;
            assert!(!cluster.is_condition_true("Succeeded"), "{cause}: its success was that of another run");
        }
    }
    Ok(())
}

fn uids(cluster: &SimulatedCluster) -> Result<Vec<String>, Error> {
    (0..3)
        .filter(|index| cluster.pod_names().len() > *index)
        .map(|index| format!("mnist-worker-{index}"))
        .map(|pod| cluster.pod_uid(&pod).map(str::to_owned))
        .collect()
}

/// The clock of the API server was an hour or a day ahead for a while.
#[test]
fn a_clock_that_is_set_back_does_not_stop_a_restart() -> Result<(), Error> {
    for (seconds, made) in [(-5, false), (-3600, true), (-86_400, true)] {
        let mut cluster = SimulatedCluster::running("workers: 1, runPolicy: {startDeadlineSeconds: 600}")?;
        for _ in 0..2 {
            cluster.fail_pod("mnist-worker-0", 1)?;
            cluster.reconcile_until_stable()?;
        }
        assert_eq!(
            (cluster.pod_names().len(), cluster.requeue_after),
            (0, Some(10)),
            "the second restart of a row waits"
        );
        cluster.advance_clock(seconds);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), usize::from(made), "{seconds}");
        cluster.advance_clock(15);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), 1, "{seconds}");
    }
    Ok(())
}
