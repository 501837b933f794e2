//! A change of the image replaces Pods as the rollout says, never below the disruption budget; what is no change of the Pods replaces
//! none.

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::PENDING;
use pilothouse_tests::{
    cluster::PATIENCE,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::{
    seen::Seen,
    words::{MODEL, deployment, image, model, model_deployment, server, serves},
};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_new_image_takes_out_no_more_pods_than_the_budget_allows,
        a_budget_is_kept_at_every_moment_of_a_rollout,
        scaling_and_surroundings_replace_no_pod,
    );
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

/// Of each kind of workload, with a new image that becomes ready, at each version of its status.
async fn a_budget_is_kept_at_every_moment_of_a_rollout(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model", "llm-model", "llm-deployment", "model-deployment"]).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    let spec = json!({"replicas": 4, "disruptionBudget": {"maxUnavailable": 1}});
    let (a, b, c) = (server("a", spec.clone()), deployment("b", spec.clone()), model_deployment("c", spec));
    for object in [a, b, c] {
        env.namespace.apply(object).await?;
    }
    for (kind, name) in [("LLMModel", "a"), ("LLMDeployment", "b"), ("ModelDeployment", "c")] {
        serves(env, kind, name).await?;
    }
    let ready = |workload: &Value| workload["status"]["readyReplicas"].as_i64().unwrap_or_default();
    let seen = [Seen::watch(env, "Deployment", ready).await?, Seen::watch(env, "StatefulSet", ready).await?];
    let image = json!({"spec": {"image": "vllm/vllm-openai:v0.20.2"}});
    for (kind, name) in [("LLMModel", "a"), (MODEL, "gpt-small"), ("ModelDeployment", "c")] {
        env.namespace.patch(kind, name, image.clone()).await?;
    }
    eventually(PATIENCE, "twelve Pods with the new image", async || {
        let pods = env.namespace.list("Pod").await?;
        let new = |pod: &&Value| pod["spec"]["containers"][0]["image"] == "vllm/vllm-openai:v0.20.2";
        let count = pods.iter().filter(new).count();
        Ok(Look::of(count == 12 && pods.len() == 12, (count, pods.len())))
    })
    .await?;
    for seen in &seen {
        ensure!(seen.all().iter().all(|ready| *ready >= 3), "more than one Pod was missing: {:?}", seen.all());
    }
    Ok(())
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
