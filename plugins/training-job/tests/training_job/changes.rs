//! What becomes of Pods when the spec changes, when the job is scaled, and when the plugin is another one.

use crate::world::World;
use pilothouse_sdk::Error;
use serde_json::json;

#[test]
fn another_spec_makes_all_pods_anew_at_once() -> Result<(), Error> {
    let mut world = World::running("workers: 3, runPolicy: {backoffLimit: 0}")?;
    world.graceful = true;
    world.job["spec"]["image"] = json!("another");
    world.settle()?;
    assert_eq!(world.condition("Restarting")?, "True SpecChanged");
    assert!(
        world
            .pods()
            .iter()
            .all(|pod| world.child("Pod", pod).is_ok_and(|pod| pod["spec"]["containers"][0]["image"] == "image"))
    );
    world.take("mnist-worker-0");
    world.settle()?;
    assert_eq!(world.pods().len(), 2, "old and new ones are never there together");
    world.collect();
    world.settle()?;
    for index in 0..3 {
        let pod = world.child("Pod", &format!("mnist-worker-{index}"))?;
        assert_eq!(pod["spec"]["containers"][0]["image"], "another");
    }
    assert_eq!(world.status()?.restart_count, 0, "nobody failed");
    world.all("Running");
    world.settle()?;
    assert_eq!(world.condition("Running")?, "True TrainingJobRunning");
    Ok(())
}

#[test]
fn a_change_that_does_not_concern_pods_leaves_them() -> Result<(), Error> {
    let mut world = World::running("workers: 2")?;
    let before = world.children.clone();
    world.job["spec"]["runPolicy"] =
        json!({ "backoffLimit": 1, "ttlSecondsAfterFinished": 5, "cleanPodPolicy": "All" });
    world.settle()?;
    assert_eq!(world.children, before);
    Ok(())
}

/// Workers before and after, whether the job is elastic, and how many Pods stay the same.
const SCALED: &[(usize, usize, bool, usize)] = &[(2, 4, true, 2), (4, 2, true, 2), (2, 4, false, 0), (4, 2, false, 0)];

#[test]
fn an_elastic_job_keeps_its_pods_when_it_is_scaled() -> Result<(), Error> {
    for (before, after, is_elastic, kept) in SCALED {
        let elastic = if *is_elastic { ", elastic: {minWorkers: 1, maxWorkers: 8}" } else { "" };
        let mut world = World::running(&format!("workers: {before}{elastic}"))?;
        let old: Vec<_> = world.children.values().filter(|child| child["kind"] == "Pod").cloned().collect();
        world.job["spec"]["workers"] = json!(after);
        world.settle()?;
        assert_eq!(world.pods().len(), *after);
        let same = world.children.values().filter(|child| old.contains(child)).count();
        assert_eq!(same, *kept, "{before} to {after}, elastic: {is_elastic}");
        assert_eq!(world.status()?.worker_statuses.len(), *after);
    }
    Ok(())
}

/// Something that happens to a job.
type Happening = fn(&mut World);

/// More of the spec of a job with three workers, and what happens to it that Pods must be made or removed for.
const REPLACED: &[(&str, Happening)] = &[
    ("runPolicy: {restartScope: Worker}", |world| world.take("mnist-worker-1")),
    ("elastic: {minWorkers: 1, maxWorkers: 4}", |world| world.job["spec"]["workers"] = json!(4)),
    ("elastic: {minWorkers: 1, maxWorkers: 4}", |world| world.job["spec"]["workers"] = json!(2)),
];

#[test]
fn pods_of_an_older_plugin_are_left_until_one_must_be_replaced() -> Result<(), Error> {
    for (spec, happens) in REPLACED {
        let mut world = World::running(&format!("workers: 3, {spec}"))?;
        for index in 0..3 {
            let pod = world.children.get_mut(&("Pod".to_owned(), format!("mnist-worker-{index}")));
            let pod = pod.ok_or_else(|| Error::Test("no Pod".to_owned()))?;
            let annotation = &mut pod["metadata"]["annotations"]["ml.example.com/template"];
            let (_, fingerprint) = annotation.as_str().and_then(|text| text.split_once('-')).unwrap_or_default();
            *annotation = json!(format!("0-{fingerprint}"));
            pod["spec"]["hostname"] = json!("as-it-was");
        }
        let before = world.children.clone();
        world.pass(30);
        world.settle()?;
        assert_eq!(world.children, before, "{spec}: they run on");
        happens(&mut world);
        world.settle()?;
        assert_eq!(world.job["spec"]["workers"], json!(world.pods().len()), "{spec}");
        for name in world.pods() {
            assert_eq!(world.child("Pod", name)?["spec"]["hostname"], name, "{spec}: all are made anew");
        }
        assert_eq!(world.status()?.restart_count, 0, "{spec}");
    }
    Ok(())
}
