//! Checks the plugin without a cluster: who serves a model, and which models are refused.

use llm_serving::testing::{condition, refusal};
use pilothouse_sdk::Error;
use pilothouse_sdk::testing::{Answer, Case};
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

/// A Service of an owner that serves a model.
fn service(kind: &str, owner: &str, model: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": owner, "namespace": "ml", "labels": { "llm.example.com/model-ref": model },
            "ownerReferences": [{ "apiVersion": "llm.example.com/v1alpha1", "kind": kind, "name": owner, "uid": "u" }],
        },
    })
}

fn run(case: Case) -> Result<Answer, Error> {
    case.run_raw(llm_model::reconcile_raw)
}

#[test]
fn the_status_lists_who_serves_the_model() -> Result<(), Error> {
    let answer = run(seed()
        .found(service("LLMDeployment", "b", "gpt-small"))
        .found(service("LLMDeployment", "a", "gpt-small"))
        .found(service("Other", "c", "gpt-small"))
        .found(service("LLMDeployment", "d", "gpt-large")))?;
    assert_eq!(answer.status::<Value>()?, json!({ "referencedBy": ["a", "b"], "hasMoreReferences": false }));
    assert_eq!(condition(&answer, "Ready"), "True Described");
    Ok(())
}

/// One more would otherwise change the status, and wake all that look at the model.
#[test]
fn more_than_a_hundred_are_not_listed_one_by_one() -> Result<(), Error> {
    let status = |count: usize| -> Result<Value, Error> {
        let services = (0..count).map(|number| service("LLMDeployment", &format!("d-{number:04}"), "gpt-small"));
        run(services.fold(seed(), Case::found))?.status()
    };
    let many = status(101)?;
    assert_eq!((many["referencedBy"].as_array().map(Vec::len), &many["hasMoreReferences"]), (Some(100), &json!(true)));
    assert_eq!(status(150)?, many);
    Ok(())
}

#[test]
fn a_model_with_an_unknown_engine_is_refused() -> Result<(), Error> {
    let answer = run(case(json!({ "modelName": "llama", "image": "a:1", "engine": "teapot" })))?;
    assert!(refusal(&answer).is_some_and(|message| message.starts_with("spec.engine 'teapot' is not known")));
    Ok(())
}
