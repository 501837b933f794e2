//! What a job waits for before it starts: no job is ever half made.

use crate::world::World;
use pilothouse_sdk::{Error, Verdict};
use serde_json::{Value, json};
use training_job::api::Phase;

fn named(kind: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name, "namespace": "ml" }, "data": { "a": "1" } })
}

fn elsewhere(kind: &str, name: &str) -> Value {
    let mut object = named(kind, name);
    object["metadata"]["namespace"] = json!("other");
    object
}

/// More of the spec, what is missing, and the reason of the wait.
#[rustfmt::skip]
const MISSING: &[(&str, &str, &str, &str)] = &[
    ("dataVolume: {claimName: data}", "PersistentVolumeClaim", "data", "ClaimNotFound"),
    ("checkpointVolume: {claimName: ckpt}", "PersistentVolumeClaim", "ckpt", "ClaimNotFound"),
    ("configMaps: [{name: conf, mountPath: /conf}]", "ConfigMap", "conf", "ConfigMapNotFound"),
    ("envFrom: [{configMapRef: {name: conf}}]", "ConfigMap", "conf", "ConfigMapNotFound"),
    ("env: [{name: A, valueFrom: {configMapKeyRef: {name: conf, key: a}}}]", "ConfigMap", "conf", "ConfigMapNotFound"),
];

#[test]
fn a_job_waits_for_what_it_refers_to_and_then_starts() -> Result<(), Error> {
    for (spec, kind, name, reason) in MISSING {
        let mut world = World::of(&format!("workers: 2, hyperparameters: {{a: 1}}, {spec}"))?;
        world.found.push(elsewhere(kind, name));
        world.settle()?;
        assert_eq!(world.children.len(), 0, "{spec}: nothing is half made");
        assert_eq!(world.condition("Ready")?, format!("False {reason}"), "{spec}");
        assert_eq!(world.condition("Running")?, format!("False {reason}"), "{spec}");
        assert!(world.message("Ready")?.contains(&format!("'{name}'")), "{}", world.message("Ready")?);
        assert_eq!((world.phase()?, world.status()?.start_time), (Some(Phase::Pending), None), "{spec}");
        assert!(matches!(world.verdict, Verdict::Wait(_)), "{spec}");
        world.found.push(named(kind, name));
        world.settle()?;
        assert_eq!(world.pods().len(), 2, "{spec}");
        assert_eq!(world.verdict, Verdict::Done, "{spec}");
    }
    Ok(())
}

#[test]
fn a_running_job_does_not_mind_when_what_it_refers_to_goes() -> Result<(), Error> {
    for (spec, kind, name, _) in MISSING {
        let mut world = World::of(&format!("workers: 2, {spec}"))?;
        world.found.push(named(kind, name));
        world.settle()?;
        world.all("Running");
        world.settle()?;
        let before = world.children.clone();
        world.found.clear();
        world.settle()?;
        assert_eq!((world.phase()?, &world.children), (Some(Phase::Running), &before), "{spec}");
    }
    Ok(())
}

#[test]
fn a_change_that_cannot_start_leaves_what_runs() -> Result<(), Error> {
    let mut world = World::running("workers: 2")?;
    let before = world.children.clone();
    world.job["spec"]["dataVolume"] = json!({ "claimName": "data" });
    world.settle()?;
    assert_eq!(world.children, before);
    assert_eq!(world.condition("Ready")?, "False ClaimNotFound");
    assert_eq!(world.phase()?, Some(Phase::Running));
    world.found.push(named("PersistentVolumeClaim", "data"));
    world.settle()?;
    assert_eq!(world.condition("Restarting")?, "True SpecChanged");
    assert_eq!(world.pods().len(), 2);
    Ok(())
}

#[test]
fn a_deadline_holds_also_while_a_change_waits() -> Result<(), Error> {
    let mut world = World::running("workers: 2, runPolicy: {activeDeadlineSeconds: 100}")?;
    world.job["spec"]["dataVolume"] = json!({ "claimName": "data" });
    world.settle()?;
    assert_eq!((world.condition("Ready")?.as_str(), world.requeue), ("False ClaimNotFound", Some(30)));
    world.pass(100);
    world.settle()?;
    assert_eq!(world.condition("Failed")?, "True DeadlineExceeded");
    Ok(())
}

#[test]
fn config_maps_are_copied_at_the_start_and_later_edits_do_not_disturb() -> Result<(), Error> {
    let mut world =
        World::of("workers: 2, configMaps: [{name: conf, mountPath: /conf}], envFrom: [{configMapRef: {name: conf}}]")?;
    world.found.push(named("ConfigMap", "conf"));
    world.settle()?;
    let snapshot = world.child("ConfigMap", "mnist-snapshot-conf")?;
    assert_eq!((&snapshot["data"], &snapshot["immutable"]), (&json!({ "a": "1" }), &json!(true)));
    let pod = &world.child("Pod", "mnist-worker-0")?["spec"];
    assert_eq!(pod["volumes"][1]["configMap"]["name"], "mnist-snapshot-conf");
    assert_eq!(pod["containers"][0]["envFrom"][0]["configMapRef"]["name"], "mnist-snapshot-conf");

    let before = world.children.clone();
    world.found[0]["data"]["a"] = json!("2");
    world.settle()?;
    assert_eq!(world.children, before);
    world.job["spec"]["runPolicy"] = json!({ "suspend": true });
    world.settle()?;
    world.job["spec"]["runPolicy"] = json!({});
    world.settle()?;
    let snapshot = world.child("ConfigMap", "mnist-snapshot-conf")?;
    assert_eq!(snapshot["data"], json!({ "a": "2" }), "it is copied anew when the job goes on");
    Ok(())
}

