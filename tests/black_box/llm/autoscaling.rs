//! Autoscaling against the real controller of HorizontalPodAutoscalers and a metrics API that the test serves.

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::PENDING;
use pilothouse_tests::{
    cluster::{Awaited, Cluster, condition},
    metrics_api::MetricsApi,
    thoroughness,
};
use serde_json::{Value, json};

use super::{
    seen::Seen,
    words::{LATENCY, QUEUE, deployment, metrics_of_vllm, model, model_deployment, says, server, serves},
};
use crate::{
    suite::{Suite, heavy, heavy_with},
    test_env::TestEnv,
};

/// The time limit for several rounds of an autoscaler.
const LONG: std::time::Duration = std::time::Duration::from_secs(90);

pub fn register(suite: &mut Suite) {
    heavy_with!(suite, thoroughness::all(), replicas_follow_the_latency_and_never_jump);
    heavy!(
        suite,
        pods_that_do_not_get_ready_are_not_followed_by_more,
        every_kind_can_be_scaled_by_an_autoscaler_of_its_user,
    );
}

async fn replicas_follow_the_latency_and_never_jump(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let metrics = metrics_of_vllm(env, "50m").await?;
    env.start(&["model-deployment"]).await?;
    let asked = Seen::asked(env).await?;
    let quick = json!({
        "maxReplicas": 6, "scaleUpPods": 2, "scaleUpPeriodSeconds": 4, "scaleDownStabilizationSeconds": 3,
    });
    let spec = json!({"replicas": 2, "sla": {"maxLatency": "100ms"}, "autoscaling": quick});
    env.namespace.apply(model_deployment("chat", spec)).await?;
    serves(env, "ModelDeployment", "chat").await?;

    // Within the SLA: no scale-up, and the latency is in the status.
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    metrics.set(LATENCY, "70m");
    shows(env, "70ms").await?;
    ensure!(asked.all() == [2], "70 % of the SLA changes nothing: {:?}", asked.all());

    // Far above it: more, but only so many at a time.
    metrics.set(LATENCY, "5");
    has_replicas(env, 6).await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("False", "LatencyAboveSLA")).await?;
    env.event("ModelDeployment", "chat", "SLAMissed").await?;
    ensure!(asked.all() == [2, 4, 6], "not two at a time: {:?}", asked.all());

    // What the autoscaler has set stays, also when the object changes and the host starts anew.
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"args": ["--max-model-len", "8192"]}})).await?;
    has_args(env).await?;
    env.host.stop().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", "again").await).await?;
    ensure!(asked.all() == [2, 4, 6], "replicas were reverted: {:?}", asked.all());

    // Metrics gone: unverified, and nothing changes.
    metrics.remove(LATENCY);
    metrics.remove(QUEUE);
    says(env, ("ModelDeployment", "chat"), "SLAUnverified", ("True", "FailedGetExternalMetric")).await?;
    ensure!(asked.all() == [2, 4, 6], "replicas changed without metrics: {:?}", asked.all());

    // An autoscaler that goes leaves its number, although the spec has asked for 2 all the time.
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"autoscaling": {"autoscaler": "none"}}})).await?;
    env.namespace.until_gone("HorizontalPodAutoscaler", "chat").await?;
    env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", "alone").await).await?;
    let keeps = |object: &Value| object["status"]["keptReplicas"] == 6;
    env.namespace.until("ModelDeployment", "chat", "to keep 6 Pods", keeps).await?;
    ensure!(asked.all() == [2, 4, 6], "the Pods went with the autoscaler: {:?}", asked.all());

    // Without the autoscaler the spec decides, and with it again the autoscaler starts from there. Never is there only one Pod.
    let none = json!({"spec": {"replicas": 5, "autoscaling": {"autoscaler": "none"}}});
    env.namespace.patch("ModelDeployment", "chat", none).await?;
    has_replicas(env, 5).await?;
    env.namespace.until_gone("HorizontalPodAutoscaler", "chat").await?;
    metrics.set(LATENCY, "20m");
    metrics.set(QUEUE, "0");
    env.namespace
        .patch("ModelDeployment", "chat", json!({"spec": {"replicas": 2, "autoscaling": {"autoscaler": null}}}))
        .await?;
    has_replicas(env, 2).await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    let all = asked.all();
    ensure!(all == [2, 4, 6, 5, 4, 3, 2], "it jumps: {all:?}");

    // A queue is a load by itself.
    metrics.set(QUEUE, "20");
    has_replicas(env, 4).await?;
    Ok(())
}

