//! What becomes of failures: which are retried, what a retry restarts, and how often.

use crate::world::World;
use pilothouse_sdk::Error;
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
    for framework in ["pytorch", "tensorflow"] {
        for (policy, code, is_retried) in POLICIES {
            let spec = format!("framework: {framework}, workers: 2, runPolicy: {{restartPolicy: {policy}}}");
            let mut world = World::running(&spec)?;
            world.fail("mnist-worker-0", *code)?;
            world.settle()?;
            let status = world.status()?;
            let name = format!("{framework} {policy} {code}");
            assert_eq!(status.restart_count, u32::from(*is_retried), "{name}");
            assert_eq!(status.phase == Some(Phase::Failed), !is_retried, "{name}");
            assert_eq!(world.pods().len(), 2, "{name}");
        }
    }
    Ok(())
}

/// Restart policy, scope, and the restart policy of the Pods.
#[rustfmt::skip]
const KUBELET: &[(&str, &str, &str)] = &[
    ("", "", "Never"),
    ("restartPolicy: OnFailure", "restartScope: Job", "Never"),
    ("restartPolicy: OnFailure", "restartScope: Worker", "OnFailure"),
    ("restartPolicy: Always", "restartScope: Job", "Always"),
    ("restartPolicy: Always", "restartScope: Worker", "Always"),
    ("restartPolicy: Never", "restartScope: Worker", "Never"),
    ("restartPolicy: ExitCode", "restartScope: Worker", "Never"),
];

#[test]
fn the_kubelet_restarts_only_what_nobody_else_must_know_of() -> Result<(), Error> {
    for (policy, scope, expected) in KUBELET {
        let both = if policy.is_empty() { String::new() } else { format!("{policy}, {scope}") };
        let mut world = World::of(&format!("workers: 1, runPolicy: {{{both}}}"))?;
        world.settle()?;
        let pod = world.child("Pod", "mnist-worker-0")?;
        assert_eq!(pod["spec"]["restartPolicy"], *expected, "{both}");
    }
    Ok(())
}

/// More of the spec, and which workers are new after worker 1 failed.
const SCOPES: &[(&str, &[usize])] = &[
    ("framework: pytorch", &[0, 1, 2]),
    ("framework: pytorch, runPolicy: {restartScope: Worker}", &[1]),
    ("framework: pytorch, elastic: {minWorkers: 1, maxWorkers: 3}", &[1]),
    ("framework: tensorflow, runPolicy: {restartPolicy: OnFailure}", &[1]),
    ("framework: tensorflow, runPolicy: {restartPolicy: OnFailure, restartScope: Job}", &[0, 1, 2]),
];

#[test]
fn the_scope_says_whether_one_worker_is_replaced_or_all() -> Result<(), Error> {
    for (spec, expected) in SCOPES {
        let mut world = World::running(&format!("workers: 3, {spec}"))?;
        let before = uids(&world)?;
        world.fail("mnist-worker-1", 137)?;
        world.settle()?;
        let new: Vec<_> =
            (0..3).zip(before.iter().zip(uids(&world)?)).filter(|(_, (old, new))| **old != *new).collect();
        let new: Vec<_> = new.into_iter().map(|(index, _)| index).collect();
        assert_eq!(new, *expected, "{spec}");
        assert_eq!(world.status()?.restart_count, 1, "{spec}");
        assert_eq!(world.counted("training_jobs_restarted_total"), 1.0, "{spec}");
    }
    Ok(())
}

#[test]
fn no_worker_of_a_whole_job_begins_before_the_last_old_one_is_gone() -> Result<(), Error> {
    let mut world = World::running("workers: 3")?;
    world.graceful = true;
    world.fail("mnist-worker-1", 1)?;
    world.settle()?;
    let before = uids(&world)?;
    assert!(world.removes_many, "the host must know that this is meant");
    assert_eq!(world.condition("Restarting")?, "True TrainingJobRestarting");
    world.take("mnist-worker-1");
    world.settle()?;
    assert_eq!(world.pods(), ["mnist-worker-0", "mnist-worker-2"], "two are still on their way out");
    world.collect();
    world.settle()?;
    assert_eq!(world.pods().len(), 3);
    assert!(before.iter().zip(uids(&world)?).all(|(old, new)| *old != new));
    assert_eq!(world.condition("Restarting")?, "True TrainingJobRestarting", "until they run");
    world.all("Running");
    world.settle()?;
    assert_eq!(world.condition("Restarting")?, "False TrainingJobRunning");
    assert_eq!(world.condition("Running")?, "True TrainingJobRunning");
    assert_eq!(world.status()?.retiring_pods, Vec::<String>::new());
    Ok(())
}

#[test]
fn one_worker_is_replaced_while_another_is_still_on_its_way_out() -> Result<(), Error> {
    let mut world = World::running("workers: 3, runPolicy: {restartScope: Worker}")?;
    world.graceful = true;
    world.fail("mnist-worker-1", 1)?;
    world.fail("mnist-worker-2", 1)?;
    world.settle()?;
    world.take("mnist-worker-1");
    world.pass(10);
    world.settle()?;
    assert_eq!(world.child("Pod", "mnist-worker-1")?["status"]["phase"], "Pending");
    assert!(world.child("Pod", "mnist-worker-2")?.pointer("/metadata/deletionTimestamp").is_some());
    assert_eq!(world.status()?.restart_count, 2);
    assert_eq!(world.phase()?, Some(Phase::Running), "worker 0 has run all the time");
    Ok(())
}

