//! A change of the image replaces Pods as the rollout says, never below the disruption budget; what is no change of the Pods replaces
//! none.

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::PENDING;
use pilothouse_tests::{
    cluster::PATIENCE,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{image, server, serves};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_new_image_takes_out_no_more_pods_than_the_budget_allows, scaling_and_surroundings_replace_no_pod);
}

/// The new Pods do not become ready, so the rollout stops where its bounds are.
async fn a_new_image_takes_out_no_more_pods_than_the_budget_allows(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    let spec = json!({"replicas": 4, "gpuCount": 1, "rollout": {"maxUnavailable": 2}});
    env.namespace.apply(server("chat", spec)).await?;
    serves(env, "LLMModel", "chat").await?;
    let budget = env.namespace.get("PodDisruptionBudget", "llmmodel-chat").await?.context("no budget")?;
    ensure!(budget["spec"]["maxUnavailable"] == 2, "{budget}");

    let stuck = json!({"metadata": {"annotations": {PENDING: ""}}});
    let change = json!({"spec": {"image": "vllm/vllm-openai:v0.20.1", "podTemplate": stuck}});
    env.namespace.patch("LLMModel", "chat", change).await?;
    let settled = |deployment: &Value| {
        let status = &deployment["status"];
        image(deployment) == "vllm/vllm-openai:v0.20.1"
            && status["observedGeneration"] == deployment["metadata"]["generation"]
            && status["updatedReplicas"] == 2
    };
    let deployment = env.namespace.until("Deployment", "llmmodel-chat", "to stop at its bounds", settled).await?;
    let status = &deployment["status"];
    ensure!(status["readyReplicas"] == 2 && status["replicas"] == 4, "no spare GPU is needed, and two serve: {status}");

    // The last image was wrong. A good one follows, without anybody deleting Pods.
    let good = json!({"spec": {"image": "vllm/vllm-openai:v0.20.2", "podTemplate": null}});
    env.namespace.patch("LLMModel", "chat", good).await?;
    serves(env, "LLMModel", "chat").await?;
    eventually(PATIENCE, "all Pods to have the good image", async || {
        let pods = env.namespace.list("Pod").await?;
        let images: Vec<_> = pods.iter().map(|pod| pod["spec"]["containers"][0]["image"].clone()).collect();
        Ok(Look::of(images == vec![json!("vllm/vllm-openai:v0.20.2"); 4], images))
    })
    .await
}

async fn scaling_and_surroundings_replace_no_pod(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    env.namespace.apply(server("chat", json!({}))).await?;
    serves(env, "LLMModel", "chat").await?;
    let names = async || -> Result<Vec<Value>> {
        Ok(env.namespace.list("Pod").await?.into_iter().map(|pod| pod["metadata"]["name"].clone()).collect())
    };
    let before = names().await?;
    let change = json!({"replicas": 3, "networkPolicy": {}, "disruptionBudget": {"maxUnavailable": 1}, "rollout": {"maxSurge": 1}});
    env.namespace.patch("LLMModel", "chat", json!({"spec": change})).await?;
    serves(env, "LLMModel", "chat").await?;
    let after = names().await?;
    ensure!(before.iter().all(|name| after.contains(name)), "Pods were replaced: {before:?}, {after:?}");
    Ok(())
}
