//! The user's own fields of Pods: what they add, and what is refused.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::{Error, Verdict};
use serde_json::json;

#[test]
fn fields_of_the_template_are_merged_over_those_of_the_job() -> Result<(), Error> {
    let template = "{metadata: {labels: {team: vision}, annotations: {net: rdma0}}, spec: {\
                    hostNetwork: true, runtimeClassName: nvidia, \
                    initContainers: [{name: fetch, image: fetch}], \
                    resourceClaims: [{name: nic, resourceClaimTemplateName: rdma}], \
                    volumes: [{name: scratch, emptyDir: {}}, {name: shm, emptyDir: {sizeLimit: 64Gi}}], \
                    tolerations: [{key: spot, operator: Exists}], \
                    containers: [{name: sidecar, image: logs}, {name: pytorch, \
                      securityContext: {capabilities: {add: [IPC_LOCK]}}, \
                      resources: {claims: [{name: nic}]}, \
                      env: [{name: NCCL_DEBUG, value: INFO}], \
                      volumeMounts: [{name: scratch, mountPath: /scratch}]}]}}";
    let mut cluster = SimulatedCluster::new(&format!("workers: 2, gpuPerWorker: 1, podTemplate: {template}"))?;
    cluster.reconcile_until_stable()?;
    let pod = cluster.child("Pod", "mnist-worker-1")?;
    assert_eq!(pod["metadata"]["labels"]["team"], "vision");
    assert_eq!(pod["metadata"]["labels"]["ml.example.com/job-name"], "mnist", "the job's own stay");
    assert_eq!(pod["metadata"]["annotations"]["net"], "rdma0");
    let spec = &pod["spec"];
    assert_eq!((&spec["runtimeClassName"], &spec["dnsPolicy"]), (&json!("nvidia"), &json!("ClusterFirstWithHostNet")));
    assert_eq!(spec["hostname"], "mnist-worker-1");
    assert_eq!(spec["volumes"][0]["emptyDir"], json!({ "medium": "Memory", "sizeLimit": "64Gi" }));
    assert_eq!(spec["tolerations"].as_array().map(Vec::len), Some(4), "that of the GPU stays: {}", spec["tolerations"]);
    let trains = &spec["containers"][0];
    assert_eq!((&trains["name"], &trains["image"]), (&json!("pytorch"), &json!("image")));
    assert_eq!(trains["securityContext"]["capabilities"]["add"], json!(["IPC_LOCK"]));
    assert_eq!(trains["resources"], json!({ "limits": { "nvidia.com/gpu": "1" }, "claims": [{ "name": "nic" }] }));
    let variables: Vec<_> =
        trains["env"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
    assert!(variables.contains(&"NCCL_DEBUG") && variables.contains(&"RANK"), "{variables:?}");
    assert_eq!(spec["containers"][1]["name"], "sidecar");
    Ok(())
}

#[test]
fn a_role_may_have_fields_of_its_own() -> Result<(), Error> {
    let spec = "framework: tensorflow, workers: 1, parameterServers: 1, podTemplate: {spec: {runtimeClassName: a}}, \
                roles: [{name: ps, podTemplate: {spec: {runtimeClassName: b}}}]";
    let mut cluster = SimulatedCluster::new(spec)?;
    cluster.reconcile_until_stable()?;
    for (pod, expected) in [("mnist-worker-0", "a"), ("mnist-ps-0", "b")] {
        assert_eq!(cluster.child("Pod", pod)?["spec"]["runtimeClassName"], expected, "{pod}");
    }
    Ok(())
}

#[test]
fn a_role_may_have_an_image_a_command_resources_and_replicas_of_its_own() -> Result<(), Error> {
    let spec = "framework: tensorflow, workers: 2, parameterServers: 3, gpuPerWorker: 1, resources: {requests: {cpu: 1}}, \
                args: [--epochs, '3'], roles: [\
                {name: ps, image: servers, command: [serve], resources: {requests: {cpu: 4}}, gpus: 2}, \
                {name: chief, args: [--lead]}, {name: evaluator, image: eyes}]";
    let mut cluster = SimulatedCluster::new(spec)?;
    cluster.reconcile_until_stable()?;
    let python = json!(["python", "train.py"]);
    let (own, lead, none) = (json!(["--epochs", "3"]), json!(["--lead"]), json!(null));
    for (pod, image, command, args, cpu, gpus) in [
        ("mnist-worker-1", "image", &python, &own, "1", json!("1")),
        ("mnist-ps-2", "servers", &json!(["serve"]), &none, "4", json!("2")),
        ("mnist-chief-0", "image", &python, &lead, "1", none.clone()),
        ("mnist-evaluator-0", "eyes", &python, &own, "1", json!("1")),
    ] {
        let container = &cluster.child("Pod", pod)?["spec"]["containers"][0];
        assert_eq!(
            (&container["image"], &container["command"], &container["args"]),
            (&json!(image), command, args),
            "{pod}"
        );
        let cpus = container["resources"]["requests"]["cpu"].to_string();
        assert_eq!(cpus.trim_matches('"'), cpu, "{pod}");
        assert_eq!(container["resources"]["limits"]["nvidia.com/gpu"], gpus, "{pod}");
    }
    assert_eq!(cluster.pod_names().len(), 7, "two workers, three servers, a chief and an evaluator");
    Ok(())
}

/// The host would take a Pod with such a label for a mistake of the plugin.
#[test]
fn labels_and_annotations_that_are_no_texts_are_refused_and_named() -> Result<(), Error> {
    for (spec, field) in [
        ("podTemplate: {metadata: {labels: {team: 7}}}", "podTemplate.metadata.labels.team"),
        ("podTemplate: {metadata: {annotations: {a: {b: c}}}}", "podTemplate.metadata.annotations.a"),
        (
            "framework: tensorflow, roles: [{name: chief, podTemplate: {metadata: {labels: {a: true}}}}]",
            "roles[chief].podTemplate.metadata.labels.a",
        ),
    ] {
        let mut cluster = SimulatedCluster::new(&format!("workers: 1, {spec}"))?;
        cluster.reconcile_until_stable()?;
        let expected = format!("spec.{field} is not a text; put its value in quotes");
        assert_eq!(cluster.verdict, Verdict::Invalid(expected), "{spec}");
    }
    Ok(())
}

#[test]
fn what_would_break_the_job_is_refused_and_named() -> Result<(), Error> {
    for (template, field) in [
        ("metadata: {name: a}", "podTemplate.metadata.name"),
        ("metadata: {labels: {ml.example.com/job-name: a}}", "podTemplate.metadata.labels.ml.example.com/job-name"),
        ("metadata: {annotations: {pilothouse.dev/a: b}}", "podTemplate.metadata.annotations.pilothouse.dev/a"),
        ("spec: {restartPolicy: Always}", "podTemplate.spec.restartPolicy"),
        ("spec: {hostname: a}", "podTemplate.spec.hostname"),
        ("spec: {subdomain: a}", "podTemplate.spec.subdomain"),
        (
            "spec: {containers: [{name: pytorch, env: [{name: RANK}]}]}",
            "podTemplate.spec.containers[pytorch].env[RANK]",
        ),
        ("status: {}", "podTemplate.status"),
        (
            "metadata: {labels: {batch.kubernetes.io/job-completion-index: '7'}}",
            "podTemplate.metadata.labels.batch.kubernetes.io/job-completion-index",
        ),
        // `null` would remove what the job needs, and another value would take its place.
        ("metadata: null", "podTemplate.metadata"),
        ("metadata: {labels: null}", "podTemplate.metadata.labels"),
        ("spec: none", "podTemplate.spec"),
        ("spec: {containers: null}", "podTemplate.spec.containers"),
        ("spec: {containers: [{name: pytorch, env: null}]}", "podTemplate.spec.containers[pytorch].env"),
        (
            "spec: {containers: [{name: pytorch}, {name: pytorch, env: [{name: WORLD_SIZE, value: '9'}]}]}",
            "podTemplate.spec.containers[pytorch].env[WORLD_SIZE]",
        ),
    ] {
        let mut cluster = SimulatedCluster::new(&format!("workers: 1, podTemplate: {{{template}}}"))?;
        cluster.reconcile_until_stable()?;
        let Verdict::Invalid(message) = &cluster.verdict else {
            return Err(Error::Test(format!("{template} is not refused")));
        };
        assert!(message.contains(field), "{message}");
        assert!(cluster.children.is_empty());
    }
    Ok(())
}
