//! The children of a job: Pods, the Service, volumes, GPUs, groups.

use crate::world::{World, parse};
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

fn made(spec: &str) -> Result<World, Error> {
    let mut world = World::of(spec)?;
    world.found.extend(["data", "ckpt"].map(claim));
    world.settle()?;
    Ok(world)
}

/// Jobs whose children are written down, besides the sample: what is around them, and which Pods.
const WRITTEN_DOWN: &[(&str, &[&str])] = &[
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

/// Pods of running jobs are returned as they were made, or the host would try to change what cannot change. So whatever
/// changes this file needs a new `FORM` in `fingerprint.rs`. To write it anew: `WRITE=1 cargo test -p training-job`.
#[test]
fn children_have_the_form_that_is_promised() -> Result<(), Error> {
    let mut sample = World::with(parse(&read(SAMPLE)?)?);
    sample.found.push(claim("training-data-pvc"));
    sample.settle()?;
    let mut text = written(&sample, &["mnist-training-worker-0", "mnist-training-worker-3"])?;
    for (spec, pods) in WRITTEN_DOWN {
        let mut world = World::of(spec)?;
        world.coscheduling = true;
        world.found.extend(["data", "ckpt"].map(claim));
        world.settle()?;
        text.push_str(&written(&world, pods)?);
    }
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(GOLDEN, &text).map_err(|error| Error::Test(error.to_string()))?;
    }
    assert_eq!(text, read(GOLDEN)?, "raise FORM in fingerprint.rs, then write the file anew");
    Ok(())
}

/// Everything but Pods, and these Pods, as they are given to the host.
fn written(world: &World, pods: &[&str]) -> Result<String, Error> {
    let mut text = String::new();
    for ((kind, name), child) in &world.children {
        if kind == "Pod" && !pods.contains(&name.as_str()) {
            continue;
        }
        let mut child = child.clone();
        if let Some(child) = child.as_object_mut() {
            child.remove("status");
        }
        if let Some(metadata) = child["metadata"].as_object_mut() {
            metadata.remove("uid");
        }
        let child = serde_saphyr::to_string(&child).map_err(|error| Error::Test(error.to_string()))?;
        text.push_str(&format!("---\n{child}"));
    }
    Ok(text)
}

