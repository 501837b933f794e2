//! An `LLMDeployment` follows its model: created later, edited, deleted, made anew.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::{
    deployment::PLUGINS,
    words::{MODEL, deployment, image, model, says, serves},
};
use crate::{
    suite::{Suite, tests, timed},
    test_env::TestEnv,
};

pub fn register_timed(suite: &mut Suite) {
    timed!(suite, a_change_of_the_model_arrives);
}

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_model_that_comes_later_is_waited_for,
        a_model_that_goes_leaves_its_servers_as_they_are,
        a_model_lists_who_serves_it,
        a_status_of_a_model_calls_none_of_its_servers,
        another_model_is_served_when_the_reference_changes,
    );
}

/// A model that is created after its deployment, and one that is edited.
async fn a_change_of_the_model_arrives(env: &mut TestEnv) -> Result<()> {
    env.start(&PLUGINS).await?;
    env.namespace.apply(deployment("chat", json!({}))).await?;
    says(env, ("LLMDeployment", "chat"), "ModelResolved", ("False", "ModelNotFound")).await?;
    let created = Instant::now();
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    env.namespace.until("Deployment", "chat", "to be created", |_| true).await?;
    let creation = created.elapsed();
    serves(env, "LLMDeployment", "chat").await?;
    let edited = Instant::now();
    env.namespace.patch(MODEL, "gpt-small", json!({"spec": {"image": "your-registry/gpt-small:v2"}})).await?;
    let has_image = |deployment: &Value| image(deployment) == "your-registry/gpt-small:v2";
    env.namespace.until("Deployment", "chat", "to have the new image", has_image).await?;
    let edit = edited.elapsed();
    // Told and not judged: how long it takes says as much of the machine as of the host.
    eprintln!("a new model arrived after {creation:?}, an edit after {edit:?}");
    Ok(())
}

async fn a_model_that_comes_later_is_waited_for(env: &mut TestEnv) -> Result<()> {
    env.start(&PLUGINS).await?;
    env.namespace.apply(deployment("chat", json!({}))).await?;
    let message = says(env, ("LLMDeployment", "chat"), "ModelResolved", ("False", "ModelNotFound")).await?;
    ensure!(message.contains("LLMModel 'gpt-small'"), "{message}");
    says(env, ("LLMDeployment", "chat"), "Ready", ("False", "ModelNotFound")).await?;
    env.event("LLMDeployment", "chat", "ModelNotFound").await?;
    for kind in ["Deployment", "Service"] {
        ensure!(env.namespace.list(kind).await?.is_empty(), "a {kind} was made");
    }
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    let served = serves(env, "LLMDeployment", "chat").await?;
    ensure!(condition(&served, "ModelResolved")["status"] == "True", "{served}");
    env.event("LLMDeployment", "chat", "ModelResolved").await?;
    Ok(())
}

/// The plugin looks up the spec of a model only, and is not called for anything else. No controller is there, whose work could call it.
async fn a_status_of_a_model_calls_none_of_its_servers(env: &mut TestEnv) -> Result<()> {
    let crds = ["llmmodels", "llmdeployments"].map(|plural| format!("crds/{plural}.llm.example.com.yaml"));
    env.move_to_api_server_with(&crds.each_ref().map(String::as_str)).await?;
    env.start(&PLUGINS).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    env.namespace.apply(deployment("chat", json!({}))).await?;
    let listed = |model: &Value| model["status"]["referencedBy"] == json!(["chat"]);
    env.namespace.until(MODEL, "gpt-small", "to list its server", listed).await?;
    env.metrics_at_rest().await?;
    let calls = env.calls("llm-deployment").await?;
    let emptied = Patch::Merge(json!({"status": {"referencedBy": []}}));
    env.namespace.api(MODEL)?.patch_status("gpt-small", &PatchParams::default(), &emptied).await?;
    env.namespace.until(MODEL, "gpt-small", "to list its server again", listed).await?;
    env.metrics_at_rest().await?;
    ensure!(env.calls("llm-deployment").await? == calls, "it was called for the status");
    Ok(())
}

