//! The desired children of a job: Pods, the Service, volumes, GPUs, PodGroups.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster, parse};
use pilothouse_sdk::Error;
use serde_json::{Value, json};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/samples/trainingjob.yaml");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/training_job/children.yaml");

fn read(path: &str) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| Error::Test(format!("{path}: {error}")))
}

fn claim(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name } })
}

/// A cluster with the children of a job, and the claims that the job may refer to.
fn with_children(spec: &str) -> Result<SimulatedCluster, Error> {
    let mut cluster = SimulatedCluster::new(spec)?;
    cluster.other_objects.extend(["data", "ckpt"].map(claim));
    cluster.reconcile_until_stable()?;
    Ok(cluster)
}

/// Jobs whose children are in the golden file besides those of the sample: more of their specs, and the names of the Pods.
const GOLDEN_JOBS: &[(&str, &[&str])] = &[
    (
        "framework: tensorflow, workers: 2, parameterServers: 1, gpuPerWorker: 1, port: 3000, \
         gangScheduling: {scheduler: scheduler-plugins}, checkpointVolume: {claimName: ckpt}",
        &["mnist-worker-1", "mnist-ps-0"],
    ),
    (
        "workers: 2, elastic: {minWorkers: 1, maxWorkers: 4, maxRestarts: 3, rendezvousConf: {join_timeout: '60'}}, \
         args: [--epochs, '3'], env: [{name: A, value: ''}, {name: B, value: $(PET_RDZV_ID)}], \
         envFrom: [{prefix: X_, secretRef: {name: token}}], imagePullPolicy: Always, shmSize: 8Gi, \
         imagePullSecrets: [{name: registry}], resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}, \
         nodeSelector: {disk: ssd}, tolerations: [{key: spot, operator: Exists, effect: NoSchedule}], \
         topologyKey: topology.kubernetes.io/zone, priorityClassName: high, serviceAccountName: trainer, \
         terminationGracePeriodSeconds: 120, securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 2000}, \
         dataVolume: {claimName: data, readOnly: true}, checkpointDir: /data/a, runPolicy: {restartPolicy: Always}",
        &["mnist-worker-0"],
    ),
];

/// What Pods are made of is seen in reviews. To write the file: `WRITE=1 cargo test --workspace --test training_job`.
#[test]
fn children_are_those_of_the_golden_file() -> Result<(), Error> {
    let mut sample = SimulatedCluster::with_job(parse(&read(SAMPLE)?)?);
    sample.other_objects.push(claim("training-data-pvc"));
    sample.reconcile_until_stable()?;
    let mut text = yaml(&sample, &["mnist-training-worker-0", "mnist-training-worker-3"])?;
    for (spec, pods) in GOLDEN_JOBS {
        let mut cluster = SimulatedCluster::new(spec)?;
        cluster.scheduler_plugins_is_installed = true;
        cluster.other_objects.extend(["data", "ckpt"].map(claim));
        cluster.reconcile_until_stable()?;
        text.push_str(&yaml(&cluster, pods)?);
    }
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(GOLDEN, &text).map_err(|error| Error::Test(error.to_string()))?;
    }
    assert_eq!(text, read(GOLDEN)?, "if that is meant, write the file again");
    Ok(())
}

/// All children as the plugin returned them. Of the Pods, only those with these names.
fn yaml(cluster: &SimulatedCluster, pods: &[&str]) -> Result<String, Error> {
    let mut text = String::new();
    for (key, child) in &cluster.children {
        if key.kind == "Pod" && !pods.contains(&key.name.as_str()) {
            continue;
        }
        let mut child = child.clone();
        if let Some(child) = child.as_object_mut() {
            child.remove("status");
        }
        if let Some(metadata) = child["metadata"].as_object_mut() {
            metadata.retain(|field, _| !matches!(field.as_str(), "uid" | "creationTimestamp"));
        }
        let child = serde_saphyr::to_string(&child).map_err(|error| Error::Test(error.to_string()))?;
        text.push_str(&format!("---\n{child}"));
    }
    Ok(text)
}