/// A backoff limit, and how many failures it takes.
const LIMITS: &[(u32, u32)] = &[(0, 1), (1, 2), (3, 4)];

#[test]
fn the_backoff_limit_ends_a_job_that_fails_again_and_again() -> Result<(), Error> {
    for scope in ["Job", "Worker"] {
        for (limit, failures) in LIMITS {
            let spec = format!("workers: 2, runPolicy: {{backoffLimit: {limit}, restartScope: {scope}}}");
            let mut world = World::running(&spec)?;
            for failure in 1..=*failures {
                assert_ne!(world.phase()?, Some(Phase::Failed), "{scope} {limit}: before failure {failure}");
                world.fail("mnist-worker-1", 1)?;
                world.settle()?;
                world.pass(400);
                world.settle()?;
                if world.phase()? != Some(Phase::Failed) {
                    world.all("Running");
                    world.settle()?;
                }
            }
            assert_eq!(world.condition("Failed")?, "True BackoffLimitExceeded", "{scope} {limit}");
            assert_eq!(world.status()?.restart_count, *limit, "{scope}");
            assert_eq!(world.pods(), ["mnist-worker-1"], "what still ran was stopped");
        }
    }
    Ok(())
}

/// How often the kubelet restarted two workers, the backoff limit, and whether the job has failed for it.
#[rustfmt::skip]
const IN_PLACE: &[(&str, [u32; 2], u32, bool)] = &[
    ("OnFailure", [0, 0], 0, false), ("OnFailure", [1, 0], 0, true), ("OnFailure", [1, 1], 3, false),
    ("OnFailure", [2, 1], 3, true), ("Always", [2, 1], 3, true), ("ExitCode", [2, 2], 3, false),
];

#[test]
fn restarts_that_the_kubelet_makes_count_against_the_limit() -> Result<(), Error> {
    for (policy, restarts, limit, fails) in IN_PLACE {
        let mut world = World::running(&format!(
            "workers: 2, runPolicy: {{restartPolicy: {policy}, restartScope: Worker, backoffLimit: {limit}}}"
        ))?;
        for (index, count) in restarts.iter().enumerate() {
            let status = format!("phase: Running, containerStatuses: [{{name: pytorch, restartCount: {count}}}]");
            world.set(&format!("mnist-worker-{index}"), &status)?;
        }
        world.settle()?;
        assert_eq!(world.phase()? == Some(Phase::Failed), *fails, "{policy} {restarts:?} {limit}");
    }
    Ok(())
}

#[test]
fn later_restarts_wait_and_are_on_time() -> Result<(), Error> {
    let mut world = World::running("workers: 2")?;
    for delay in [0, 10, 20, 40] {
        world.all("Running");
        world.settle()?;
        world.fail("mnist-worker-0", 1)?;
        world.settle()?;
        if delay > 0 {
            assert_eq!(world.pods(), Vec::<&str>::new(), "{delay}");
            assert_eq!(world.requeue, Some(delay));
            world.pass(i64::from(delay) - 1);
            world.settle()?;
            assert_eq!((world.pods().len(), world.requeue), (0, Some(1)), "{delay}");
            world.pass(1);
            world.settle()?;
        }
        assert_eq!(world.pods().len(), 2, "{delay}");
    }
    Ok(())
}

#[test]
fn a_pod_that_somebody_deletes_is_made_again() -> Result<(), Error> {
    for (spec, others_stay) in [("restartScope: Worker", true), ("restartScope: Job", false)] {
        let mut world = World::running(&format!("workers: 3, runPolicy: {{{spec}, backoffLimit: 0}}"))?;
        let before = uids(&world)?;
        world.take("mnist-worker-1");
        world.settle()?;
        assert_eq!(world.pods().len(), 3, "{spec}");
        let after = uids(&world)?;
        assert_ne!(after[1], before[1], "{spec}");
        assert_eq!((after[0] == before[0], after[2] == before[2]), (others_stay, others_stay), "{spec}");
        assert_eq!(world.status()?.restart_count, 0, "{spec}: nobody failed");
    }
    Ok(())
}

#[test]
fn a_worker_that_is_done_stays_done_when_its_pod_is_collected() -> Result<(), Error> {
    let mut world = World::running("workers: 3")?;
    world.set("mnist-worker-1", "phase: Succeeded")?;
    world.settle()?;
    world.take("mnist-worker-1");
    world.settle()?;
    assert_eq!(world.pods(), ["mnist-worker-0", "mnist-worker-2"]);
    assert_eq!(world.status()?.worker_statuses[1].status, "Succeeded");
    world.all("Succeeded");
    world.settle()?;
    assert_eq!(world.phase()?, Some(Phase::Succeeded));
    Ok(())
}

#[test]
fn a_restart_of_all_restarts_those_that_were_done() -> Result<(), Error> {
    let mut world = World::running("workers: 3")?;
    world.set("mnist-worker-1", "phase: Succeeded")?;
    world.settle()?;
    world.fail("mnist-worker-2", 1)?;
    world.settle()?;
    assert_eq!(world.pods().len(), 3);
    assert_eq!(world.child("Pod", "mnist-worker-1")?["status"]["phase"], "Pending");
    Ok(())
}

fn uids(world: &World) -> Result<Vec<String>, Error> {
    (0..3)
        .filter(|index| world.pods().len() > *index)
        .map(|index| format!("mnist-worker-{index}"))
        .map(|pod| world.uid(&pod).map(str::to_owned))
        .collect()
}
