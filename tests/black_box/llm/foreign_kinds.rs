//! Children of other projects' kinds, with the CRDs that those publish: every field that is returned is one that the kind has.

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    cluster::Cluster,
    third_party::{POD_MONITOR, SCALED_OBJECT, SERVICE_MONITOR},
};
use serde_json::{Value, json};

use super::{
    asked::Asked,
    words::{model_deployment, says, server},
};
use crate::{
    suite::{Suite, heavy},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    heavy!(suite, monitors_are_those_of_the_prometheus_operator, autoscalers_change_places_and_replicas_stay);
}

async fn monitors_are_those_of_the_prometheus_operator(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    for crd in [SERVICE_MONITOR, POD_MONITOR] {
        pilothouse_tests::cluster::install_crd(&env.namespace.client(), &crd.fetch().await?).await?;
    }
    env.start(&["ai-llm-model"]).await?;
    for (kind, endpoints) in [("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")] {
        let monitor = json!({"kind": kind, "interval": "15s", "labels": {"release": "prometheus"}});
        env.namespace.apply(server("chat", json!({"monitor": monitor}))).await?;
        let monitor = env.namespace.until(kind, "llmmodel-chat", "to be created", |_| true).await?;
        let endpoint = json!([{"port": "http", "path": "/metrics", "interval": "15s"}]);
        ensure!(monitor["spec"][endpoints] == endpoint, "a field is dropped: {monitor}");
        ensure!(monitor["metadata"]["labels"]["release"] == "prometheus", "{monitor}");
    }
    env.namespace.until_gone("ServiceMonitor", "llmmodel-chat").await
}

/// KEDA and the controllers of autoscalers do not run here: the test makes what they would.
async fn autoscalers_change_places_and_replicas_stay(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    env.start(&["model-deployment"]).await?;
    let asked = Asked::watch(env).await?;
    let keda =
        json!({"autoscaler": "keda", "keda": {"serverAddress": "http://prometheus:9090", "cooldownSeconds": 60}});
    let spec = json!({"sla": {"maxLatency": "100ms"}, "autoscaling": keda.clone()});
    env.namespace.apply(model_deployment("chat", spec)).await?;
    let message = says(env, ("ModelDeployment", "chat"), "KindsInstalled", ("False", "KindNotInstalled")).await?;
    ensure!(message.contains("spec.autoscaling.autoscaler needs keda.sh/v1alpha1 ScaledObject"), "{message}");
    env.namespace.until("StatefulSet", "chat", "to be created all the same", |_| true).await?;

    env.cluster.install_foreign_crd(&SCALED_OBJECT.fetch().await?).await?;
    let scaled_object = env.namespace.until("ScaledObject", "chat", "to be created", |_| true).await?;
    is_complete(&scaled_object)?;
    let of_keda = autoscaler_of_keda(&scaled_object)?;
    env.namespace.apply(of_keda.clone()).await?;
    observes(env, "87m").await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    scale(env, 4).await?;

    // From KEDA to an autoscaler of ours: the old one and what it made are gone before the new one comes.
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"autoscaling": {"autoscaler": "hpa"}}})).await?;
    env.namespace.until("HorizontalPodAutoscaler", "chat", "to be created", |_| true).await?;
    for (kind, name) in [("ScaledObject", "chat"), ("HorizontalPodAutoscaler", "chat-keda")] {
        ensure!(env.namespace.get(kind, name).await?.is_none(), "{kind} {name} is still there");
    }
    // And back.
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"autoscaling": {"autoscaler": "keda"}}})).await?;
    env.namespace.until("ScaledObject", "chat", "to be created again", |_| true).await?;
    ensure!(env.namespace.get("HorizontalPodAutoscaler", "chat").await?.is_none(), "two are in charge");
    ensure!(asked.all() == [2, 4], "replicas jump: {:?}", asked.all());
    Ok(())
}

/// Checks that the API server has kept every field.
fn is_complete(scaled_object: &Value) -> Result<()> {
    let spec = &scaled_object["spec"];
    ensure!(spec["cooldownPeriod"] == 60 && spec["minReplicaCount"] == 2 && spec["maxReplicaCount"] == 4, "{spec}");
    let config = &spec["advanced"]["horizontalPodAutoscalerConfig"];
    ensure!(config["name"] == "chat-keda" && config["behavior"]["scaleUp"]["policies"][0]["value"] == 2, "{config}");
    let triggers = spec["triggers"].as_array().context("no triggers")?;
    let kinds: Vec<_> = triggers.iter().map(|trigger| &trigger["metricType"]).collect();
    ensure!(kinds == ["Value", "AverageValue"], "{triggers:?}");
    ensure!(triggers.iter().all(|trigger| trigger["metadata"]["ignoreNullValues"] == "false"), "{triggers:?}");
    Ok(())
}

/// The autoscaler that KEDA makes of a ScaledObject.
fn autoscaler_of_keda(scaled_object: &Value) -> Result<Value> {
    let uid = scaled_object["metadata"]["uid"].as_str().context("no UID")?;
    let owner = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "chat", "uid": uid, "controller": true,
        "blockOwnerDeletion": true,
    });
    let external = json!({"metric": {"name": "s0-prometheus"}, "target": {"type": "Value", "value": "100m"}});
    Ok(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "chat-keda", "ownerReferences": [owner]},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "chat"}, "minReplicas": 2,
            "maxReplicas": 4, "metrics": [{"type": "External", "external": external}],
        },
    }))
}

/// Gives KEDA's autoscaler an observed latency.
async fn observes(env: &TestEnv, latency: &str) -> Result<()> {
    let current = json!({"metric": {"name": "s0-prometheus"}, "current": {"value": latency}});
    let status = json!({
        "currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": [{"type": "External", "external": current}],
        "conditions": [{"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound", "message": "m"}],
    });
    let autoscalers = env.namespace.api("HorizontalPodAutoscaler")?;
    let patch = Patch::Merge(json!({"status": status}));
    autoscalers.patch_status("chat-keda", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Scales the StatefulSet, as an autoscaler does.
async fn scale(env: &TestEnv, replicas: i64) -> Result<()> {
    let scale = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    env.namespace.api("StatefulSet")?.patch_scale("chat", &PatchParams::default(), &scale).await?;
    Ok(())
}
