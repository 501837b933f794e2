//! An `LLMModel` and what the plugin answers to it.

use llm_serving::testing::{Children, settled};
use pilothouse_sdk::testing::{Answer, Case};
use pilothouse_sdk::{Error, Kind};
use serde_json::Value;

/// The API version of the Prometheus operator's kinds.
struct ServiceMonitor;
struct PodMonitor;

impl Kind for ServiceMonitor {
    const API_VERSION: &'static str = "monitoring.coreos.com/v1";
    const KIND: &'static str = "ServiceMonitor";
}

impl Kind for PodMonitor {
    const API_VERSION: &'static str = "monitoring.coreos.com/v1";
    const KIND: &'static str = "PodMonitor";
}

/// An `LLMModel` `chat` in namespace `ml`. `spec` has the fields that matter, in YAML's flow form; a missing model name is filled in.
pub fn case(spec: &str) -> Result<Case, Error> {
    let mut fields = parse(&format!("{{{spec}}}"))?;
    if fields.get("modelName").is_none() {
        fields["modelName"] = "llama".into();
    }
    Ok(of("chat", &fields))
}

/// An `LLMModel` of this name and spec.
pub fn of(name: &str, spec: &Value) -> Case {
    Case::of(serde_json::json!({
        "apiVersion": "ai.example.com/v1",
        "kind": "LLMModel",
        "metadata": { "name": name, "namespace": "ml", "uid": "model", "generation": 1 },
        "spec": spec,
    }))
}

/// A cluster without the Prometheus operator.
pub fn without_monitors(case: Case) -> Case {
    case.not_installed::<ServiceMonitor>().not_installed::<PodMonitor>()
}

/// A claim that exists.
pub fn claim(name: &str) -> Value {
    serde_json::json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name } })
}

/// The answer to a case.
pub fn run(case: Case) -> Result<Answer, Error> {
    case.run_raw(ai_llm_model::reconcile_raw)
}

/// The children of an `LLMModel` with this spec, in a cluster that has the claims `models` and `cache`.
pub fn children(spec: &str) -> Result<Children, Error> {
    let case = || Ok(case(spec)?.found(claim("models")).found(claim("cache")));
    Children::of(&settled(case, ai_llm_model::reconcile_raw)?)
}

/// The Pod template of an `LLMModel` with this spec.
pub fn template(spec: &str) -> Result<Value, Error> {
    Ok(children(spec)?.only("Deployment")?["spec"]["template"].clone())
}

/// The server's container.
pub fn container(spec: &str) -> Result<Value, Error> {
    Ok(template(spec)?["spec"]["containers"][0].clone())
}

/// The arguments of the server.
pub fn arguments(spec: &str) -> Result<Vec<String>, Error> {
    let args = container(spec)?["args"].clone();
    Ok(args.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Reads YAML or JSON.
pub fn parse(text: &str) -> Result<Value, Error> {
    serde_saphyr::from_str(text).map_err(|error| Error::Test(format!("{error}: {text}")))
}
