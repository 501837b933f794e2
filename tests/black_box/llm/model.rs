//! `LLMModel` of `ai.example.com`: the seed's examples with what they print, repair, scaling and deletion.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use pilothouse_tests::{
    artifacts,
    cluster::{Awaited, Cluster, PATIENCE, condition},
    nodes::gpu_node,
    table::printed,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{image, model_deployment, server, serves};
use crate::{
    suite::{Suite, heavy, tests},
    test_env::{TestEnv, is_ready},
};

/// The API paths of the kinds that are printed.
const MODELS: &str = "apis/ai.example.com/v1";
const APPS: &str = "apis/apps/v1";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_kind_alone_stores_objects_and_runs_nothing,
        the_seeds_model_is_served_and_printed_as_in_the_seed,
        the_seeds_model_is_scaled_by_a_patch,
        the_seeds_model_leaves_nothing_when_it_is_deleted,
        the_seeds_plain_deployment_is_what_a_model_stands_for,
        what_somebody_changes_is_repaired,
        a_model_is_scaled_by_the_scale_subresource,
        a_model_at_rest_costs_no_write,
        a_suspended_model_has_no_pods_until_it_is_resumed,
        the_status_subresource_is_there,
        all_children_of_a_model_are_taken_by_the_api_server,
    );
    heavy!(suite, a_definition_that_is_deleted_takes_everything_along_and_can_come_back);
}

/// A sample of the repository.
fn sample(name: &str) -> Result<Value> {
    let file = artifacts::repository().join("crds/samples").join(name);
    Ok(serde_saphyr::from_str(&std::fs::read_to_string(file)?)?)
}

/// `kubectl get llmmodels` prints what the seed prints; a host that is started later acts on what is there.
async fn a_kind_alone_stores_objects_and_runs_nothing(env: &mut TestEnv) -> Result<()> {
    ensure!(printed(&env.namespace, MODELS, "llmmodels", &[]).await?.is_empty(), "there are models already");
    env.namespace.apply(sample("llmmodel.yaml")?).await?;
    let expected = ["NAME                  MODEL", "llama-3-70b-serving   llama-3-70b"];
    ensure!(printed(&env.namespace, MODELS, "llmmodels", &[]).await? == expected, "another table");
    for kind in ["Deployment", "Pod"] {
        ensure!(env.namespace.list(kind).await?.is_empty(), "a {kind} was made");
    }
    env.start(&["ai-llm-model"]).await?;
    env.namespace.until("Deployment", "llmmodel-llama-3-70b-serving", "to be created", |_| true).await?;
    Ok(())
}

async fn the_seeds_model_is_served_and_printed_as_in_the_seed(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    env.namespace.apply(sample("llmmodel.yaml")?).await?;
    serves(env, "LLMModel", "llama-3-70b-serving").await?;
    let deployments = printed(&env.namespace, APPS, "deployments", &["NAME", "READY"]).await?;
    let expected = ["NAME                           READY", "llmmodel-llama-3-70b-serving   3/3"];
    ensure!(deployments == expected, "another table: {deployments:#?}");
    let pods = printed(&env.namespace, "api/v1", "pods", &["NAME", "READY"]).await?;
    let is_pod = |line: &String| line.starts_with("llmmodel-llama-3-70b-serving-") && line.ends_with("   1/1");
    ensure!(pods.len() == 4 && pods.iter().skip(1).all(is_pod), "another table: {pods:#?}");
    let models = printed(&env.namespace, MODELS, "llmmodels", &[]).await?;
    ensure!(
        models == ["NAME                  MODEL", "llama-3-70b-serving   llama-3-70b"],
        "another table: {models:#?}"
    );
    let deployment = env.namespace.get("Deployment", "llmmodel-llama-3-70b-serving").await?.context("no Deployment")?;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    ensure!(container["name"] == "model" && container["image"] == "vllm/vllm-openai:latest", "{container}");
    ensure!(container["env"][0] == json!({"name": "MODEL_NAME", "value": "llama-3-70b"}), "{container}");
    Ok(())
}

/// The seed's second model, with the node that it needs.
async fn start_with_new_model(env: &mut TestEnv) -> Result<()> {
    gpu_node(&env.namespace, "node-a100", "NVIDIA-A100-SXM4-80GB").await?;
    env.start(&["ai-llm-model"]).await?;
    let spec = json!({"modelName": "llama-3-8b", "replicas": 2, "gpuType": "A100"});
    env.namespace.apply(server("my-new-model", spec)).await?;
    let deployment = env.namespace.until("Deployment", "llmmodel-my-new-model", "to be created", |_| true).await?;
    ensure!(deployment["spec"]["replicas"] == 2, "{deployment}");
    serves(env, "LLMModel", "my-new-model").await?;
    Ok(())
}

