//! What a job waits for before it starts: no job is ever half created.

use crate::simulated_cluster::{ChildKey, SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::{Error, Verdict};
use serde_json::{Value, json};
use training_job::api::Phase;

fn object_in_ml(kind: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name, "namespace": "ml" }, "data": { "a": "1" } })
}

fn in_other_namespace(kind: &str, name: &str) -> Value {
    let mut object = object_in_ml(kind, name);
    object["metadata"]["namespace"] = json!("other");
    object
}

/// An object that a job needs for its start.
struct Precondition {
    /// The part of the spec that refers to it.
    spec: &'static str,
    kind: &'static str,
    name: &'static str,
    /// The reason of the conditions while it is missing.
    reason: &'static str,
}

const PRECONDITIONS: &[Precondition] = &[
    Precondition {
        spec: "dataVolume: {claimName: data}",
        kind: "PersistentVolumeClaim",
        name: "data",
        reason: "ClaimNotFound",
    },
    Precondition {
        spec: "checkpointVolume: {claimName: ckpt}",
        kind: "PersistentVolumeClaim",
        name: "ckpt",
        reason: "ClaimNotFound",
    },
    Precondition {
        spec: "configMaps: [{name: conf, mountPath: /conf}]",
        kind: "ConfigMap",
        name: "conf",
        reason: "ConfigMapNotFound",
    },
    Precondition {
        spec: "envFrom: [{configMapRef: {name: conf}}]",
        kind: "ConfigMap",
        name: "conf",
        reason: "ConfigMapNotFound",
    },
    Precondition {
        spec: "env: [{name: A, valueFrom: {configMapKeyRef: {name: conf, key: a}}}]",
        kind: "ConfigMap",
        name: "conf",
        reason: "ConfigMapNotFound",
    },
];

#[test]
fn a_job_waits_for_what_it_refers_to_and_then_starts() -> Result<(), Error> {
    for Precondition { spec, kind, name, reason } in PRECONDITIONS {
        let mut cluster = SimulatedCluster::new(&format!("workers: 2, hyperparameters: {{a: 1}}, {spec}"))?;
        cluster.other_objects.push(in_other_namespace(kind, name));
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.children.len(), 0, "{spec}: nothing is half created");
        assert_eq!(cluster.condition("Ready"), format!("False {reason}"), "{spec}");
        assert_eq!(cluster.condition("Running"), format!("False {reason}"), "{spec}");
        assert!(
            cluster.condition_message("Ready").contains(&format!("'{name}'")),
            "{}",
            cluster.condition_message("Ready")
        );
        assert_eq!((cluster.phase()?, cluster.status()?.start_time), (Some(Phase::Pending), None), "{spec}");
        assert!(matches!(cluster.verdict, Verdict::Wait(_)), "{spec}");
        cluster.other_objects.push(object_in_ml(kind, name));
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), 2, "{spec}");
        assert_eq!(cluster.verdict, Verdict::Done, "{spec}");
    }
    Ok(())
}

#[test]
fn a_running_job_goes_on_when_what_it_refers_to_is_deleted() -> Result<(), Error> {
    for Precondition { spec, kind, name, .. } in PRECONDITIONS {
        let mut cluster = SimulatedCluster::new(&format!("workers: 2, {spec}"))?;
        cluster.other_objects.push(object_in_ml(kind, name));
        cluster.reconcile_until_stable()?;
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
        let before = cluster.children.clone();
        cluster.other_objects.clear();
        cluster.reconcile_until_stable()?;
        assert_eq!((cluster.phase()?, &cluster.children), (Some(Phase::Running), &before), "{spec}");
    }
    Ok(())
}

#[test]
fn a_changed_spec_with_an_unmet_precondition_keeps_the_running_pods() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    let before = cluster.children.clone();
    cluster.job["spec"]["dataVolume"] = json!({ "claimName": "data" });
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.children, before);
    assert_eq!(cluster.condition("Ready"), "False ClaimNotFound");
    assert_eq!(cluster.phase()?, Some(Phase::Running));
    cluster.other_objects.push(object_in_ml("PersistentVolumeClaim", "data"));
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Restarting"), "True SpecChanged");
    assert_eq!(cluster.pod_names().len(), 2);
    Ok(())
}

