//! A `ModelDeployment` and what the plugin answers to it.

use llm_serving::testing::{Children, settled};
use pilothouse_sdk::Error;
use pilothouse_sdk::testing::{Answer, Case};
use serde_json::{Value, json};

/// A `ModelDeployment` `llama-3-70b` in namespace `ml`. `spec` has the fields that matter, in YAML's flow form; a missing model is
/// filled in.
pub fn case(spec: &str) -> Result<Case, Error> {
    named("llama-3-70b", spec)
}

/// The same under another name.
pub fn named(name: &str, spec: &str) -> Result<Case, Error> {
    let mut fields = parse(&format!("{{{spec}}}"))?;
    if fields.get("model").is_none() {
        fields["model"] = "llama-3-70b".into();
    }
    Ok(Case::of(json!({
        "apiVersion": "llm.example.com/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": { "name": name, "namespace": "ml", "uid": "model", "generation": 1 },
        "spec": fields,
    })))
}

/// With a StatefulSet that is asked for so many Pods, all of which are ready.
pub fn with_live(case: Case, replicas: i32) -> Case {
    case.child(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "llama-3-70b", "uid": "set", "generation": 1 },
        "spec": { "replicas": replicas },
        "status": {
            "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas,
        },
    }))
}

/// With a HorizontalPodAutoscaler that has this status, in YAML's flow form.
pub fn with_hpa(case: Case, status: &str) -> Result<Case, Error> {
    Ok(case.child(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "llama-3-70b" },
        "status": parse(&format!("{{{status}}}"))?,
    })))
}

/// The answer to a case.
pub fn run(case: Case) -> Result<Answer, Error> {
    case.run_raw(model_deployment::reconcile_raw)
}

/// The children of a `ModelDeployment` with this spec.
pub fn children(spec: &str) -> Result<Children, Error> {
    Children::of(&settled(|| case(spec), model_deployment::reconcile_raw)?)
}

/// Reads YAML or JSON.
pub fn parse(text: &str) -> Result<Value, Error> {
    serde_saphyr::from_str(text).map_err(|error| Error::Test(format!("{error}: {text}")))
}
