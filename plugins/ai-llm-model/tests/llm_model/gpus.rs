//! GPUs: how Pods ask for them, and on which nodes they find them.

use crate::case::{case, children, container, run, template};
use llm_serving::testing::{Children, condition, events};
use pilothouse_sdk::Error;
use serde_json::{Value, json};

/// The expressions of the required node affinity.
fn expressions(template: &Value) -> Value {
    let pointer = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions";
    template.pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn requests_and_limits_of_gpus_are_the_same() -> Result<(), Error> {
    let resources =
        container("gpuCount: 4, resources: {requests: {cpu: 8}, limits: {memory: 64Gi}}")?["resources"].clone();
    let expected = json!({
        "limits": { "memory": "64Gi", "nvidia.com/gpu": "4" }, "requests": { "cpu": 8, "nvidia.com/gpu": "4" },
    });
    assert_eq!(resources, expected);
    assert_eq!(container("")?.get("resources"), None, "no GPUs unless they are asked for");
    Ok(())
}

#[test]
fn pods_with_gpus_tolerate_the_taint_of_their_nodes() -> Result<(), Error> {
    for (spec, resource) in
        [("gpuCount: 1", "nvidia.com/gpu"), ("gpuCount: 1, gpuResource: amd.com/gpu", "amd.com/gpu")]
    {
        let expected = json!([{ "key": resource, "operator": "Exists", "effect": "NoSchedule" }]);
        assert_eq!(template(spec)?["spec"]["tolerations"], expected, "{spec}");
    }
    Ok(())
}

#[test]
fn a_type_of_gpu_is_a_required_affinity_to_all_its_names() -> Result<(), Error> {
    let template = template("gpuType: H100")?;
    let expression = &expressions(&template)[0];
    assert_eq!((&expression["key"], &expression["operator"]), (&json!("nvidia.com/gpu.product"), &json!("In")));
    let values = expression["values"].as_array().cloned().unwrap_or_default();
    assert!(
        values.contains(&json!("NVIDIA-H100-80GB-HBM3")) && values.contains(&json!("NVIDIA-H100-PCIe")),
        "{values:?}"
    );
    let gpus = &template["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"];
    assert_eq!(gpus, "1", "who asks for a type asks for a GPU");
    Ok(())
}

#[test]
fn a_size_of_gpus_is_a_required_affinity_too() -> Result<(), Error> {
    let expected = json!([{ "key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["76292"] }]);
    assert_eq!(expressions(&template("gpuMemory: 80G")?), expected, "an H100 of 80 GB says 81559");
    Ok(())
}

#[test]
fn the_installer_can_add_types_and_labels() -> Result<(), Error> {
    let config = json!({ "gpus": { "productLabel": "cloud.google.com/gke-accelerator", "types": { "H100": ["nvidia-h100-80gb"] } } });
    let children = Children::of(&run(case("gpuType: H100")?.config(&config))?)?;
    let expected = json!([{
        "key": "cloud.google.com/gke-accelerator", "operator": "In", "values": ["nvidia-h100-80gb"],
    }]);
    assert_eq!(expressions(&children.only("Deployment")?["spec"]["template"]), expected);
    Ok(())
}

#[test]
fn an_unknown_type_is_passed_through_with_a_warning() -> Result<(), Error> {
    let answer = run(case("gpuType: X9000")?)?;
    assert_eq!(condition(&answer, "GpuTypeKnown"), "False UnknownGpuType");
    assert_eq!(events(&answer), ["Warning UnknownGpuType"]);
    let values = &expressions(&Children::of(&answer)?.only("Deployment")?["spec"]["template"])[0]["values"];
    assert_eq!(*values, json!(["X9000"]));
    assert_eq!(condition(&run(case("gpuType: H100")?)?, "GpuTypeKnown"), "");
    Ok(())
}

#[test]
fn devices_are_claimed_instead_of_a_resource() -> Result<(), Error> {
    let children = children("gpuCount: 2, gpuDeviceClass: gpu.nvidia.com")?;
    let template = children.only("ResourceClaimTemplate")?;
    let exactly = json!({ "deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 2 });
    assert_eq!(template["spec"]["spec"]["devices"]["requests"], json!([{ "name": "gpus", "exactly": exactly }]));
    let pod = &children.only("Deployment")?["spec"]["template"]["spec"];
    assert_eq!(
        pod["resourceClaims"],
        json!([{ "name": "gpus", "resourceClaimTemplateName": template["metadata"]["name"] }])
    );
    assert_eq!(pod["containers"][0]["resources"], json!({ "claims": [{ "name": "gpus" }] }));
    Ok(())
}

/// The template cannot change, and Pods would not notice if it could.
#[test]
fn another_number_of_devices_is_another_claim_template() -> Result<(), Error> {
    let name = |count: u32| -> Result<Value, Error> {
        let children = children(&format!("gpuCount: {count}, gpuDeviceClass: gpu.nvidia.com"))?;
        Ok(children.only("ResourceClaimTemplate")?["metadata"]["name"].clone())
    };
    assert_ne!(name(1)?, name(2)?);
    Ok(())
}

/// Otherwise the Pods of one object would get the devices of another one.
#[test]
fn no_two_models_share_a_claim_template() -> Result<(), Error> {
    let name = |model: &str, count: u32, class: &str| -> Result<Value, Error> {
        let spec = json!({ "modelName": "m", "gpuCount": count, "gpuDeviceClass": class });
        let children = Children::of(&run(crate::case::of(model, &spec))?)?;
        Ok(children.only("ResourceClaimTemplate")?["metadata"]["name"].clone())
    };
    assert_ne!(name("a", 1, "2-x")?, name("a-1", 2, "x")?);
    assert_ne!(name("a", 1, "2.x")?, name("a", 12, "x")?);
    Ok(())
}