#[test]
fn the_status_of_a_job_that_waits_says_what_its_pods_do() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    cluster.job["spec"]["dataVolume"] = json!({ "claimName": "data" });
    cluster.reconcile_until_stable()?;
    for (pod, phase, active) in [("mnist-worker-0", Phase::Running, 1), ("mnist-worker-1", Phase::Pending, 0)] {
        cluster.fail_pod(pod, 1)?;
        cluster.reconcile_until_stable()?;
        let status = cluster.status()?;
        assert_eq!((cluster.condition("Ready").as_str(), status.phase), ("False ClaimNotFound", Some(phase)), "{pod}");
        assert_eq!((status.active, status.failed), (active, 2 - active), "{pod}");
    }
    assert_eq!(cluster.condition("Running"), "False ClaimNotFound");
    Ok(())
}

#[test]
fn the_deadline_counts_while_a_changed_spec_waits() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {activeDeadlineSeconds: 100}")?;
    cluster.job["spec"]["dataVolume"] = json!({ "claimName": "data" });
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.condition("Ready").as_str(), cluster.requeue_after), ("False ClaimNotFound", Some(30)));
    cluster.advance_clock(100);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Failed"), "True DeadlineExceeded");
    Ok(())
}

/// Names of ConfigMaps may be as long as those of their copies.
#[test]
fn config_maps_with_long_names_are_copied() -> Result<(), Error> {
    let names = [format!("{}-a", "x".repeat(240)), format!("{}-b", "x".repeat(240))];
    let mut cluster = SimulatedCluster::new("workers: 1")?;
    let mounts = names.each_ref().map(|name| json!({ "name": name, "mountPath": format!("/{}", &name[241..]) }));
    cluster.job["spec"]["configMaps"] = json!(mounts);
    cluster.other_objects.extend(names.each_ref().map(|name| object_in_ml("ConfigMap", name)));
    cluster.reconcile_until_stable()?;
    let copies = cluster.child_names("ConfigMap");
    assert_eq!((copies.len(), copies.iter().all(|name| name.len() <= 253)), (2, true), "{copies:?}");
    let volumes = &cluster.child("Pod", "mnist-worker-0")?["spec"]["volumes"];
    let mounted: Vec<_> =
        volumes.as_array().into_iter().flatten().filter_map(|it| it["configMap"]["name"].as_str()).collect();
    assert!(mounted.len() == 2 && mounted.iter().all(|name| copies.contains(name)), "{mounted:?} {copies:?}");
    Ok(())
}

#[test]
fn config_maps_are_copied_at_the_start_and_later_edits_change_nothing() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new(
        "workers: 2, configMaps: [{name: conf, mountPath: /conf}], envFrom: [{configMapRef: {name: conf}}]",
    )?;
    cluster.other_objects.push(object_in_ml("ConfigMap", "conf"));
    cluster.reconcile_until_stable()?;
    let snapshot = cluster.child("ConfigMap", "mnist-snapshot-conf")?;
    assert_eq!((&snapshot["data"], &snapshot["immutable"]), (&json!({ "a": "1" }), &json!(true)));
    let pod = &cluster.child("Pod", "mnist-worker-0")?["spec"];
    assert_eq!(pod["volumes"][1]["configMap"]["name"], "mnist-snapshot-conf");
    assert_eq!(pod["containers"][0]["envFrom"][0]["configMapRef"]["name"], "mnist-snapshot-conf");

    let before = cluster.children.clone();
    cluster.other_objects[0]["data"]["a"] = json!("2");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.children, before);
    cluster.job["spec"]["runPolicy"] = json!({ "suspend": true });
    cluster.reconcile_until_stable()?;
    cluster.job["spec"]["runPolicy"] = json!({});
    cluster.reconcile_until_stable()?;
    let snapshot = cluster.child("ConfigMap", "mnist-snapshot-conf")?;
    assert_eq!(snapshot["data"], json!({ "a": "2" }), "it is copied again when the job is resumed");
    Ok(())
}

