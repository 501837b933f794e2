//! Wrong input: refused by the API server, or a condition that says what to do, and children that stay.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    deployment::PLUGINS,
    words::{deployment, model, says, server, serves},
};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
    training_job::words::claim,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        wrong_models_are_refused_when_they_are_submitted,
        wrong_deployments_are_refused_when_they_are_submitted,
        a_missing_claim_is_waited_for_and_changes_nothing,
        a_pod_template_that_breaks_the_selector_changes_nothing,
    );
}

/// Fields of an `LLMModel` of `ai.example.com`, and the words of their refusal.
fn wrong_models() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"replicas": -1}), "spec.replicas"),
        (json!({"replicas": "many"}), "spec.replicas"),
        (json!({"gpuCount": 65}), "should be less than or equal to 64"),
        (json!({"modelName": ""}), "spec.modelName"),
        (json!({"modelPath": "models"}), "spec.modelPath"),
        (json!({"modelPath": "/models/../etc"}), "the path cannot have '.' or '..' in it"),
        (json!({"modelSource": {"uri": "gs://a/b"}}), "spec.modelSource.uri"),
        (json!({"modelSource": {"uri": "pvc://a/../b"}}), "the path cannot have '.' or '..' in it"),
        (json!({"env": [{"name": "PORT", "value": "1"}]}), "the server gets this variable from other fields"),
        (json!({"port": 0}), "spec.port"),
        (json!({"resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}}), "requests must be at most limits"),
        (json!({"disruptionBudget": {"maxUnavailable": 1, "minAvailable": 1}}), "give exactly one of"),
        (json!({"rollout": {"maxSurge": "much"}}), "spec.rollout.maxSurge"),
        (json!({"monitor": {"kind": "Monitor"}}), "supported values: \"ServiceMonitor\", \"PodMonitor\""),
        (json!({"loraAdapters": [{"name": "a", "path": "/a"}, {"name": "a", "path": "/b"}]}), "duplicate"),
    ]
}

async fn wrong_models_are_refused_when_they_are_submitted(env: &mut TestEnv) -> Result<()> {
    for (spec, why) in wrong_models() {
        refused(env, server("wrong", spec), why).await?;
    }
    let without_name = json!({
        "apiVersion": "ai.example.com/v1", "kind": "LLMModel", "metadata": {"name": "wrong"}, "spec": {"replicas": 1},
    });
    refused(env, without_name, "spec.modelName: Required value").await
}

async fn wrong_deployments_are_refused_when_they_are_submitted(env: &mut TestEnv) -> Result<()> {
    for (spec, why) in [
        (json!({"modelRef": "other/model"}), "spec.modelRef"),
        (json!({"modelRef": "../model"}), "spec.modelRef"),
        (json!({"modelRef": ""}), "spec.modelRef"),
        (json!({"replicas": -1}), "spec.replicas"),
        (json!({"port": 65536}), "spec.port"),
    ] {
        refused(env, deployment("wrong", spec), why).await?;
    }
    for field in ["modelRef", "replicas"] {
        let mut object = deployment("wrong", json!({}));
        object["spec"].as_object_mut().and_then(|spec| spec.remove(field));
        refused(env, object, &format!("spec.{field}: Required value")).await?;
    }
    for field in ["modelName", "image"] {
        let mut object = model("wrong", json!({}));
        object["spec"].as_object_mut().and_then(|spec| spec.remove(field));
        refused(env, object, &format!("spec.{field}: Required value")).await?;
    }
    Ok(())
}

async fn a_missing_claim_is_waited_for_and_changes_nothing(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    let source = json!({"modelPath": "/models/llama", "modelSource": {"uri": "pvc://models/llama"}});
    env.namespace.apply(server("chat", source.clone())).await?;
    let message = says(env, ("LLMModel", "chat"), "Ready", ("False", "ClaimNotFound")).await?;
    ensure!(message.contains("the PersistentVolumeClaim 'models'"), "{message}");
    ensure!(env.namespace.list("Deployment").await?.is_empty(), "a Deployment was made");
    claim(env, "models").await?;
    serves(env, "LLMModel", "chat").await?;

    // Another claim that does not exist leaves the server as it is.
    let before = env.namespace.get("Deployment", "llmmodel-chat").await?.context("no Deployment")?;
    env.namespace.patch("LLMModel", "chat", json!({"spec": {"modelSource": {"uri": "pvc://others/llama"}}})).await?;
    says(env, ("LLMModel", "chat"), "Ready", ("False", "ClaimNotFound")).await?;
    unchanged(env, &before).await?;
    env.namespace.apply(server("chat", source)).await?;
    serves(env, "LLMModel", "chat").await?;
    Ok(())
}

async fn a_pod_template_that_breaks_the_selector_changes_nothing(env: &mut TestEnv) -> Result<()> {
    env.start(&PLUGINS).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    env.namespace.apply(deployment("chat", json!({}))).await?;
    serves(env, "LLMDeployment", "chat").await?;
    let before = env.namespace.get("Deployment", "chat").await?.context("no Deployment")?;
    let broken = json!({"metadata": {"labels": {"app.kubernetes.io/instance": "other"}}});
    env.namespace.patch("LLMDeployment", "chat", json!({"spec": {"podTemplate": broken}})).await?;
    let stalled = env.stalled("LLMDeployment", "chat", "Invalid").await?;
    let message = pilothouse_tests::cluster::condition(&stalled, "Stalled")["message"].to_string();
    ensure!(message.contains("changes the label app.kubernetes.io/instance"), "{message}");
    unchanged(env, &before).await?;
    env.namespace.patch("LLMDeployment", "chat", json!({"spec": {"podTemplate": null}})).await?;
    serves(env, "LLMDeployment", "chat").await?;
    Ok(())
}

/// Checks that a Deployment is the one from before, with the same spec.
async fn unchanged(env: &TestEnv, before: &Value) -> Result<()> {
    let name = before["metadata"]["name"].as_str().unwrap_or_default();
    let after = env.namespace.get("Deployment", name).await?.context("the Deployment is gone")?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"] && after["spec"] == before["spec"], "{after}");
    Ok(())
}

/// Checks that the API server refuses an object and says why.
async fn refused(env: &TestEnv, object: Value, why: &str) -> Result<()> {
    let spec = object["spec"].clone();
    let Err(refusal) = env.namespace.apply(object).await else { bail!("{spec} is taken") };
    let refusal = format!("{refusal:#}").to_lowercase();
    ensure!(refusal.contains(&why.to_lowercase()), "{spec}: {refusal}");
    Ok(())
}
