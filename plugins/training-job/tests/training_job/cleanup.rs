//! What is left of a job that has ended, and when it goes.

use crate::world::World;
use pilothouse_sdk::Error;
use training_job::api::Phase;

/// A policy, and which of three workers' Pods are left: the first has succeeded, the second runs, the third waits.
#[rustfmt::skip]
const POLICIES: &[(&str, &[usize])] = &[
    ("", &[0, 1, 2]),
    ("cleanPodPolicy: None", &[0, 1, 2]),
    ("cleanPodPolicy: Running", &[0]),
    ("cleanPodPolicy: All", &[]),
];

#[test]
fn the_policy_says_which_pods_are_left() -> Result<(), Error> {
    for (policy, left) in POLICIES {
        let mut world = World::of(&format!("workers: 3, successPolicy: ChiefWorker, runPolicy: {{{policy}}}"))?;
        world.settle()?;
        world.set("mnist-worker-0", "phase: Running")?;
        world.set("mnist-worker-1", "phase: Running")?;
        world.settle()?;
        assert_eq!(world.pods().len(), 3, "{policy}: nothing goes before the end");
        world.set("mnist-worker-0", "phase: Succeeded")?;
        world.settle()?;
        let expected: Vec<_> = left.iter().map(|index| format!("mnist-worker-{index}")).collect();
        assert_eq!(world.pods(), expected, "{policy}");
        assert_eq!(world.phase()?, Some(Phase::Succeeded), "{policy}");
        assert_eq!(world.removes_many, left.len() < 3, "{policy}: the host must know that it is meant");
    }
    Ok(())
}

/// A policy, how the job failed, and which of two workers' Pods are left: the first failed, the second runs.
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
fn a_limit_that_stopped_the_job_stops_its_pods() -> Result<(), Error> {
    for (policy, how, left) in FAILURES {
        let mut world = World::running(&format!("workers: 2, runPolicy: {{cleanPodPolicy: {policy}, {how}}}"))?;
        world.fail("mnist-worker-0", 1)?;
        world.settle()?;
        assert_eq!(world.phase()?, Some(Phase::Failed), "{policy} {how}");
        assert_eq!(world.pods(), *left, "{policy} {how}");
    }
    Ok(())
}

#[test]
fn what_is_around_the_pods_goes_with_them() -> Result<(), Error> {
    for (policy, services, maps) in [("None", 1, 1), ("Running", 0, 1), ("All", 0, 0)] {
        let spec = format!("workers: 1, hyperparameters: {{a: 1}}, runPolicy: {{cleanPodPolicy: {policy}}}");
        let mut world = World::running(&spec)?;
        world.all("Succeeded");
        world.settle()?;
        assert_eq!((world.names("Service").len(), world.names("ConfigMap").len()), (services, maps), "{policy}");
    }
    Ok(())
}

#[test]
fn a_job_that_has_ended_says_when_it_is_deleted() -> Result<(), Error> {
    for end in ["Succeeded", "Failed"] {
        let mut world = World::running("workers: 2, runPolicy: {restartPolicy: Never, ttlSecondsAfterFinished: 100}")?;
        world.pass(50);
        assert_eq!(world.status()?.expiration_time, None, "{end}: not before its end");
        world.all(end);
        world.settle()?;
        let ended = world.status()?;
        assert_eq!(ended.expiration_time, Some(world.time(100)), "{end}");
        assert_eq!((world.requeue, world.pods().len()), (None, 2), "{end}: the host sees to it");
        world.pass(1000);
        world.settle()?;
        assert_eq!(world.status()?, ended, "{end}: it is the same time whenever it is asked");
        for (policy, later) in [("ttlSecondsAfterFinished", Some(2000)), ("backoffLimit", None)] {
            world.job["spec"]["runPolicy"] = serde_json::json!({ policy: 2000 });
            world.settle()?;
            let expected = later.map(|seconds: i64| world.time(seconds - 1000));
            assert_eq!(world.status()?.expiration_time, expected, "{end}: {policy}");
        }
    }
    Ok(())
}

#[test]
fn a_job_that_has_ended_asks_for_nothing() -> Result<(), Error> {
    let mut world = World::running("workers: 2")?;
    world.all("Succeeded");
    world.settle()?;
    assert_eq!(world.requeue, None);
    Ok(())
}

#[test]
fn pods_of_another_spec_are_left_as_they_are_once_the_job_has_ended() -> Result<(), Error> {
    let mut world = World::running("workers: 2")?;
    world.all("Succeeded");
    world.settle()?;
    let children = world.children.clone();
    world.job["spec"]["image"] = serde_json::json!("another");
    world.settle()?;
    assert_eq!(world.children, children);
    world.job["spec"]["runPolicy"] = serde_json::json!({ "cleanPodPolicy": "All" });
    world.settle()?;
    assert_eq!(world.children.len(), 0, "and go when they shall");
    Ok(())
}