async fn the_seeds_model_is_scaled_by_a_patch(env: &mut TestEnv) -> Result<()> {
    start_with_new_model(env).await?;
    let patch = serde_json::from_value(json!([{"op": "replace", "path": "/spec/replicas", "value": 5}]))?;
    let models = env.namespace.api("LLMModel")?;
    models.patch("my-new-model", &PatchParams::default(), &Patch::Json::<()>(patch)).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 5;
    env.namespace.until("Deployment", "llmmodel-my-new-model", "to have 5 replicas", scaled).await?;
    serves(env, "LLMModel", "my-new-model").await?;
    ensure!(env.namespace.list("Pod").await?.len() == 5, "not five Pods");
    Ok(())
}

async fn the_seeds_model_leaves_nothing_when_it_is_deleted(env: &mut TestEnv) -> Result<()> {
    start_with_new_model(env).await?;
    env.namespace.delete("LLMModel", "my-new-model").await?;
    env.namespace.until_gone("LLMModel", "my-new-model").await?;
    for kind in ["Deployment", "Pod", "PodDisruptionBudget"] {
        eventually(PATIENCE, &format!("no {kind}"), async || {
            let left = env.namespace.list(kind).await?;
            Ok(Look::of(left.is_empty(), left))
        })
        .await?;
    }
    env.namespace.until_gone("Service", "llmmodel-my-new-model").await
}

async fn the_seeds_plain_deployment_is_what_a_model_stands_for(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    let spec = json!({"modelName": "llama-3-70b", "replicas": 1, "gpuCount": 4});
    env.namespace.apply(server("my-model", spec)).await?;
    serves(env, "LLMModel", "my-model").await?;
    let pod = env.namespace.list("Pod").await?.into_iter().next().context("no Pod")?;
    let container = &pod["spec"]["containers"][0];
    ensure!(container["args"] == json!(["--model", "llama-3-70b", "--tensor-parallel-size", "4"]), "{container}");
    ensure!(container["resources"]["limits"] == json!({"nvidia.com/gpu": "4"}), "{container}");
    Ok(())
}

/// Replicas, image, arguments and a variable of the Deployment, and the Deployment itself.
async fn what_somebody_changes_is_repaired(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    env.namespace.apply(server("chat", json!({}))).await?;
    serves(env, "LLMModel", "chat").await?;
    let before = env.namespace.get("Deployment", "llmmodel-chat").await?.context("no Deployment")?;
    let container = |fields: Value| json!({"spec": {"template": {"spec": {"containers": [fields]}}}});
    let edits = [
        json!({"spec": {"replicas": 7}}),
        container(json!({"name": "model", "image": "example.com/other:1"})),
        container(json!({"name": "model", "args": ["--model", "other"]})),
        container(json!({"name": "model", "env": [{"name": "MODEL_NAME", "value": "other"}]})),
    ];
    let deployments = env.namespace.api("Deployment")?;
    for edit in edits {
        deployments.patch("llmmodel-chat", &PatchParams::default(), &Patch::Strategic(&edit)).await?;
        let repaired = |deployment: &Value| deployment["spec"] == before["spec"];
        env.namespace.until("Deployment", "llmmodel-chat", &format!("to be repaired after {edit}"), repaired).await?;
    }
    deployments.delete("llmmodel-chat", &DeleteParams::default()).await?;
    let is_new = |deployment: &Value| deployment["metadata"]["uid"] != before["metadata"]["uid"];
    env.namespace.until("Deployment", "llmmodel-chat", "to be made anew", is_new).await?;
    serves(env, "LLMModel", "chat").await?;
    Ok(())
}

async fn a_model_is_scaled_by_the_scale_subresource(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    env.namespace.apply(server("chat", json!({}))).await?;
    serves(env, "LLMModel", "chat").await?;
    let models = env.namespace.api("LLMModel")?;
    models.patch_scale("chat", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}}))).await?;
    serves(env, "LLMModel", "chat").await?;
    let scale = serde_json::to_value(models.get_scale("chat").await?)?;
    ensure!(scale["spec"]["replicas"] == 3 && scale["status"]["replicas"] == 3, "{scale}");
    let selector = "app.kubernetes.io/component=llmmodel,app.kubernetes.io/instance=llmmodel-chat";
    ensure!(scale["status"]["selector"] == selector, "{scale}");
    Ok(())
}

async fn a_model_at_rest_costs_no_write(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    env.namespace
        .apply(server("chat", json!({"gpuCount": 2, "networkPolicy": {}, "ingress": {"host": "a.example.com"}})))
        .await?;
    serves(env, "LLMModel", "chat").await?;
    for turn in 0..3 {
        env.reconciled_after("ai-llm-model", async || env.touch("LLMModel", "chat", turn).await).await?;
    }
    let before = env.host_writes().await?;
    for turn in 3..8 {
        env.reconciled_after("ai-llm-model", async || env.touch("LLMModel", "chat", turn).await).await?;
    }
    let after = env.host_writes().await?;
    ensure!(after.len() == before.len(), "it writes: {:#?}", &after[before.len()..]);
    Ok(())
}

