//! Checks the plugin without a cluster: who refers to a model, and which models are refused.

use llm_serving::testing::{condition, refusal};
use pilothouse_sdk::testing::{Answer, Case};
use pilothouse_sdk::{Error, Kind};
use serde_json::{Value, json};

fn case(spec: Value) -> Case {
    Case::of(json!({
        "apiVersion": "llm.example.com/v1alpha1",
        "kind": "LLMModel",
        "metadata": { "name": "gpt-small", "namespace": "ml", "uid": "model", "generation": 1 },
        "spec": spec,
    }))
}

fn seed() -> Case {
    case(json!({ "modelName": "GPT-Small", "image": "your-registry/gpt-small:v1" }))
}

/// An LLMDeployment that refers to a model.
fn referrer(name: &str, model: &str) -> Value {
    json!({
        "apiVersion": "llm.example.com/v1alpha1",
        "kind": "LLMDeployment",
        "metadata": { "name": name, "namespace": "ml" },
        "spec": { "modelRef": model, "replicas": 1 },
    })
}

fn run(case: Case) -> Result<Answer, Error> {
    case.run_raw(llm_model::reconcile_raw)
}

#[test]
fn the_status_lists_who_refers_to_the_model() -> Result<(), Error> {
    let answer = run(seed()
        .found(referrer("b", "gpt-small"))
        .found(referrer("a", "gpt-small"))
        .found(referrer("d", "gpt-large")))?;
    assert_eq!(answer.status::<Value>()?, json!({ "referencedBy": ["a", "b"], "hasMoreReferences": false }));
    assert_eq!(condition(&answer, "Ready"), "True Described");
    Ok(())
}

/// Anybody may have a Service, whatever its labels.
#[test]
fn a_service_refers_to_no_model() -> Result<(), Error> {
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "a", "namespace": "ml", "labels": { "llm.example.com/model-ref": "gpt-small" },
            "ownerReferences": [
                { "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMDeployment", "name": "a", "uid": "u" },
            ],
        },
    });
    assert_eq!(run(seed().found(service))?.status::<Value>()?["referencedBy"], json!([]));
    Ok(())
}

struct LlmDeployment;

impl Kind for LlmDeployment {
    const API_VERSION: &'static str = "llm.example.com/v1alpha1";
    const KIND: &'static str = "LLMDeployment";
}

#[test]
fn where_there_are_no_llm_deployments_nobody_refers_to_a_model() -> Result<(), Error> {
    let answer = run(seed().not_installed::<LlmDeployment>())?;
    assert_eq!(condition(&answer, "Ready"), "True Described");
    Ok(())
}

/// One more would otherwise change the status, and wake all that look at the model.
#[test]
fn more_than_a_hundred_are_not_listed_one_by_one() -> Result<(), Error> {
    let status = |count: usize| -> Result<Value, Error> {
        let referrers = (0..count).map(|number| referrer(&format!("d-{number:04}"), "gpt-small"));
        run(referrers.fold(seed(), Case::found))?.status()
    };
    let many = status(101)?;
    assert_eq!((many["referencedBy"].as_array().map(Vec::len), &many["hasMoreReferences"]), (Some(100), &json!(true)));
    assert_eq!(status(150)?, many);
    Ok(())
}

/// Fields of a model, and how the refusal begins.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("engine: teapot", "spec.engine 'teapot' is not known"),
    ("gpuType: H100, gpuMemory: much", "spec.gpuMemory 'much' is no quantity"),
    ("modelPath: models/llama", "spec.modelPath 'models/llama' must be an absolute path"),
    ("modelSource: {uri: 'gs://bucket/llama'}", "spec.modelSource.uri 'gs://bucket/llama' begins with none of"),
    ("env: [{name: PORT, value: '1'}]", "spec.env sets PORT, which the server gets from other fields"),
    ("securityContext: {runAsNonRoot: true}", "spec.securityContext.runAsNonRoot needs spec.securityContext.runAsUser"),
];

/// What stops every LLMDeployment is told where the mistake is, and who is stopped.
#[test]
fn a_model_that_nobody_could_serve_is_refused() -> Result<(), Error> {
    for (fields, expected) in REFUSED {
        let spec = format!("{{modelName: llama, image: 'a:1', {fields}}}");
        let spec: Value = serde_saphyr::from_str(&spec).map_err(|error| Error::Test(error.to_string()))?;
        let answer = run(case(spec).found(referrer("a", "gpt-small")))?;
        assert!(
            refusal(&answer).is_some_and(|message| message.starts_with(expected)),
            "{fields}: {:?}",
            answer.verdict()
        );
        assert_eq!(answer.status::<Value>()?["referencedBy"], json!(["a"]), "{fields}");
    }
    Ok(())
}