#[test]
fn optional_config_maps_are_not_waited_for() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 1, envFrom: [{configMapRef: {name: conf, optional: true}}]")?;
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.pod_names().len(), cluster.child_names("ConfigMap").len()), (1, 0));
    Ok(())
}

#[test]
fn config_maps_that_are_too_large_to_copy_are_refused() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 1, configMaps: [{name: conf, mountPath: /conf}]")?;
    let mut big = object_in_ml("ConfigMap", "conf");
    big["data"]["a"] = json!("x".repeat(300 << 10));
    cluster.other_objects.push(big);
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.children.len(), cluster.condition("Ready").as_str()), (0, "False ConfigMapsTooLarge"));
    Ok(())
}

/// A gang scheduler, and the API version of its PodGroup.
const GANG_SCHEDULERS: &[(&str, &str)] =
    &[("volcano", "scheduling.volcano.sh/v1beta1"), ("scheduler-plugins", "scheduling.x-k8s.io/v1alpha1")];

#[test]
fn a_gang_scheduler_that_is_not_installed_is_named() -> Result<(), Error> {
    for (scheduler, api_version) in GANG_SCHEDULERS {
        let mut cluster = SimulatedCluster::new(&format!("workers: 2, gangScheduling: {{scheduler: {scheduler}}}"))?;
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.children.len(), 0, "{scheduler}");
        assert_eq!(cluster.condition("Ready"), "False GangSchedulerNotInstalled", "{scheduler}");
        assert!(cluster.condition_message("Ready").contains(api_version), "{scheduler}");
        (cluster.volcano_is_installed, cluster.scheduler_plugins_is_installed) = (true, true);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.child_names("PodGroup"), ["mnist"], "{scheduler}");
        assert_eq!(cluster.child("PodGroup", "mnist")?["apiVersion"], *api_version);
    }
    Ok(())
}

#[test]
fn volcano_admits_a_pod_group_before_its_pods_are_created() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new(
        "workers: 4, gpuPerWorker: 2, resources: {requests: {cpu: 500m}, limits: {cpu: '1', memory: 1Gi}}, \
         priorityClassName: high, gangScheduling: {scheduler: volcano, queue: research}",
    )?;
    cluster.volcano_is_installed = true;
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.pod_names().len(), cluster.child_names("Service").len()), (0, 1));
    assert_eq!(cluster.condition("Ready"), "False WaitingForPodGroup");
    assert_eq!(
        cluster.child("PodGroup", "mnist")?["spec"],
        json!({
            "minMember": 4, "queue": "research", "priorityClassName": "high",
            "minResources": { "cpu": "2000m", "memory": "4Gi", "nvidia.com/gpu": "8" },
        })
    );
    set_pod_group_phase(&mut cluster, "Inqueue")?;
    cluster.writes_left = Some(2);
    cluster.reconcile()?;
    cluster.writes_left = None;
    assert_eq!(cluster.pod_names().len(), 2, "the host has stopped");
    set_pod_group_phase(&mut cluster, "Pending")?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 4, "a group of which some Pods exist is admitted");
    let pod = cluster.child("Pod", "mnist-worker-3")?;
    assert_eq!(pod["spec"]["schedulerName"], "volcano");
    assert_eq!(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "mnist");
    cluster.set_phase_of_all_pods("Succeeded");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.child_names("PodGroup").len(), 0, "a finished job takes no place in a queue");
    Ok(())
}

fn set_pod_group_phase(cluster: &mut SimulatedCluster, phase: &str) -> Result<(), Error> {
    cluster.child_mut("PodGroup", "mnist")?["status"] = json!({ "phase": phase });
    Ok(())
}

#[test]
fn scheduler_plugins_find_pods_by_their_label() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new(
        "framework: tensorflow, workers: 3, parameterServers: 2, gpuPerWorker: 1, resources: {requests: {cpu: 1}}, \
         gangScheduling: {scheduler: scheduler-plugins, scheduleTimeoutSeconds: 60, schedulerName: other}",
    )?;
    cluster.scheduler_plugins_is_installed = true;
    cluster.reconcile_until_stable()?;
    assert_eq!(
        cluster.child("PodGroup", "mnist")?["spec"],
        json!({
            "minMember": 5, "scheduleTimeoutSeconds": 60, "minResources": { "cpu": "5", "nvidia.com/gpu": "3" },
        })
    );
    let pod = cluster.child("Pod", "mnist-ps-1")?;
    assert_eq!(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "mnist");
    assert_eq!(pod["spec"]["schedulerName"], "other");
    Ok(())
}

