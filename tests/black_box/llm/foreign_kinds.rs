//! Children of other projects' kinds, with the CRDs that those publish: every field that is returned is one that the kind has.

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    cluster::Cluster,
    keda_webhook::KedaWebhook,
    third_party::{HTTP_ROUTE, INFERENCE_POOL, POD_MONITOR, SCALED_OBJECT, SERVICE_MONITOR},
};
use serde_json::{Value, json};

use super::{
    seen::Seen,
    words::{model_deployment, says, server},
};
use crate::{
    suite::{Suite, heavy},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    heavy!(
        suite,
        monitors_are_those_of_the_prometheus_operator,
        autoscalers_change_places_and_replicas_stay,
        a_gateway_leads_to_a_pool_of_servers_or_to_their_service,
    );
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

async fn a_gateway_leads_to_a_pool_of_servers_or_to_their_service(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    env.cluster.install_foreign_crd(&HTTP_ROUTE.fetch().await?).await?;
    env.start(&["ai-llm-model"]).await?;
    let gateway = json!({"name": "public", "namespace": "gateways", "sectionName": "https"});
    let picker = json!({"name": "picker", "port": 9003, "failureMode": "FailOpen"});
    let spec = json!({
        "port": 8080, "httpRoute": {"gateway": gateway, "hostnames": ["llm.example.com"], "path": "/v1"},
        "inferencePool": {"endpointPicker": picker},
    });
    env.namespace.apply(server("chat", spec)).await?;
    let message = says(env, ("LLMModel", "chat"), "KindsInstalled", ("False", "KindNotInstalled")).await?;
    ensure!(message.contains("spec.inferencePool needs inference.networking.k8s.io/v1 InferencePool"), "{message}");
    let route = env.namespace.until("HTTPRoute", "llmmodel-chat", "to be created", |_| true).await?;
    let (spec, rule) = (&route["spec"], &route["spec"]["rules"][0]);
    let parent = &spec["parentRefs"][0];
    ensure!(
        parent["name"] == "public" && parent["namespace"] == "gateways" && parent["sectionName"] == "https",
        "{spec}"
    );
    ensure!(spec["hostnames"] == json!(["llm.example.com"]), "{spec}");
    ensure!(rule["matches"][0]["path"] == json!({"type": "PathPrefix", "value": "/v1"}), "{rule}");
    ensure!(rule["timeouts"] == json!({"request": "0s", "backendRequest": "0s"}), "{rule}");
    let backend = &rule["backendRefs"][0];
    ensure!(backend["kind"] == "Service" && backend["name"] == "llmmodel-chat" && backend["port"] == 8080, "{backend}");

    // The pool takes the place of the Service as soon as there can be one.
    env.cluster.install_foreign_crd(&INFERENCE_POOL.fetch().await?).await?;
    let pool = env.namespace.until("InferencePool", "llmmodel-chat", "to be created", |_| true).await?;
    let spec = &pool["spec"];
    ensure!(spec["targetPorts"] == json!([{"number": 8080}]), "{spec}");
    ensure!(spec["selector"]["matchLabels"]["app.kubernetes.io/instance"] == "llmmodel-chat", "{spec}");
    let reference = &spec["endpointPickerRef"];
    ensure!(reference["port"]["number"] == 9003 && reference["failureMode"] == "FailOpen", "{reference}");
    let leads_to_pool = |route: &Value| route["spec"]["rules"][0]["backendRefs"][0]["kind"] == "InferencePool";
    env.namespace.until("HTTPRoute", "llmmodel-chat", "to lead to the pool", leads_to_pool).await?;
    env.namespace.patch("LLMModel", "chat", json!({"spec": {"httpRoute": null, "inferencePool": null}})).await?;
    env.namespace.until_gone("HTTPRoute", "llmmodel-chat").await?;
    env.namespace.until_gone("InferencePool", "llmmodel-chat").await
}

/// KEDA and the controllers of autoscalers do not run here: the test makes what they would.
async fn autoscalers_change_places_and_replicas_stay(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    env.start(&["model-deployment"]).await?;
    let asked = Seen::asked(env).await?;
    let keda =
        json!({"autoscaler": "keda", "keda": {"serverAddress": "http://prometheus:9090", "cooldownSeconds": 60}});
    let spec = json!({"sla": {"maxLatency": "100ms"}, "autoscaling": keda.clone()});
    env.namespace.apply(model_deployment("chat", spec)).await?;
    let message = says(env, ("ModelDeployment", "chat"), "KindsInstalled", ("False", "KindNotInstalled")).await?;
    ensure!(message.contains("spec.autoscaling.autoscaler needs keda.sh/v1alpha1 ScaledObject"), "{message}");
    env.namespace.until("StatefulSet", "chat", "to be created all the same", |_| true).await?;

    env.cluster.install_foreign_crd(&SCALED_OBJECT.fetch().await?).await?;
    let _webhook = KedaWebhook::start(&env.namespace.client()).await?;
    let scaled_object = env.namespace.until("ScaledObject", "chat", "to be created", |_| true).await?;
    is_complete(&scaled_object)?;
    let of_keda = autoscaler_of_keda(&scaled_object)?;
    env.namespace.apply(of_keda.clone()).await?;
    observes(env, "87m").await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("Unknown", "NoPodsReady")).await?;
    have_ready_pods(env).await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    scale(env, 4).await?;

    // From KEDA to an autoscaler of ours: the old one and what it made are gone before the new one comes.
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"autoscaling": {"autoscaler": "hpa"}}})).await?;
    env.namespace.until("HorizontalPodAutoscaler", "chat", "to be created", |_| true).await?;
    for (kind, name) in [("ScaledObject", "chat"), ("HorizontalPodAutoscaler", "chat.keda")] {
        ensure!(env.namespace.get(kind, name).await?.is_none(), "{kind} {name} is still there");
    }
    // And back.
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"autoscaling": {"autoscaler": "keda"}}})).await?;
    env.namespace.until("ScaledObject", "chat", "to be created again", |_| true).await?;
    let refused = env
        .host_writes()
        .await?
        .into_iter()
        .find(|write| write.starts_with("patch scaledobjects/ ") && write.ends_with("403"));
    ensure!(refused.is_none(), "KEDA's admission refused it while another autoscaler was there");
    ensure!(env.namespace.get("HorizontalPodAutoscaler", "chat").await?.is_none(), "two are in charge");
    ensure!(asked.all() == [2, 4], "replicas jump: {:?}", asked.all());
    Ok(())
}

/// Checks that the API server has kept every field.
fn is_complete(scaled_object: &Value) -> Result<()> {
    let spec = &scaled_object["spec"];
    ensure!(spec["cooldownPeriod"] == 60 && spec["minReplicaCount"] == 2 && spec["maxReplicaCount"] == 4, "{spec}");
    let config = &spec["advanced"]["horizontalPodAutoscalerConfig"];
    ensure!(config["name"] == "chat.keda" && config["behavior"]["scaleUp"]["policies"][0]["value"] == 2, "{config}");
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
        "metadata": {"name": "chat.keda", "ownerReferences": [owner]},
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
    autoscalers.patch_status("chat.keda", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Gives the StatefulSet the status that its controller would, once its Pods are ready.
async fn have_ready_pods(env: &TestEnv) -> Result<()> {
    let status = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2});
    let patch = Patch::Merge(json!({"status": status}));
    env.namespace.api("StatefulSet")?.patch_status("chat", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Scales the StatefulSet, as an autoscaler does.
async fn scale(env: &TestEnv, replicas: i64) -> Result<()> {
    let scale = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    env.namespace.api("StatefulSet")?.patch_scale("chat", &PatchParams::default(), &scale).await?;
    Ok(())
}