#[test]
fn optional_config_maps_are_not_waited_for() -> Result<(), Error> {
    let mut world = World::of("workers: 1, envFrom: [{configMapRef: {name: conf, optional: true}}]")?;
    world.settle()?;
    assert_eq!((world.pods().len(), world.names("ConfigMap").len()), (1, 0));
    Ok(())
}

#[test]
fn config_maps_too_big_to_copy_are_refused() -> Result<(), Error> {
    let mut world = World::of("workers: 1, configMaps: [{name: conf, mountPath: /conf}]")?;
    let mut big = named("ConfigMap", "conf");
    big["data"]["a"] = json!("x".repeat(300 << 10));
    world.found.push(big);
    world.settle()?;
    assert_eq!((world.children.len(), world.condition("Ready")?.as_str()), (0, "False ConfigMapsTooLarge"));
    Ok(())
}

/// The scheduler, and the kind and a field of its group.
const GANGS: &[(&str, &str, &str)] = &[
    ("volcano", "scheduling.volcano.sh/v1beta1", "schedulerName: volcano"),
    ("scheduler-plugins", "scheduling.x-k8s.io/v1alpha1", "schedulerName: scheduler-plugins-scheduler"),
];

#[test]
fn a_scheduler_that_is_not_installed_is_named() -> Result<(), Error> {
    for (scheduler, kind, _) in GANGS {
        let mut world = World::of(&format!("workers: 2, gangScheduling: {{scheduler: {scheduler}}}"))?;
        world.settle()?;
        assert_eq!(world.children.len(), 0, "{scheduler}");
        assert_eq!(world.condition("Ready")?, "False GangSchedulerNotInstalled", "{scheduler}");
        assert!(world.message("Ready")?.contains(kind), "{scheduler}");
        (world.volcano, world.coscheduling) = (true, true);
        world.settle()?;
        assert_eq!(world.names("PodGroup"), ["mnist"], "{scheduler}");
        assert_eq!(world.child("PodGroup", "mnist")?["apiVersion"], *kind);
    }
    Ok(())
}

#[test]
fn volcano_lets_a_group_in_before_its_pods_are_made() -> Result<(), Error> {
    let mut world = World::of(
        "workers: 4, gpuPerWorker: 2, resources: {requests: {cpu: 500m}, limits: {cpu: '1', memory: 1Gi}}, \
         priorityClassName: high, gangScheduling: {scheduler: volcano, queue: research}",
    )?;
    world.volcano = true;
    world.settle()?;
    assert_eq!((world.pods().len(), world.names("Service").len()), (0, 1));
    assert_eq!(world.condition("Ready")?, "False WaitingForPodGroup");
    assert_eq!(
        world.child("PodGroup", "mnist")?["spec"],
        json!({
            "minMember": 4, "queue": "research", "priorityClassName": "high",
            "minResources": { "cpu": "2000m", "memory": "4Gi", "nvidia.com/gpu": "8" },
        })
    );
    admit(&mut world, "Inqueue")?;
    world.writes_left = Some(2);
    world.reconcile()?;
    world.writes_left = None;
    assert_eq!(world.pods().len(), 2, "the host stopped");
    admit(&mut world, "Pending")?;
    world.settle()?;
    assert_eq!(world.pods().len(), 4, "some are in, so all are");
    let pod = world.child("Pod", "mnist-worker-3")?;
    assert_eq!(pod["spec"]["schedulerName"], "volcano");
    assert_eq!(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "mnist");
    world.all("Succeeded");
    world.settle()?;
    assert_eq!(world.names("PodGroup").len(), 0, "a job that has ended takes no place in a queue");
    Ok(())
}

/// Says how the scheduler has taken the group.
fn admit(world: &mut World, phase: &str) -> Result<(), Error> {
    let group = world.children.get_mut(&("PodGroup".to_owned(), "mnist".to_owned()));
    group.ok_or_else(|| Error::Test("no group".to_owned()))?["status"] = json!({ "phase": phase });
    Ok(())
}

#[test]
fn the_scheduler_plugins_take_pods_by_their_label() -> Result<(), Error> {
    let mut world = World::of(
        "framework: tensorflow, workers: 3, parameterServers: 2, gpuPerWorker: 1, resources: {requests: {cpu: 1}}, \
         gangScheduling: {scheduler: scheduler-plugins, scheduleTimeoutSeconds: 60, schedulerName: other}",
    )?;
    world.coscheduling = true;
    world.settle()?;
    assert_eq!(
        world.child("PodGroup", "mnist")?["spec"],
        json!({
            "minMember": 5, "scheduleTimeoutSeconds": 60, "minResources": { "cpu": "5", "nvidia.com/gpu": "3" },
        })
    );
    let pod = world.child("Pod", "mnist-ps-1")?;
    assert_eq!(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "mnist");
    assert_eq!(pod["spec"]["schedulerName"], "other");
    Ok(())
}

#[test]
fn an_elastic_group_starts_with_its_fewest() -> Result<(), Error> {
    let mut world = World::of(
        "workers: 4, elastic: {minWorkers: 2, maxWorkers: 8}, gangScheduling: {scheduler: scheduler-plugins}",
    )?;
    world.coscheduling = true;
    world.settle()?;
    assert_eq!(world.child("PodGroup", "mnist")?["spec"], json!({ "minMember": 2 }));
    Ok(())
}