/// A breach of fifty times the SLA asks for fifty times the Pods; while those that were added still start, nothing is known of what they
/// will change.
async fn pods_that_do_not_get_ready_are_not_followed_by_more(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let metrics = metrics_of_vllm(env, "50m").await?;
    env.start(&["model-deployment"]).await?;
    let asked = Seen::asked(env).await?;
    let starts = json!({"metadata": {"annotations": {PENDING: ""}}});
    let spec = json!({
        "replicas": 2, "sla": {"maxLatency": "100ms"}, "autoscaling": {"maxReplicas": 100, "scaleUpPods": 3}, "podTemplate": starts,
    });
    env.namespace.apply(model_deployment("chat", spec)).await?;
    for pod in ["chat-0", "chat-1"] {
        env.namespace.until("Pod", pod, "to be created", |_| true).await?;
        env.namespace.patch("Pod", pod, json!({"metadata": {"annotations": {PENDING: null}}})).await?;
    }
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    metrics.set(LATENCY, "5");
    has_replicas(env, 5).await?;
    // The autoscaler says itself that it is held back, and has looked at the five Pods by then.
    let is_held = |hpa: &Value| {
        condition(hpa, "ScalingLimited")["reason"] == "ScaleUpLimit" && hpa["status"]["currentReplicas"] == 5
    };
    env.namespace.until("HorizontalPodAutoscaler", "chat", "to be held back", is_held).await?;
    ensure!(asked.all() == [2, 5], "more than three in the time that one takes to start: {:?}", asked.all());
    Ok(())
}

/// An autoscaler finds the Pods by the scale subresource: without a selector there, it does nothing.
async fn every_kind_can_be_scaled_by_an_autoscaler_of_its_user(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let metrics = MetricsApi::start(&env.namespace.client()).await?;
    metrics.set(QUEUE, "0");
    env.start(&["ai-llm-model", "llm-model", "llm-deployment", "model-deployment"]).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    let objects = [server("a", json!({})), deployment("b", json!({})), model_deployment("c", json!({}))];
    for object in &objects {
        env.namespace.apply(object.clone()).await?;
    }
    for object in &objects {
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        serves(env, kind, name).await?;
        env.namespace.apply(autoscaler_of_user(object)).await?;
        let is_active = |hpa: &Value| condition(hpa, "ScalingActive")["status"] == "True";
        env.namespace.until("HorizontalPodAutoscaler", &format!("{name}-user"), "to be active", is_active).await?;
    }
    metrics.set(QUEUE, "12");
    for (kind, name) in [("Deployment", "llmmodel-a"), ("Deployment", "b"), ("StatefulSet", "c")] {
        let awaited = Awaited { kind, name, what: "to be scaled to 3" };
        env.namespace.until_within(LONG, &awaited, |workload| workload["spec"]["replicas"] == 3).await?;
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// An autoscaler of the user, which scales the object itself.
fn autoscaler_of_user(object: &Value) -> Value {
    let target =
        json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"]});
    let external = json!({"metric": {"name": QUEUE}, "target": {"type": "AverageValue", "averageValue": "4"}});
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": format!("{}-user", text(&object["metadata"]["name"]))},
        "spec": {
            "scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4,
            "metrics": [{"type": "External", "external": external}],
        },
    })
}

/// Waits until the StatefulSet is asked for so many Pods.
async fn has_replicas(env: &TestEnv, replicas: i64) -> Result<()> {
    let what = format!("to be asked for {replicas} Pods");
    let awaited = Awaited { kind: "StatefulSet", name: "chat", what: &what };
    env.namespace.until_within(LONG, &awaited, |it| it["spec"]["replicas"] == replicas).await?;
    Ok(())
}

/// Waits until the status has this latency.
async fn shows(env: &TestEnv, latency: &str) -> Result<()> {
    let shows = |object: &Value| object["status"]["observedLatency"] == latency;
    env.namespace.until("ModelDeployment", "chat", &format!("to show {latency}"), shows).await?;
    Ok(())
}

async fn has_args(env: &TestEnv) -> Result<()> {
    let has = |object: &Value| {
        let args = object["spec"]["template"]["spec"]["containers"][0]["args"].as_array();
        args.is_some_and(|args| args.contains(&json!("8192")))
    };
    env.namespace.until("StatefulSet", "chat", "to have the arguments", has).await?;
    env.namespace.get("HorizontalPodAutoscaler", "chat").await?.context("no autoscaler")?;
    Ok(())
}