#[test]
fn all_pods_come_with_the_service_that_names_them() -> Result<(), Error> {
    for workers in [1, 2, 4, 100] {
        let world = made(&format!("workers: {workers}"))?;
        let mut expected: Vec<_> = (0..workers).map(|index| format!("mnist-worker-{index}")).collect();
        expected.sort();
        assert_eq!(world.pods(), expected);
        let service = world.child("Service", "mnist")?;
        assert_eq!(service["spec"]["clusterIP"], "None");
        assert_eq!(service["spec"]["publishNotReadyAddresses"], true);
        for index in 0..workers {
            let pod = world.child("Pod", &format!("mnist-worker-{index}"))?;
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
    let world = made(
        "framework: tensorflow, workers: 1, parameterServers: 1, gpuPerWorker: 2, resources: {limits: {memory: 4Gi}}",
    )?;
    let spec = |pod: &str| world.child("Pod", pod).map(|pod| pod["spec"].clone());
    let (worker, server) = (spec("mnist-worker-0")?, spec("mnist-ps-0")?);
    let limits = |pod: &Value| pod["containers"][0]["resources"]["limits"].clone();
    assert_eq!(limits(&worker), json!({ "memory": "4Gi", "nvidia.com/gpu": "2" }));
    assert_eq!(limits(&server), json!({ "memory": "4Gi" }));
    let keys: Vec<_> = worker["tolerations"].as_array().into_iter().flatten().map(|t| t["key"].clone()).collect();
    assert_eq!(keys, ["nvidia.com/gpu", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]);
    assert_eq!(server.get("tolerations"), None, "what is not asked for is the API server's");
    Ok(())
}

#[test]
fn gpus_of_another_maker_have_another_name() -> Result<(), Error> {
    let world = made("workers: 1, gpuPerWorker: 1, gpuResource: amd.com/gpu")?;
    let pod = &world.child("Pod", "mnist-worker-0")?["spec"];
    assert_eq!(pod["containers"][0]["resources"]["limits"], json!({ "amd.com/gpu": "1" }));
    assert_eq!(pod["tolerations"][0], json!({ "key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule" }));
    Ok(())
}

/// A mount: name, path, path within the volume, whether it is read-only.
type Mount = (&'static str, &'static str, &'static str, bool);

/// More of the spec, and the mounts of claims and folders.
#[rustfmt::skip]
const MOUNTS: &[(&str, &[Mount])] = &[
    ("", &[]),
    ("dataVolume: {claimName: data}", &[("data", "/data", "", false)]),
    ("dataVolume: {claimName: data, readOnly: true}", &[("data", "/data", "", true)]),
    ("dataVolume: {claimName: data}, checkpointDir: /ckpt/a",
        &[("data", "/data", "", false), ("data", "/ckpt/a", "ckpt/a", false)]),
    ("dataVolume: {claimName: data}, checkpointDir: /data/a", &[("data", "/data", "", false)]),
    ("dataVolume: {claimName: data, readOnly: true}, checkpointDir: /data/a",
        &[("data", "/data", "", true), ("data", "/data/a", "a", false)]),
    ("dataVolume: {claimName: data}, checkpointVolume: {claimName: ckpt}",
        &[("data", "/data", "", false), ("checkpoints", "/checkpoints", "", false)]),
    ("dataVolume: {claimName: data}, checkpointVolume: {claimName: ckpt}, checkpointDir: /c/d",
        &[("data", "/data", "", false), ("checkpoints", "/c/d", "", false)]),
    ("checkpointDir: /c", &[("checkpoints", "/c", "", false)]),
];

#[test]
fn data_and_checkpoints_are_mounted_where_they_are_said_to_be() -> Result<(), Error> {
    for (spec, expected) in MOUNTS {
        let world = made(&format!("workers: 1, {spec}"))?;
        let pod = &world.child("Pod", "mnist-worker-0")?["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mounts = pod["containers"][0]["volumeMounts"].as_array().into_iter().flatten();
        let found: Vec<_> = mounts
            .map(|m| (text(&m["name"]), text(&m["mountPath"]), text(&m["subPath"]), m["readOnly"] == true))
            .filter(|(name, ..)| name != "shm")
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|(a, b, c, only)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned(), *only)).collect();
        assert_eq!(found, expected, "{spec}");
        for volume in pod["volumes"].as_array().into_iter().flatten() {
            let claim = volume.pointer("/persistentVolumeClaim/claimName").map(text);
            let name = text(&volume["name"]);
            let expected = match name.as_str() {
                "data" => Some("data".to_owned()),
                "checkpoints" if spec.contains("checkpointVolume") => Some("ckpt".to_owned()),
                _ => None,
            };
            assert_eq!(claim, expected, "{spec}: {name}");
        }
    }
    Ok(())
}

#[test]
fn shared_memory_is_there_and_as_big_as_it_is_said() -> Result<(), Error> {
    for (spec, size) in [("", Value::Null), (", shmSize: 8Gi", json!("8Gi"))] {
        let world = made(&format!("workers: 1{spec}"))?;
        let pod = &world.child("Pod", "mnist-worker-0")?["spec"];
        assert_eq!(pod["volumes"][0]["emptyDir"]["medium"], "Memory");
        assert_eq!(pod["volumes"][0]["emptyDir"]["sizeLimit"], size);
        assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/dev/shm");
    }
    Ok(())
}

#[test]
fn what_the_spec_says_of_the_pod_is_in_the_pod() -> Result<(), Error> {
    let world = made(
        "workers: 1, args: [--epochs, '3'], imagePullPolicy: Always, imagePullSecrets: [{name: registry}], \
         resources: {requests: {cpu: 500m}, limits: {memory: 1Gi}}, nodeSelector: {disk: ssd}, \
         tolerations: [{key: spot, operator: Exists, effect: NoSchedule}], topologyKey: topology.kubernetes.io/zone, \
         priorityClassName: high, serviceAccountName: trainer, terminationGracePeriodSeconds: 120, \
         securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 2000}",
    )?;
    let pod = &world.child("Pod", "mnist-worker-0")?["spec"];
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