async fn a_model_that_goes_leaves_its_servers_as_they_are(env: &mut TestEnv) -> Result<()> {
    env.start(&PLUGINS).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    env.namespace.apply(deployment("chat", json!({}))).await?;
    serves(env, "LLMDeployment", "chat").await?;
    let before = env.namespace.get("Deployment", "chat").await?.context("no Deployment")?;
    env.namespace.delete(MODEL, "gpt-small").await?;
    says(env, ("LLMDeployment", "chat"), "ModelResolved", ("False", "ModelNotFound")).await?;
    says(env, ("LLMDeployment", "chat"), "Available", ("True", "ReplicasAvailable")).await?;
    // Nothing of the deployment can be carried out now, not even a change of its own.
    env.namespace.patch("LLMDeployment", "chat", json!({"spec": {"replicas": 3}})).await?;
    let observed = |it: &Value| it["status"]["observedGeneration"] == it["metadata"]["generation"];
    env.namespace.until("LLMDeployment", "chat", "to be looked at", observed).await?;
    let after = env.namespace.get("Deployment", "chat").await?.context("the Deployment is gone")?;
    ensure!(after["spec"] == before["spec"] && after["metadata"]["uid"] == before["metadata"]["uid"], "{after}");
    ensure!(env.namespace.get("Service", "chat").await?.is_some(), "the Service is gone");

    env.namespace.apply(model("gpt-small", json!({"image": "your-registry/gpt-small:v3"}))).await?;
    let has_image = |deployment: &Value| image(deployment) == "your-registry/gpt-small:v3";
    env.namespace.until("Deployment", "chat", "to be made of the new model", has_image).await?;
    let served = serves(env, "LLMDeployment", "chat").await?;
    let model = env.namespace.get(MODEL, "gpt-small").await?.context("no model")?;
    ensure!(served["status"]["observedModel"]["uid"] == model["metadata"]["uid"], "{served}");
    Ok(())
}

async fn a_model_lists_who_serves_it(env: &mut TestEnv) -> Result<()> {
    env.start(&PLUGINS).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    let lists = async |names: Value| {
        let holds = |model: &Value| model["status"]["referencedBy"] == names;
        env.namespace.until(MODEL, "gpt-small", &format!("to list {names}"), holds).await
    };
    lists(json!([])).await?;
    for name in ["b", "a"] {
        env.namespace.apply(deployment(name, json!({"replicas": 0}))).await?;
    }
    lists(json!(["a", "b"])).await?;
    env.namespace.delete("LLMDeployment", "a").await?;
    lists(json!(["b"])).await?;
    env.namespace.apply(model("other", json!({}))).await?;
    env.namespace.patch("LLMDeployment", "b", json!({"spec": {"modelRef": "other"}})).await?;
    lists(json!([])).await?;
    Ok(())
}

async fn another_model_is_served_when_the_reference_changes(env: &mut TestEnv) -> Result<()> {
    env.start(&PLUGINS).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    env.namespace
        .apply(model("gpt-large", json!({"modelName": "GPT-Large", "image": "your-registry/gpt-large:v1"})))
        .await?;
    env.namespace.apply(deployment("chat", json!({}))).await?;
    serves(env, "LLMDeployment", "chat").await?;
    env.namespace.patch("LLMDeployment", "chat", json!({"spec": {"modelRef": "gpt-large"}})).await?;
    let has_image = |deployment: &Value| image(deployment) == "your-registry/gpt-large:v1";
    env.namespace.until("Deployment", "chat", "to have the other image", has_image).await?;
    // The old model no longer matters.
    env.namespace.patch(MODEL, "gpt-small", json!({"spec": {"image": "your-registry/gpt-small:v9"}})).await?;
    serves(env, "LLMDeployment", "chat").await?;
    let deployment = env.namespace.get("Deployment", "chat").await?.context("no Deployment")?;
    ensure!(has_image(&deployment), "{deployment}");
    Ok(())
}