#[test]
fn every_pod_has_a_host_name_through_the_service() -> Result<(), Error> {
    for workers in [1, 2, 4, 100] {
        let cluster = with_children(&format!("workers: {workers}"))?;
        let mut expected: Vec<_> = (0..workers).map(|index| format!("mnist-worker-{index}")).collect();
        expected.sort();
        assert_eq!(cluster.pod_names(), expected);
        let service = cluster.child("Service", "mnist")?;
        assert_eq!(service["spec"]["clusterIP"], "None");
        assert_eq!(service["spec"]["publishNotReadyAddresses"], true);
        for index in 0..workers {
            let pod = cluster.child("Pod", &format!("mnist-worker-{index}"))?;
            assert_eq!(pod["spec"]["hostname"], format!("mnist-worker-{index}"));
            assert_eq!(pod["spec"]["subdomain"], "mnist");
            let labels = &pod["metadata"]["labels"];
            let selector = service["spec"]["selector"].as_object();
            assert!(selector.is_some_and(|all| all.iter().all(|(label, value)| labels[label] == *value)));
            assert_eq!(labels["ml.example.com/replica-index"], index.to_string());
            assert_eq!(labels["batch.kubernetes.io/job-completion-index"], index.to_string());
        }
    }
    Ok(())
}

#[test]
fn workers_have_gpus_and_parameter_servers_have_none() -> Result<(), Error> {
    let cluster = with_children(
        "framework: tensorflow, workers: 1, parameterServers: 1, gpuPerWorker: 2, resources: {limits: {memory: 4Gi}}",
    )?;
    let spec = |pod: &str| cluster.child("Pod", pod).map(|pod| pod["spec"].clone());
    let (worker, server) = (spec("mnist-worker-0")?, spec("mnist-ps-0")?);
    let limits = |pod: &Value| pod["containers"][0]["resources"]["limits"].clone();
    assert_eq!(limits(&worker), json!({ "memory": "4Gi", "nvidia.com/gpu": "2" }));
    assert_eq!(limits(&server), json!({ "memory": "4Gi" }));
    let keys: Vec<_> = worker["tolerations"].as_array().into_iter().flatten().map(|t| t["key"].clone()).collect();
    assert_eq!(keys, ["nvidia.com/gpu", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]);
    assert_eq!(server.get("tolerations"), None, "the API server fills in its own");
    Ok(())
}

#[test]
fn the_resource_name_of_gpus_can_be_given() -> Result<(), Error> {
    let cluster = with_children("workers: 1, gpuPerWorker: 1, gpuResource: amd.com/gpu")?;
    let pod = &cluster.child("Pod", "mnist-worker-0")?["spec"];
    assert_eq!(pod["containers"][0]["resources"]["limits"], json!({ "amd.com/gpu": "1" }));
    assert_eq!(pod["tolerations"][0], json!({ "key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule" }));
    Ok(())
}

/// More of the spec, and the mounts of claims and directories as [`mount_text`] writes them.
#[rustfmt::skip]
const MOUNTS: &[(&str, &[&str])] = &[
    ("", &[]),
    ("dataVolume: {claimName: data}", &["data at /data"]),
    ("dataVolume: {claimName: data, readOnly: true}", &["data at /data, read-only"]),
    ("dataVolume: {claimName: data}, checkpointDir: /ckpt/a", &["data at /data", "ckpt/a of data at /ckpt/a"]),
    ("dataVolume: {claimName: data}, checkpointDir: /data/a", &["data at /data"]),
    ("dataVolume: {claimName: data, readOnly: true}, checkpointDir: /data/a",
        &["data at /data, read-only", "a of data at /data/a"]),
    ("dataVolume: {claimName: data}, checkpointVolume: {claimName: ckpt}",
        &["data at /data", "checkpoints at /checkpoints"]),
    ("dataVolume: {claimName: data}, checkpointVolume: {claimName: ckpt}, checkpointDir: /c/d",
        &["data at /data", "checkpoints at /c/d"]),
    ("checkpointDir: /c", &["checkpoints at /c"]),
];

/// A mount in words: `PATH of VOLUME at MOUNT_PATH, read-only`.
fn mount_text(mount: &Value) -> String {
    let text = |field: &str| mount[field].as_str().unwrap_or_default();
    let sub_path = mount["subPath"].as_str().map(|path| format!("{path} of ")).unwrap_or_default();
    let read_only = if mount["readOnly"] == true { ", read-only" } else { "" };
    format!("{sub_path}{} at {}{read_only}", text("name"), text("mountPath"))
}

#[test]
fn data_and_checkpoints_are_mounted_as_the_spec_says() -> Result<(), Error> {
    for (spec, expected) in MOUNTS {
        let cluster = with_children(&format!("workers: 1, {spec}"))?;
        let pod = &cluster.child("Pod", "mnist-worker-0")?["spec"];
        let mounts = pod["containers"][0]["volumeMounts"].as_array().into_iter().flatten();
        let mounts: Vec<_> = mounts.filter(|mount| mount["name"] != "shm").map(mount_text).collect();
        assert_eq!(mounts, *expected, "{spec}");
        for volume in pod["volumes"].as_array().into_iter().flatten() {
            let claim = volume.pointer("/persistentVolumeClaim/claimName").and_then(Value::as_str);
            let expected = match volume["name"].as_str() {
                Some("data") => Some("data"),
                Some("checkpoints") if spec.contains("checkpointVolume") => Some("ckpt"),
                _ => None,
            };
            assert_eq!(claim, expected, "{spec}: {volume}");
        }
    }
    Ok(())
}

