//! Where models come from: volumes, downloads with a deadline and a limit of memory, and claims that must exist.

use crate::case::{arguments, case, claim, run, template};
use llm_serving::testing::{Children, waits_for};
use pilothouse_sdk::{Error, Verdict};
use serde_json::{Value, json};

/// The volume with the model and its mount in the server.
fn model(template: &Value) -> (Value, Value) {
    let find = |list: &Value| {
        let mut items = list.as_array().cloned().unwrap_or_default().into_iter();
        items.find(|item| item["name"] == "model").unwrap_or_default()
    };
    (find(&template["spec"]["volumes"]), find(&template["spec"]["containers"][0]["volumeMounts"]))
}

#[test]
fn a_claim_is_mounted_read_only_where_the_path_says() -> Result<(), Error> {
    let spec = "modelSource: {uri: 'pvc://models/llama'}, modelPath: /models/llama";
    let (volume, mount) = model(&template(spec)?);
    let source = json!({ "claimName": "models", "readOnly": true });
    assert_eq!(volume, json!({ "name": "model", "persistentVolumeClaim": source }));
    assert_eq!(mount, json!({ "name": "model", "mountPath": "/models/llama", "subPath": "llama", "readOnly": true }));
    assert_eq!(arguments(spec)?, ["--model", "/models/llama", "--served-model-name", "llama"]);
    Ok(())
}

#[test]
fn a_cache_of_the_node_is_mounted_read_only() -> Result<(), Error> {
    let spec = "modelSource: {uri: 'hostpath:///var/models'}";
    let (volume, mount) = model(&template(spec)?);
    assert_eq!(volume["hostPath"], json!({ "path": "/var/models", "type": "Directory" }));
    assert_eq!(mount, json!({ "name": "model", "mountPath": "/mnt/models", "readOnly": true }));
    assert_eq!(arguments(spec)?, ["--model", "/mnt/models", "--served-model-name", "llama"]);
    Ok(())
}

#[test]
fn a_model_that_is_one_file_is_in_a_directory_that_is_mounted() -> Result<(), Error> {
    let spec = "engine: llama-cpp, modelSource: {uri: 'pvc://models'}, modelPath: /models/tiny.gguf";
    let (_, mount) = model(&template(spec)?);
    assert_eq!(mount["mountPath"], "/models");
    assert_eq!(arguments(spec)?[..2], ["--model", "/models/tiny.gguf"]);
    Ok(())
}

#[test]
fn a_download_has_a_deadline_and_memory_of_its_own() -> Result<(), Error> {
    for uri in ["hf://meta-llama/Llama-3-8B:main", "s3://bucket/llama"] {
        let source = format!(
            "modelSource: {{uri: '{uri}', secretRef: {{name: token}}, deadlineSeconds: 900, sizeLimit: 100Gi}}"
        );
        let template = template(&source)?;
        let init = &template["spec"]["initContainers"][0];
        let entry_point = "/storage-initializer/scripts/initializer-entrypoint";
        assert_eq!(init["command"], json!(["timeout", "900", entry_point, uri, "/mnt/models"]), "{uri}");
        assert_eq!(
            init["resources"],
            json!({ "limits": { "memory": "16Gi" }, "requests": { "memory": "2Gi" } }),
            "{uri}"
        );
        assert_eq!(init["envFrom"], json!([{ "secretRef": { "name": "token" } }]), "{uri}");
        assert_eq!(init["volumeMounts"], json!([{ "name": "model", "mountPath": "/mnt/models" }]), "it writes");
        let (volume, mount) = model(&template);
        assert_eq!(
            (&volume["emptyDir"], &mount["readOnly"]),
            (&json!({ "sizeLimit": "100Gi" }), &json!(true)),
            "{uri}"
        );
    }
    Ok(())
}

#[test]
fn downloads_of_several_models_share_a_claim() -> Result<(), Error> {
    let cached = |uri: &str| template(&format!("modelSource: {{uri: '{uri}', cacheClaimName: cache}}"));
    let (first, second) = (cached("hf://a/b:1")?, cached("hf://a/b:2")?);
    let paths = [&first, &second].map(|template| model(template).1["subPath"].clone());
    assert_ne!(paths[0], paths[1]);
    assert_eq!(first["spec"]["initContainers"][0]["volumeMounts"][0]["subPath"], paths[0]);
    assert_eq!(model(&first).0["persistentVolumeClaim"], json!({ "claimName": "cache" }));
    Ok(())
}

#[test]
fn an_image_is_copied_out_of() -> Result<(), Error> {
    let template = template("modelSource: {uri: 'oci://registry.example.com/llama:1'}")?;
    let init = &template["spec"]["initContainers"][0];
    assert_eq!(init["image"], "registry.example.com/llama:1");
    let copy = json!(["timeout", "3600", "sh", "-c", "cp -a /models/. \"$0\"", "/mnt/models"]);
    assert_eq!(init["command"], copy);
    Ok(())
}

#[test]
fn the_installer_says_where_models_come_from() -> Result<(), Error> {
    let config = json!({ "modelSource": { "uri": "hostpath:///var/cache/models" } });
    let children = Children::of(&run(case("modelPath: /models/llama")?.config(&config))?)?;
    let (volume, mount) = model(&children.only("Deployment")?["spec"]["template"]);
    assert_eq!(
        (&volume["hostPath"]["path"], &mount["mountPath"]),
        (&json!("/var/cache/models"), &json!("/models/llama"))
    );
    Ok(())
}

#[test]
fn a_claim_that_does_not_exist_is_waited_for_and_changes_nothing() -> Result<(), Error> {
    #[rustfmt::skip]
    let cases = [
        ("modelSource: {uri: 'pvc://models/llama'}", "modelSource.uri"),
        ("modelSource: {uri: 'hf://a/b', cacheClaimName: models}", "modelSource.cacheClaimName"),
    ];
    for (spec, field) in cases {
        let answer = run(case(spec)?)?;
        assert_eq!(waits_for(&answer), Some("ClaimNotFound"), "{spec}");
        assert_eq!(answer.response.children, None, "{spec}: the children stay");
        let Verdict::Wait(waiting) = answer.verdict() else { continue };
        let expected = format!(
            "spec.{field} names the PersistentVolumeClaim 'models', which namespace 'ml' does not have; create it"
        );
        assert_eq!(waiting.message, expected);
        assert_eq!(waits_for(&run(case(spec)?.found(claim("models")))?), None);
    }
    Ok(())
}
