//! The Pods' own trouble comes up in the object, with the Pod's name and the words that help, and goes when it is over.

use anyhow::{Result, ensure};
use pilothouse_control_plane::PENDING;
use pilothouse_tests::{
    cluster::PATIENCE,
    nodes::set_pod_status,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{first_pod, says, server, serves};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_trouble_of_a_pod_is_told_until_it_is_over,
        gpus_that_no_node_has_are_told,
        a_kind_that_is_not_installed_is_told,
    );
}

/// A container status that a node may write: its reason, and the words that must come up.
fn troubles() -> Vec<(Value, &'static str, &'static str)> {
    let container = |name: &str, state: Value, last: Value| {
        json!({
            "name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 1, "state": state, "lastState": last,
        })
    };
    let waiting = |reason: &str, message: &str| json!({"waiting": {"reason": reason, "message": message}});
    let ended = |code: i32, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason}});
    let pulls = container("model", waiting("ImagePullBackOff", "no such image"), json!({}));
    let dies = container("model", waiting("CrashLoopBackOff", "back-off"), ended(137, "OOMKilled"));
    let stalls = container("model-download", waiting("CrashLoopBackOff", "back-off"), ended(124, "Error"));
    vec![
        (json!({"containerStatuses": [pulls]}), "ImagePullBackOff", "container model: ImagePullBackOff: no such image"),
        (json!({"containerStatuses": [dies]}), "OOMKilled", "container model: OOMKilled, exit code 137"),
        (
            json!({"initContainerStatuses": [stalls]}),
            "ModelDownloadFailed",
            "download of the model: CrashLoopBackOff, its deadline passed: back-off",
        ),
    ]
}

async fn the_trouble_of_a_pod_is_told_until_it_is_over(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    let pending = json!({"metadata": {"annotations": {PENDING: ""}}});
    let source = json!({"uri": "hf://meta-llama/Llama-3-8B"});
    env.namespace.apply(server("chat", json!({"replicas": 1, "podTemplate": pending, "modelSource": source}))).await?;
    eventually(PATIENCE, "the Pod", async || {
        let pods = env.namespace.list("Pod").await?.len();
        Ok(Look::of(pods == 1, pods))
    })
    .await?;
    let pod = first_pod(env).await?;
    for (status, reason, words) in troubles() {
        set_pod_status(&env.namespace, &pod, json!({"containerStatuses": null, "initContainerStatuses": null})).await?;
        set_pod_status(&env.namespace, &pod, status).await?;
        let message = says(env, ("LLMModel", "chat"), "PodsHealthy", ("False", reason)).await?;
        ensure!(message == format!("Pod {pod}, {words}"), "{message}");
        let ready = says(env, ("LLMModel", "chat"), "Ready", ("False", reason)).await?;
        ensure!(ready.contains(words), "{ready}");
        env.event("LLMModel", "chat", reason).await?;
    }
    set_pod_status(&env.namespace, &pod, json!({"containerStatuses": null, "initContainerStatuses": null})).await?;
    env.namespace.patch("Pod", &pod, json!({"metadata": {"annotations": {PENDING: null}}})).await?;
    serves(env, "LLMModel", "chat").await?;
    says(env, ("LLMModel", "chat"), "PodsHealthy", ("True", "Healthy")).await?;
    env.event("LLMModel", "chat", "ModelServerReady").await?;
    Ok(())
}

async fn gpus_that_no_node_has_are_told(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    env.namespace.apply(server("chat", json!({"replicas": 1, "gpuCount": 64}))).await?;
    let message = says(env, ("LLMModel", "chat"), "PodsHealthy", ("False", "Unschedulable")).await?;
    ensure!(message.contains("Insufficient nvidia.com/gpu"), "{message}");
    env.namespace.apply(server("other", json!({"replicas": 1, "gpuType": "X9000"}))).await?;
    let message = says(env, ("LLMModel", "other"), "GpuTypeKnown", ("False", "UnknownGpuType")).await?;
    ensure!(message.contains("nvidia.com/gpu.product is 'X9000'"), "{message}");
    says(env, ("LLMModel", "other"), "PodsHealthy", ("False", "Unschedulable")).await?;
    Ok(())
}

async fn a_kind_that_is_not_installed_is_told(env: &mut TestEnv) -> Result<()> {
    // A control plane of its own: others may install the kind.
    let parts = pilothouse_control_plane::Parts::Api;
    env.move_to(pilothouse_tests::cluster::Cluster::with(parts).await?).await?;
    let crd = pilothouse_tests::artifacts::repository().join("crds/llmmodels.ai.example.com.yaml");
    pilothouse_tests::cluster::install_crd(&env.namespace.client(), &crd).await?;
    env.start(&["ai-llm-model"]).await?;
    env.namespace.apply(server("chat", json!({"monitor": {"kind": "PodMonitor"}}))).await?;
    let message = says(env, ("LLMModel", "chat"), "KindsInstalled", ("False", "KindNotInstalled")).await?;
    ensure!(message.contains("spec.monitor needs monitoring.coreos.com/v1 PodMonitor"), "{message}");
    env.namespace.until("Deployment", "llmmodel-chat", "to be created all the same", |_| true).await?;
    Ok(())
}
