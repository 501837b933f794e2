//! The CRD: that the file is up to date, and that it has all that the plugin writes.

use crate::world::World;
use pilothouse_sdk::Error;
use serde_json::Value;

#[test]
fn the_file_is_up_to_date() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/trainingjobs.ml.example.com.yaml");
    let same = std::fs::read_to_string(path)? == training_job::crd::yaml()?;
    assert!(same, "make it anew: make crds");
    Ok(())
}

/// The API server refuses or drops what a schema does not declare.
#[test]
fn every_field_that_is_written_is_declared() -> Result<(), Error> {
    let mut world = World::running(
        "framework: tensorflow, workers: 2, parameterServers: 1, runPolicy: {restartPolicy: OnFailure}",
    )?;
    world.graceful = true;
    let failed = "phase: Failed, message: m, reason: Evicted, containerStatuses: [\
                  {name: tensorflow, restartCount: 2, state: {terminated: {exitCode: 9}}}]";
    world.set("mnist-worker-1", failed)?;
    world.reconcile()?;
    let status = &world.job["status"];
    for field in ["retiringPods", "lastRestartTime", "startTime", "parameterServerStatuses"] {
        assert!(status.get(field).is_some(), "this test should meet {field}");
    }
    let schema = training_job::crd::crd();
    let declared = schema.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status");
    check("status", status, declared.unwrap_or(&Value::Null));
    world.all("Failed");
    world.settle()?;
    check("status", &world.job["status"], declared.unwrap_or(&Value::Null));
    Ok(())
}

fn check(path: &str, value: &Value, schema: &Value) {
    assert!(schema.is_object(), "{path} is not declared");
    match value {
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(name, value)| check(&format!("{path}.{name}"), value, &schema["properties"][name]));
        }
        Value::Array(items) => items.iter().for_each(|item| check(&format!("{path}[]"), item, &schema["items"])),
        _ => {}
    }
}