async fn a_suspended_model_has_no_pods_until_it_is_resumed(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    env.namespace.apply(server("chat", json!({}))).await?;
    serves(env, "LLMModel", "chat").await?;
    env.namespace.patch("LLMModel", "chat", json!({"spec": {"suspend": true}})).await?;
    let is_empty = |model: &Value| is_ready(model) && model["status"]["replicas"] == 0;
    env.namespace.until("LLMModel", "chat", "to have no Pods", is_empty).await?;
    ensure!(env.namespace.get("Service", "llmmodel-chat").await?.is_some(), "the Service is gone");
    env.namespace.patch("LLMModel", "chat", json!({"spec": {"suspend": null}})).await?;
    serves(env, "LLMModel", "chat").await?;
    Ok(())
}

/// Row B12: `kubectl get crd llmmodels.ai.example.com -o jsonpath='{.spec.versions[0].subresources}'`.
async fn the_status_subresource_is_there(env: &mut TestEnv) -> Result<()> {
    let crd = env.namespace.get("CustomResourceDefinition", "llmmodels.ai.example.com").await?.context("no CRD")?;
    let version = &crd["spec"]["versions"][0];
    ensure!(version["subresources"]["status"] == json!({}), "{}", version["subresources"]);
    ensure!(crd["spec"]["names"]["shortNames"] == json!(["llm"]), "{}", crd["spec"]["names"]);
    Ok(())
}

/// Everything at once that a stock API server takes; what it refused would be a condition.
async fn all_children_of_a_model_are_taken_by_the_api_server(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    let spec = json!({
        "replicas": 2, "gpuCount": 2, "gpuDeviceClass": "gpu.example.com", "image": "vllm/vllm-openai:v0.20.1",
        "modelSource": {"uri": "hf://meta-llama/Llama-3-8B:main", "secretRef": {"name": "hf"}, "sizeLimit": "100Gi"},
        "loraAdapters": [{"name": "sql", "path": "/adapters/sql"}], "env": [{"name": "A", "value": ""}],
        "networkPolicy": {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
        "ingress": {"host": "llm.example.com", "className": "nginx", "tlsSecretName": "certificate"},
        "disruptionBudget": {"minAvailable": 1},
        "podTemplate": {"spec": {"tolerations": [{"key": "spot", "operator": "Exists"}], "priorityClassName": "system-node-critical"}},
    });
    env.namespace.apply(server("chat", spec)).await?;
    for kind in ["Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "Ingress"] {
        env.namespace.until(kind, "llmmodel-chat", "to be created", |_| true).await?;
    }
    ensure!(env.namespace.list("ResourceClaimTemplate").await?.len() == 1, "no claim template");
    // Nobody offers such devices here, which may be known sooner or later.
    let reported = |model: &Value| {
        let reason = &condition(model, "Ready")["reason"];
        is_ready(model) || reason == "Progressing" || reason == "Unschedulable"
    };
    env.namespace.until("LLMModel", "chat", "to have all children", reported).await?;
    // A change of the number of devices replaces the claim template.
    env.namespace.patch("LLMModel", "chat", json!({"spec": {"gpuCount": 1}})).await?;
    eventually(PATIENCE, "one claim template for one device", async || {
        let templates = env.namespace.list("ResourceClaimTemplate").await?;
        let counts: Vec<_> = templates
            .iter()
            .map(|it| it["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"].clone())
            .collect();
        Ok(Look::of(counts == [json!(1)], counts))
    })
    .await?;
    let deployment = env.namespace.get("Deployment", "llmmodel-chat").await?.context("no Deployment")?;
    ensure!(image(&deployment) == "vllm/vllm-openai:v0.20.1", "{deployment}");
    Ok(())
}

/// `kubectl delete crd llmmodels.ai.example.com` deletes all models. The host goes on, and serves again when the definition is back.
async fn a_definition_that_is_deleted_takes_everything_along_and_can_come_back(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    env.start(&["ai-llm-model", "model-deployment"]).await?;
    env.namespace.apply(server("chat", json!({}))).await?;
    serves(env, "LLMModel", "chat").await?;
    env.namespace.delete("CustomResourceDefinition", "llmmodels.ai.example.com").await?;
    for kind in ["Deployment", "Pod", "Service"] {
        eventually(PATIENCE, &format!("no {kind}"), async || {
            let left = env.namespace.list(kind).await?;
            Ok(Look::of(left.is_empty(), left))
        })
        .await?;
    }
    // Meanwhile other kinds are served.
    env.namespace.apply(model_deployment("other", json!({"replicas": 1}))).await?;
    serves(env, "ModelDeployment", "other").await?;
    env.cluster.install_foreign_crd(&artifacts::repository().join("crds/llmmodels.ai.example.com.yaml")).await?;
    env.namespace.apply(server("chat", json!({}))).await?;
    let awaited = Awaited { kind: "LLMModel", name: "chat", what: "to be served again" };
    env.namespace.until_within(Duration::from_secs(90), &awaited, is_ready).await?;
    Ok(())
}
