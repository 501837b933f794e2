//! Objects of others beside those of a server: Pods with its labels, and objects that have the names of its children.

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::PENDING;
use pilothouse_tests::{
    cluster::{Cluster, PATIENCE, condition},
    nodes::set_pod_status,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{model_deployment, says, server, serves};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_pod_of_somebody_else_with_the_labels_is_not_the_servers_trouble,
        a_service_of_somebody_else_is_no_address_and_no_way_leads_to_it,
        no_autoscaler_scales_the_workload_of_somebody_else,
        a_server_that_is_refused_goes_on_to_be_counted,
    );
}

/// The status of a Pod whose image cannot be pulled.
fn pulls() -> Value {
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
    json!({"containerStatuses": [{
        "name": "model", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": waiting, "lastState": {},
    }]})
}

async fn a_pod_of_somebody_else_with_the_labels_is_not_the_servers_trouble(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model", "model-deployment"]).await?;
    let pending = json!({"metadata": {"annotations": {PENDING: ""}}});
    env.namespace.apply(server("chat", json!({"replicas": 1, "podTemplate": pending}))).await?;
    env.namespace.apply(model_deployment("chat", json!({"replicas": 1, "podTemplate": pending}))).await?;
    let cases = [
        ("ai-llm-model", "LLMModel", "llmmodel", "llmmodel-chat"),
        ("model-deployment", "ModelDeployment", "modeldeployment", "chat"),
    ];
    for (plugin, kind, component, instance) in cases {
        let selector = format!("app.kubernetes.io/component={component},app.kubernetes.io/instance={instance}");
        let own = pod_with(env, &selector).await?;
        let foreign = format!("a-foreign-{component}");
        env.namespace
            .apply(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": foreign, "annotations": {PENDING: ""}, "labels": {
                    "app.kubernetes.io/component": component, "app.kubernetes.io/instance": instance,
                }},
                "spec": {"containers": [{"name": "model", "image": "a:1"}]},
            }))
            .await?;
        set_pod_status(&env.namespace, &foreign, pulls()).await?;
        for turn in 0..2 {
            env.reconciled_after(plugin, async || env.touch(kind, "chat", turn).await).await?;
        }
        let object = env.namespace.get(kind, "chat").await?.context("no object")?;
        ensure!(condition(&object, "PodsHealthy")["status"] == "True", "the Pod of somebody else: {object}");
        set_pod_status(&env.namespace, &own, pulls()).await?;
        let message = says(env, (kind, "chat"), "PodsHealthy", ("False", "ImagePullBackOff")).await?;
        ensure!(message == format!("Pod {own}, container model: ImagePullBackOff: no such image"), "{message}");
    }
    Ok(())
}

/// Waits for the only Pod with these labels.
async fn pod_with(env: &TestEnv, selector: &str) -> Result<String> {
    let pods = env.namespace.api("Pod")?;
    let selected = kube::api::ListParams::default().labels(selector);
    eventually(PATIENCE, "a Pod of the server", async || {
        let mut names = pods.list(&selected).await?.items.into_iter().filter_map(|pod| pod.metadata.name);
        Ok(names.next().map_or_else(|| Look::NotYet(selector.to_owned()), Look::Found))
    })
    .await
}

async fn a_service_of_somebody_else_is_no_address_and_no_way_leads_to_it(env: &mut TestEnv) -> Result<()> {
    let of_others = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "llmmodel-chat"},
        "spec": {"selector": {"app": "other"}, "ports": [{"port": 80}]},
    });
    env.namespace.apply(of_others).await?;
    env.start(&["ai-llm-model"]).await?;
    env.namespace.apply(server("chat", json!({"ingress": {"host": "chat.example.com"}}))).await?;
    let object = env.stalled("LLMModel", "chat", "NameConflict").await?;
    ensure!(object["status"]["url"] == "", "an address of somebody else: {object}");
    for turn in 0..2 {
        env.reconciled_after("ai-llm-model", async || env.touch("LLMModel", "chat", turn).await).await?;
    }
    ensure!(env.namespace.get("Ingress", "llmmodel-chat").await?.is_none(), "a way to somebody else's Service");

    env.namespace.delete("Service", "llmmodel-chat").await?;
    env.touch("LLMModel", "chat", "now").await?;
    let object = serves(env, "LLMModel", "chat").await?;
    let url = format!("http://llmmodel-chat.{}.svc:8000", env.namespace.name);
    ensure!(object["status"]["url"] == url, "{object}");
    env.namespace.until("Ingress", "llmmodel-chat", "to be made", |_| true).await?;
    Ok(())
}

async fn no_autoscaler_scales_the_workload_of_somebody_else(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    let labels = json!({"mine": "yes"});
    let of_others = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "chat"},
        "spec": {
            "replicas": 1, "serviceName": "x", "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}},
        },
    });
    env.namespace.apply(of_others).await?;
    env.start(&["model-deployment"]).await?;
    env.namespace.apply(model_deployment("chat", json!({"sla": {"maxLatency": "100ms"}}))).await?;
    env.stalled("ModelDeployment", "chat", "NameConflict").await?;
    for turn in 0..2 {
        env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", turn).await).await?;
    }
    let writes = env.host_writes().await?;
    let scaled = writes.iter().find(|write| write.contains("horizontalpodautoscalers/ "));
    ensure!(scaled.is_none(), "somebody else's StatefulSet is scaled: {scaled:?}");

    env.namespace.delete("StatefulSet", "chat").await?;
    env.touch("ModelDeployment", "chat", "now").await?;
    let hpa = env.namespace.until("HorizontalPodAutoscaler", "chat", "to be made", |_| true).await?;
    ensure!(hpa["spec"]["scaleTargetRef"]["name"] == "chat", "{hpa}");
    Ok(())
}

/// Its Deployment goes on, whatever its user writes; and so do its numbers.
async fn a_server_that_is_refused_goes_on_to_be_counted(env: &mut TestEnv) -> Result<()> {
    env.start(&["ai-llm-model"]).await?;
    env.namespace.apply(server("chat", json!({}))).await?;
    let before = serves(env, "LLMModel", "chat").await?;
    let wrong = json!({"spec": {"drainSeconds": 60, "terminationGracePeriodSeconds": 60}});
    env.namespace.patch("LLMModel", "chat", wrong).await?;
    env.stalled("LLMModel", "chat", "Invalid").await?;
    env.namespace.patch("Deployment", "llmmodel-chat", json!({"spec": {"replicas": 0}})).await?;
    let is_empty = |object: &Value| {
        let status = &object["status"];
        status["replicas"] == 0 && status["readyReplicas"] == 0 && status["url"] == before["status"]["url"]
    };
    let object = env.namespace.until("LLMModel", "chat", "to have no Pods, and its address", is_empty).await?;
    ensure!(condition(&object, "Available")["status"] == "False", "{object}");
    Ok(())
}
