//! `ModelDeployment`: the seed's example with all that the seed draws, rollouts, wrong input.

use anyhow::{Result, bail, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::PATIENCE,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{model_deployment, says, serves};
use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_seeds_model_has_all_that_the_seed_draws,
        a_bad_image_is_followed_by_a_good_one_without_deleting_pods,
        wrong_model_deployments_are_refused_when_they_are_submitted,
        a_model_deployment_at_rest_costs_no_write,
        a_suspended_model_deployment_comes_back_with_all_its_pods,
    );
}

async fn the_seeds_model_has_all_that_the_seed_draws(env: &mut TestEnv) -> Result<()> {
    env.start(&["model-deployment"]).await?;
    let file = artifacts::repository().join("crds/samples/modeldeployment.yaml");
    env.namespace.apply(serde_saphyr::from_str(&std::fs::read_to_string(file)?)?).await?;
    serves(env, "ModelDeployment", "llama-3-70b").await?;
    for (kind, name) in [
        ("StatefulSet", "llama-3-70b"),
        ("Service", "llama-3-70b"),
        ("Service", "llama-3-70b-headless"),
        ("HorizontalPodAutoscaler", "llama-3-70b"),
        ("ConfigMap", "llama-3-70b-settings"),
        ("PodDisruptionBudget", "llama-3-70b"),
    ] {
        ensure!(env.namespace.get(kind, name).await?.is_some(), "there is no {kind} {name}");
    }
    for pod in ["llama-3-70b-0", "llama-3-70b-1", "llama-3-70b-2", "llama-3-70b-3"] {
        ensure!(env.namespace.get("Pod", pod).await?.is_some(), "there is no Pod {pod}");
    }
    // Nobody serves metrics here.
    says(env, ("ModelDeployment", "llama-3-70b"), "SLAMet", ("Unknown", "FailedGetExternalMetric")).await?;
    says(env, ("ModelDeployment", "llama-3-70b"), "SLAUnverified", ("True", "FailedGetExternalMetric")).await?;
    env.namespace.delete("ModelDeployment", "llama-3-70b").await?;
    for kind in ["StatefulSet", "Pod", "HorizontalPodAutoscaler"] {
        eventually(PATIENCE, &format!("no {kind}"), async || {
            let left = env.namespace.list(kind).await?;
            Ok(Look::of(left.is_empty(), left))
        })
        .await?;
    }
    Ok(())
}

/// Under the other policy, the Pods of the bad revision would block the good one.
async fn a_bad_image_is_followed_by_a_good_one_without_deleting_pods(env: &mut TestEnv) -> Result<()> {
    env.start(&["model-deployment"]).await?;
    env.namespace.apply(model_deployment("chat", json!({"replicas": 2}))).await?;
    serves(env, "ModelDeployment", "chat").await?;
    let pending = json!({"metadata": {"annotations": {pilothouse_control_plane::PENDING: ""}}});
    let bad = json!({"spec": {"image": "example.com/bad:1", "podTemplate": pending}});
    env.namespace.patch("ModelDeployment", "chat", bad).await?;
    let is_bad = |pod: &Value| pod["spec"]["containers"][0]["image"] == "example.com/bad:1";
    env.namespace.until("Pod", "chat-1", "to have the bad image", is_bad).await?;
    let half = |object: &Value| object["status"]["readyReplicas"] == 1;
    env.namespace.until("ModelDeployment", "chat", "to have one of two ready", half).await?;
    let good = json!({"spec": {"image": "vllm/vllm-openai:v0.20.1", "podTemplate": null}});
    env.namespace.patch("ModelDeployment", "chat", good).await?;
    serves(env, "ModelDeployment", "chat").await?;
    for pod in ["chat-0", "chat-1"] {
        let is_good = |pod: &Value| pod["spec"]["containers"][0]["image"] == "vllm/vllm-openai:v0.20.1";
        env.namespace.until("Pod", pod, "to have the good image", is_good).await?;
    }
    Ok(())
}

async fn wrong_model_deployments_are_refused_when_they_are_submitted(env: &mut TestEnv) -> Result<()> {
    for (spec, why) in [
        (json!({"sla": {"maxLatency": "soon"}}), "spec.sla.maxlatency"),
        (json!({"sla": {"latencyMetric": "mood"}}), "spec.sla.latencymetric"),
        (json!({"replicas": -1}), "spec.replicas"),
        (json!({"tensorParallelSize": 0}), "spec.tensorparallelsize"),
        (json!({"autoscaling": {"minReplicas": 3, "maxReplicas": 2}}), "minreplicas must be at most maxreplicas"),
        (json!({"autoscaling": {"autoscaler": "magic"}}), "spec.autoscaling.autoscaler"),
    ] {
        let Err(refusal) = env.namespace.apply(model_deployment("wrong", spec.clone())).await else {
            bail!("{spec} is taken")
        };
        let refusal = format!("{refusal:#}").to_lowercase();
        ensure!(refusal.contains(why), "{spec}: {refusal}");
    }
    Ok(())
}

async fn a_model_deployment_at_rest_costs_no_write(env: &mut TestEnv) -> Result<()> {
    env.start(&["model-deployment"]).await?;
    env.namespace
        .apply(model_deployment("chat", json!({"sla": {"maxLatency": "1.5s"}, "tensorParallelSize": 1})))
        .await?;
    serves(env, "ModelDeployment", "chat").await?;
    says(env, ("ModelDeployment", "chat"), "SLAUnverified", ("True", "FailedGetExternalMetric")).await?;
    for turn in 0..3 {
        env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", turn).await).await?;
    }
    let before = env.host_writes().await?;
    for turn in 3..8 {
        env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", turn).await).await?;
    }
    let after = env.host_writes().await?;
    ensure!(after.len() == before.len(), "it writes: {:#?}", &after[before.len()..]);
    Ok(())
}

async fn a_suspended_model_deployment_comes_back_with_all_its_pods(env: &mut TestEnv) -> Result<()> {
    env.start(&["model-deployment"]).await?;
    env.namespace.apply(model_deployment("chat", json!({"replicas": 3, "sla": {"maxLatency": "1s"}}))).await?;
    serves(env, "ModelDeployment", "chat").await?;
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"suspend": true}})).await?;
    let is_empty = |object: &Value| is_ready(object) && object["status"]["replicas"] == 0;
    env.namespace.until("ModelDeployment", "chat", "to have no Pods", is_empty).await?;
    env.namespace.until_gone("HorizontalPodAutoscaler", "chat").await?;
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"suspend": null}})).await?;
    serves(env, "ModelDeployment", "chat").await?;
    Ok(())
}
