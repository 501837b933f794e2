//! Helpers for the tests of the serving plugins: objects, and what is waited for.

use anyhow::{Context, Result};
use pilothouse_tests::{cluster::condition, metrics_api::MetricsApi};
use serde_json::{Value, json};

use crate::test_env::{TestEnv, is_ready};

/// The kind of the models that LLMDeployments refer to.
pub const MODEL: &str = "LLMModel.llm.example.com";

/// The metrics that an autoscaler reads of vLLM.
pub const LATENCY: &str = "vllm_time_to_first_token_seconds_p95";
pub const QUEUE: &str = "vllm_num_requests_waiting";

/// A metrics API with this latency of vLLM, and nothing in its queue.
pub async fn metrics_of_vllm(env: &TestEnv, latency: &str) -> Result<MetricsApi> {
    let metrics = MetricsApi::start(&env.namespace.client()).await?;
    metrics.set(LATENCY, latency);
    metrics.set(QUEUE, "0");
    Ok(metrics)
}

/// An `LLMModel` of `ai.example.com`.
pub fn server(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "ai.example.com/v1", "kind": "LLMModel", "metadata": {"name": name},
        "spec": {"modelName": "llama-3-8b", "replicas": 2},
    });
    extend(&mut object["spec"], spec);
    object
}

/// An `LLMModel` of `llm.example.com`.
pub fn model(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMModel", "metadata": {"name": name},
        "spec": {"modelName": "GPT-Small", "image": "your-registry/gpt-small:v1"},
    });
    extend(&mut object["spec"], spec);
    object
}

/// An `LLMDeployment` of the model `gpt-small`.
pub fn deployment(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": name},
        "spec": {"modelRef": "gpt-small", "replicas": 2},
    });
    extend(&mut object["spec"], spec);
    object
}

/// A `ModelDeployment` without an SLA.
pub fn model_deployment(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "llm.example.com/v1alpha1", "kind": "ModelDeployment", "metadata": {"name": name},
        "spec": {"model": "llama-3-70b", "replicas": 2},
    });
    extend(&mut object["spec"], spec);
    object
}

fn extend(spec: &mut Value, given: Value) {
    if let (Some(all), Value::Object(given)) = (spec.as_object_mut(), given) {
        all.extend(given);
    }
}

/// Waits until an object is ready with all its replicas.
pub async fn serves(env: &TestEnv, kind: &str, name: &str) -> Result<Value> {
    let holds = |object: &Value| is_ready(object) && object["status"]["readyReplicas"] == object["spec"]["replicas"];
    env.namespace.until(kind, name, "to serve with all its replicas", holds).await
}

/// Waits until a condition of an object has this status and reason, and returns its message.
pub async fn says(env: &TestEnv, object: (&str, &str), type_: &str, expected: (&str, &str)) -> Result<String> {
    let (kind, name) = object;
    let (status, reason) = expected;
    let holds = |object: &Value| {
        let found = condition(object, type_);
        found["status"] == status && found["reason"] == reason
    };
    let found = env.namespace.until(kind, name, &format!("to say {type_}={status} for {reason}"), holds).await?;
    Ok(condition(&found, type_)["message"].as_str().unwrap_or_default().to_owned())
}

/// The image of the server in a Deployment.
pub fn image(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}

/// The name of the first Pod.
pub async fn first_pod(env: &TestEnv) -> Result<String> {
    let pods = env.namespace.list("Pod").await?;
    let pod = pods.first().context("no Pod")?;
    Ok(pod["metadata"]["name"].as_str().context("a Pod without a name")?.to_owned())
}
