//! `LLMDeployment`: the seed's example with what it prints, and what its model hands to it.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{artifacts, table::printed};
use serde_json::{Value, json};

use super::words::{deployment, model, serves};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

const GROUP: &str = "apis/llm.example.com/v1alpha1";

/// The plugins of the group.
pub const PLUGINS: [&str; 2] = ["llm-model", "llm-deployment"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_seeds_example_is_a_deployment_and_a_service,
        names_that_are_too_long_are_shortened_and_do_not_collide,
        two_kinds_of_one_name_do_not_share_pods,
        a_deployment_at_rest_costs_no_write,
    );
}

/// The two objects of the seed's example, from one file.
fn sample() -> Result<Vec<Value>> {
    let file = artifacts::repository().join("crds/samples/llmdeployment.yaml");
    Ok(serde_saphyr::from_multiple(&std::fs::read_to_string(file)?)?)
}

async fn the_seeds_example_is_a_deployment_and_a_service(env: &mut TestEnv) -> Result<()> {
    env.start(&PLUGINS).await?;
    for object in sample()? {
        env.namespace.apply(object).await?;
    }
    serves(env, "LLMDeployment", "chat-service").await?;
    let shown =
        printed(&env.namespace, GROUP, "llmdeployments", &["NAME", "MODEL", "DESIRED", "READY", "AVAILABLE"]).await?;
    let expected =
        ["NAME           MODEL       DESIRED   READY   AVAILABLE", "chat-service   gpt-small   2         2       True"];
    ensure!(shown == expected, "another table: {shown:#?}");
    let shown = printed(&env.namespace, GROUP, "llmmodels", &["NAME", "MODEL", "IMAGE"]).await?;
    let expected = ["NAME        MODEL       IMAGE", "gpt-small   GPT-Small   your-registry/gpt-small:v1"];
    ensure!(shown == expected, "another table: {shown:#?}");
    let shown = printed(&env.namespace, "apis/apps/v1", "deployments", &["NAME", "READY"]).await?;
    ensure!(shown == ["NAME           READY", "chat-service   2/2"], "another table: {shown:#?}");
    let shown = printed(&env.namespace, "api/v1", "services", &["NAME", "TYPE", "PORT(S)"]).await?;
    ensure!(shown == ["NAME           TYPE        PORT(S)", "chat-service   ClusterIP   8080/TCP"], "{shown:#?}");
    let deployment = env.namespace.get("Deployment", "chat-service").await?.context("no Deployment")?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    ensure!(container["resources"]["requests"] == json!({"cpu": "2", "memory": "4Gi"}), "{container}");
    ensure!(container["env"][1] == json!({"name": "PORT", "value": "8080"}), "{container}");
    Ok(())
}

async fn names_that_are_too_long_are_shortened_and_do_not_collide(env: &mut TestEnv) -> Result<()> {
    env.start(&PLUGINS).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    let long = "a".repeat(70);
    let names = [format!("{long}-1"), format!("{long}-2"), "1.dots".to_owned()];
    for name in &names {
        env.namespace.apply(deployment(name, json!({"replicas": 1}))).await?;
    }
    for name in &names {
        serves(env, "LLMDeployment", name).await?;
    }
    ensure!(env.namespace.list("Service").await?.len() == names.len(), "Services collide");
    Ok(())
}

/// An `LLMModel` of `ai.example.com` and an `LLMDeployment`, the names of whose workloads are equal.
async fn two_kinds_of_one_name_do_not_share_pods(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model", "llm-model", "llm-deployment"]).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    env.namespace.apply(super::words::server("chat", json!({}))).await?;
    serves(env, "LLMModel", "chat").await?;
    env.namespace.apply(deployment("llmmodel-chat", json!({}))).await?;
    super::words::says(env, ("LLMDeployment", "llmmodel-chat"), "Ready", ("False", "NameConflict")).await?;
    let pods = env.namespace.list("Pod").await?;
    ensure!(pods.len() == 2, "{} Pods", pods.len());
    Ok(())
}

async fn a_deployment_at_rest_costs_no_write(env: &mut TestEnv) -> Result<()> {
    env.start(&PLUGINS).await?;
    env.namespace.apply(model("gpt-small", json!({"gpuCount": 1}))).await?;
    env.namespace.apply(deployment("chat", json!({}))).await?;
    serves(env, "LLMDeployment", "chat").await?;
    let lists = |model: &Value| model["status"]["referencedBy"] == json!(["chat"]);
    env.namespace.until(super::words::MODEL, "gpt-small", "to list who serves it", lists).await?;
    for turn in 0..3 {
        env.reconciled_after("llm-deployment", async || env.touch("LLMDeployment", "chat", turn).await).await?;
    }
    let before = env.host_writes().await?;
    for turn in 3..8 {
        env.reconciled_after("llm-deployment", async || env.touch("LLMDeployment", "chat", turn).await).await?;
        env.reconciled_after("llm-model", async || env.touch(super::words::MODEL, "gpt-small", turn).await).await?;
    }
    let after = env.host_writes().await?;
    ensure!(after.len() == before.len(), "it writes: {:#?}", &after[before.len()..]);
    Ok(())
}
