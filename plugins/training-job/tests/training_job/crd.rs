//! The CRD: the file is up to date, and the schema has all fields that the plugin writes.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::{Value, json};

#[test]
fn the_file_is_up_to_date() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/trainingjobs.ml.example.com.yaml");
    let same = std::fs::read_to_string(path)? == training_job::crd::yaml()?;
    assert!(same, "write it again: make crds");
    Ok(())
}

/// Users and their scripts depend on these names.
#[test]
fn names_columns_and_subresources_stay_the_same() {
    let crd = training_job::crd::crd();
    assert_eq!(crd["metadata"]["name"], "trainingjobs.ml.example.com");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    let names = json!({
        "kind": "TrainingJob", "listKind": "TrainingJobList", "plural": "trainingjobs", "singular": "trainingjob",
        "shortNames": ["tj"],
    });
    assert_eq!(crd["spec"]["names"], names);
    let version = &crd["spec"]["versions"][0];
    assert_eq!(
        [&version["name"], &version["served"], &version["storage"]],
        [&json!("v1alpha1"), &json!(true), &json!(true)]
    );
    let columns = json!([
        { "name": "Framework", "type": "string", "jsonPath": ".spec.framework" },
        { "name": "Workers", "type": "integer", "jsonPath": ".spec.workers" },
        { "name": "Phase", "type": "string", "jsonPath": ".status.phase" },
        { "name": "Progress", "type": "string", "jsonPath": ".status.progress.summary" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ]);
    assert_eq!(version["additionalPrinterColumns"], columns);
    let scale = json!({
        "specReplicasPath": ".spec.workers", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    });
    assert_eq!(version["subresources"], json!({ "status": {}, "scale": scale }));
}

/// The API server refuses or drops what a schema does not declare.
#[test]
fn every_field_that_is_written_is_declared() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running(
        "framework: tensorflow, workers: 2, parameterServers: 1, runPolicy: {restartPolicy: OnFailure}",
    )?;
    cluster.graceful_deletion = true;
    let failed = "phase: Failed, message: m, reason: Evicted, containerStatuses: [\
                  {name: tensorflow, restartCount: 2, state: {terminated: {exitCode: 9}}}]";
    cluster.set_pod_status("mnist-worker-1", failed)?;
    cluster.reconcile()?;
    let status = &cluster.job["status"];
    for field in ["retiringPods", "lastRestartTime", "startTime", "parameterServerStatuses"] {
        assert!(status.get(field).is_some(), "this test must cover {field}");
    }
    let schema = training_job::crd::crd();
    let declared = schema.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status");
    assert_declared("status", status, declared.unwrap_or(&Value::Null));
    cluster.set_phase_of_all_pods("Failed");
    cluster.reconcile_until_stable()?;
    assert_declared("status", &cluster.job["status"], declared.unwrap_or(&Value::Null));
    Ok(())
}

fn assert_declared(path: &str, value: &Value, schema: &Value) {
    assert!(schema.is_object(), "{path} is not declared");
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| {
                assert_declared(&format!("{path}.{name}"), value, &schema["properties"][name])
            });
        }
        Value::Array(items) => {
            items.iter().for_each(|item| assert_declared(&format!("{path}[]"), item, &schema["items"]))
        }
        _ => {}
    }
}