#[test]
fn the_pod_group_of_an_elastic_job_needs_its_min_workers() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new(
        "workers: 4, elastic: {minWorkers: 2, maxWorkers: 8}, gangScheduling: {scheduler: scheduler-plugins}",
    )?;
    cluster.scheduler_plugins_is_installed = true;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.child("PodGroup", "mnist")?["spec"], json!({ "minMember": 2 }));
    Ok(())
}

/// Somebody else may have one of these names: Pods would read what is not theirs, would not find each other, or would be of another gang.
#[test]
fn pods_come_once_all_is_there_to_which_they_refer() -> Result<(), Error> {
    let volcano = "workers: 2, gangScheduling: {scheduler: volcano}";
    let coscheduling = "workers: 2, gangScheduling: {scheduler: scheduler-plugins}";
    let mpi = "framework: mpi, workers: 2, mpi: {sshSecretName: keys}";
    let cases = [
        ("workers: 2", "Service", "mnist"),
        ("workers: 2, hyperparameters: {a: 1}", "ConfigMap", "mnist-hyperparameters"),
        ("workers: 2, configMaps: [{name: x, mountPath: /x}]", "ConfigMap", "mnist-snapshot-x"),
        (mpi, "ConfigMap", "mnist-hostfile"),
        (volcano, "PodGroup", "mnist"),
        (coscheduling, "PodGroup", "mnist"),
    ];
    for (spec, kind, name) in cases {
        let mut cluster = SimulatedCluster::new(spec)?;
        (cluster.volcano_is_installed, cluster.scheduler_plugins_is_installed) = (true, true);
        let source =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" }, "data": { "a": "1" } });
        // Somebody else's group has been let in.
        let group = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": { "name": "mnist" },
            "status": { "phase": "Running" },
        });
        cluster.other_objects.extend([source, group]);
        let taken = ChildKey::new(kind, name);
        cluster.taken_names.insert(taken.clone());
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names(), [""; 0], "{spec}: Pods were made although somebody else has {kind} '{name}'");
        cluster.taken_names.clear();
        cluster.other_objects.retain(|object| object["kind"] != "PodGroup");
        run(&mut cluster)?;
        assert_eq!(workers(&cluster), ["mnist-worker-0", "mnist-worker-1"], "{spec}");
        // Those that are there stay where the name is taken later, and new ones wait for it.
        cluster.children.remove(&taken);
        cluster.taken_names.insert(taken);
        let before = cluster.pod_uid("mnist-worker-1")?.to_owned();
        cluster.reconcile_until_stable()?;
        assert_eq!((cluster.pod_uid("mnist-worker-1")?, cluster.phase()?), (&*before, Some(Phase::Running)), "{spec}");
        cluster.children.remove(&ChildKey::new("Pod", "mnist-worker-1"));
        cluster.advance_clock(60);
        cluster.reconcile_until_stable()?;
        assert!(cluster.pod_uid("mnist-worker-1").is_err(), "{spec}: a Pod was made although the name is taken");
        cluster.taken_names.clear();
        cluster.advance_clock(60);
        run(&mut cluster)?;
        assert_eq!(workers(&cluster), ["mnist-worker-0", "mnist-worker-1"], "{spec}");
    }
    Ok(())
}

/// Lets the group of the job in, if it has one, and all its Pods run: a launcher comes when its workers do.
fn run(cluster: &mut SimulatedCluster) -> Result<(), Error> {
    cluster.reconcile_until_stable()?;
    if let Ok(group) = cluster.child_mut("PodGroup", "mnist") {
        group["status"] = json!({ "phase": "Inqueue" });
    }
    cluster.run_all_pods()?;
    cluster.run_all_pods()
}

/// The Pods of the workers.
fn workers(cluster: &SimulatedCluster) -> Vec<&str> {
    cluster.pod_names().into_iter().filter(|pod| pod.contains("worker")).collect()
}