#[test]
fn shared_memory_is_as_big_as_the_spec_says() -> Result<(), Error> {
    for (spec, size) in [("", Value::Null), (", shmSize: 8Gi", json!("8Gi"))] {
        let cluster = with_children(&format!("workers: 1{spec}"))?;
        let pod = &cluster.child("Pod", "mnist-worker-0")?["spec"];
        assert_eq!(pod["volumes"][0]["emptyDir"]["medium"], "Memory");
        assert_eq!(pod["volumes"][0]["emptyDir"]["sizeLimit"], size);
        assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/dev/shm");
    }
    Ok(())
}

#[test]
fn fields_of_the_spec_reach_the_pod() -> Result<(), Error> {
    let cluster = with_children(
        "workers: 1, args: [--epochs, '3'], imagePullPolicy: Always, imagePullSecrets: [{name: registry}], \
         resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}, nodeSelector: {disk: ssd}, \
         tolerations: [{key: spot, operator: Exists, effect: NoSchedule}], topologyKey: topology.kubernetes.io/zone, \
         priorityClassName: high, serviceAccountName: trainer, terminationGracePeriodSeconds: 120, \
         securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 2000}",
    )?;
    let pod = &cluster.child("Pod", "mnist-worker-0")?["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["args"], json!(["--epochs", "3"]));
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["resources"], json!({ "requests": { "cpu": "500m" }, "limits": { "memory": "1Gi" } }));
    assert_eq!(
        container["securityContext"],
        json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
    );
    assert_eq!(
        pod["securityContext"],
        json!({ "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 2000, "seccompProfile": { "type": "RuntimeDefault" } })
    );
    assert_eq!(pod["imagePullSecrets"], json!([{ "name": "registry" }]));
    assert_eq!(pod["nodeSelector"], json!({ "disk": "ssd" }));
    assert_eq!(pod["tolerations"].as_array().map(Vec::len), Some(3), "with the two that every Pod gets");
    assert_eq!(pod["priorityClassName"], "high");
    assert_eq!((&pod["serviceAccountName"], &pod["automountServiceAccountToken"]), (&json!("trainer"), &json!(true)));
    assert_eq!(pod["terminationGracePeriodSeconds"], 120);
    let preferred =
        "/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm/topologyKey";
    assert_eq!(pod.pointer(preferred), Some(&json!("topology.kubernetes.io/zone")));
    Ok(())
}

/// Nodes with GPUs are tainted. A parameter server keeps away from them, unless the spec leads it there.
#[test]
fn parameter_servers_tolerate_what_their_node_selector_leads_to() -> Result<(), Error> {
    for (node_selector, tolerates) in [("", false), (", nodeSelector: {pool: gpus}", true)] {
        let spec = format!("framework: tensorflow, workers: 1, parameterServers: 1, gpuPerWorker: 1{node_selector}");
        let cluster = with_children(&spec)?;
        let tolerations = &cluster.child("Pod", "mnist-ps-0")?["spec"]["tolerations"];
        let keys: Vec<_> = tolerations.as_array().into_iter().flatten().map(|it| it["key"].clone()).collect();
        assert_eq!(keys.contains(&json!("nvidia.com/gpu")), tolerates, "{node_selector}");
    }
    Ok(())
}

#[test]
fn a_pod_group_asks_for_what_its_roles_need() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new(
        "framework: tensorflow, workers: 3, parameterServers: 2, gpuPerWorker: 1, resources: {requests: {cpu: 1, memory: 1Gi}}, \
         roles: [{name: ps, resources: {requests: {cpu: 1, memory: 8Gi}}}, {name: chief}], \
         gangScheduling: {scheduler: scheduler-plugins}",
    )?;
    cluster.scheduler_plugins_is_installed = true;
    cluster.reconcile_until_stable()?;
    let spec = &cluster.child("PodGroup", "mnist")?["spec"];
    // Of memory, roles need different amounts.
    assert_eq!(*spec, json!({ "minMember": 6, "minResources": { "cpu": "6", "nvidia.com/gpu": "3" } }));
    Ok(())
}
