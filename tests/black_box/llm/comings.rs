//! Kinds and APIs of other projects that go and come back while objects use them: an operator that is removed and installed anew.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::DeleteParams;
use pilothouse_tests::{
    cluster::{Awaited, Cluster, api, condition, install_crd},
    third_party::{File, HTTP_ROUTE, INFERENCE_POOL, LEADER_WORKER_SET, SCALED_OBJECT, SERVICE_MONITOR},
    thoroughness,
};
use serde_json::{Value, json};

use super::{
    seen::Seen,
    words::{LATENCY, metrics_of_vllm, model_deployment, says, server, serves},
};
use crate::{
    suite::{Suite, heavy, heavy_with},
    test_env::TestEnv,
};

/// The kinds, each with the name of its CRD, its file, and its child here.
const KINDS: [(&str, &str, &File, &str); 5] = [
    ("ScaledObject", "scaledobjects.keda.sh", &SCALED_OBJECT, "scaled"),
    ("LeaderWorkerSet", "leaderworkersets.leaderworkerset.x-k8s.io", &LEADER_WORKER_SET, "spread-mn"),
    ("HTTPRoute", "httproutes.gateway.networking.k8s.io", &HTTP_ROUTE, "llmmodel-routed"),
    ("InferencePool", "inferencepools.inference.networking.k8s.io", &INFERENCE_POOL, "llmmodel-routed"),
    ("ServiceMonitor", "servicemonitors.monitoring.coreos.com", &SERVICE_MONITOR, "llmmodel-routed"),
];

/// The objects that have these children.
const OBJECTS: [(&str, &str); 3] =
    [("ModelDeployment", "scaled"), ("ModelDeployment", "spread"), ("LLMModel", "routed")];

/// The time limit for what a host learns of kinds.
const LONG: Duration = Duration::from_secs(90);

pub fn register(suite: &mut Suite) {
    heavy!(suite, the_metrics_api_goes_and_comes_back);
    heavy_with!(suite, thoroughness::all(), kinds_go_and_come_back_under_objects_that_use_them);
}

async fn kinds_go_and_come_back_under_objects_that_use_them(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    env.start(&["ai-llm-model", "model-deployment"]).await?;
    install(env).await?;
    let keda = json!({"autoscaler": "keda", "keda": {"serverAddress": "http://prometheus:9090"}});
    let routed = json!({
        "httpRoute": {"gateway": {"name": "public"}}, "inferencePool": {"endpointPicker": {"name": "picker"}},
        "monitor": {"kind": "ServiceMonitor"},
    });
    env.namespace.apply(model_deployment("scaled", json!({"sla": {"maxLatency": "1s"}, "autoscaling": keda}))).await?;
    env.namespace.apply(model_deployment("spread", json!({"tensorParallelSize": 4, "gpusPerNode": 2}))).await?;
    env.namespace.apply(server("routed", routed)).await?;
    are_there(env).await?;
    serves(env, "ModelDeployment", "scaled").await?;
    serves(env, "LLMModel", "routed").await?;
    let workloads = [("StatefulSet", "scaled"), ("Deployment", "llmmodel-routed")];
    let before = uids(env, &workloads).await?;

    for turn in 0..2 {
        remove(env).await?;
        for (kind, name) in OBJECTS {
            let awaited = Awaited { kind, name, what: "to say that kinds are missing" };
            let told = |object: &Value| condition(object, "KindsInstalled")["reason"] == "KindNotInstalled";
            env.namespace.until_within(LONG, &awaited, told).await?;
        }
        let message = says(env, ("LLMModel", "routed"), "KindsInstalled", ("False", "KindNotInstalled")).await?;
        for field in ["spec.httpRoute", "spec.inferencePool", "spec.monitor"] {
            ensure!(message.contains(field), "{field} is not told: {message}");
        }
        // Whatever does not need the kinds goes on.
        let port = 9000 + turn;
        env.namespace.patch("LLMModel", "routed", json!({"spec": {"port": port}})).await?;
        let follows = |service: &Value| service["spec"]["ports"][0]["port"] == port;
        env.namespace.until("Service", "llmmodel-routed", "to have the port", follows).await?;
        serves(env, "LLMModel", "routed").await?;
        install(env).await?;
        are_there(env).await?;
    }
    ensure!(uids(env, &workloads).await? == before, "workloads were made anew");
    for (kind, name) in OBJECTS {
        let awaited = Awaited { kind, name, what: "to complain of nothing" };
        env.namespace.until_within(LONG, &awaited, |object| condition(object, "KindsInstalled").is_null()).await?;
    }
    env.metrics_at_rest().await?;
    let writes = env.host_writes().await?.len();
    env.reconciled_after("ai-llm-model", async || env.touch("LLMModel", "routed", "rest").await).await?;
    env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "scaled", "rest").await).await?;
    let after = env.host_writes().await?;
    ensure!(after.len() == writes, "it goes on to write: {:?}", &after[writes..]);
    Ok(())
}

async fn install(env: &TestEnv) -> Result<()> {
    for (_, _, crd, _) in KINDS {
        install_crd(&env.namespace.client(), &crd.fetch().await?).await?;
    }
    Ok(())
}

/// Removes the kinds with all objects of them.
async fn remove(env: &TestEnv) -> Result<()> {
    let crds = api(&env.namespace.client(), "CustomResourceDefinition", None)?;
    for (_, name, ..) in KINDS {
        crds.delete(name, &DeleteParams::default()).await?;
    }
    for (_, name, ..) in KINDS {
        env.namespace.until_gone("CustomResourceDefinition", name).await?;
    }
    Ok(())
}

/// Waits until there is a child of each kind.
async fn are_there(env: &TestEnv) -> Result<()> {
    for (kind, _, _, name) in KINDS {
        let awaited = Awaited { kind, name, what: "to be made" };
        env.namespace.until_within(LONG, &awaited, |_| true).await?;
    }
    Ok(())
}

async fn uids(env: &TestEnv, objects: &[(&str, &str)]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (kind, name) in objects {
        let object = env.namespace.get(kind, name).await?.with_context(|| format!("no {kind} '{name}'"))?;
        all.push(object["metadata"]["uid"].clone());
    }
    Ok(all)
}

/// Whatever serves the metrics is removed with its registration, as an adapter is that is upgraded.
async fn the_metrics_api_goes_and_comes_back(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let metrics = metrics_of_vllm(env, "50m").await?;
    env.start(&["model-deployment"]).await?;
    let asked = Seen::asked(env).await?;
    let quick = json!({"maxReplicas": 3, "scaleUpPeriodSeconds": 2, "scaleDownStabilizationSeconds": 1});
    let spec = json!({"sla": {"maxLatency": "100ms"}, "autoscaling": quick});
    env.namespace.apply(model_deployment("chat", spec)).await?;
    let chat = ("ModelDeployment", "chat");
    says(env, chat, "SLAMet", ("True", "WithinSLA")).await?;
    metrics.set(LATENCY, "5");
    let is_up = |set: &Value| set["spec"]["replicas"] == 3;
    let awaited = Awaited { kind: "StatefulSet", name: "chat", what: "to be asked for 3 Pods" };
    env.namespace.until_within(LONG, &awaited, is_up).await?;

    let registered = "v1beta1.external.metrics.k8s.io";
    drop(metrics);
    env.namespace.delete("APIService", registered).await?;
    env.namespace.until_gone("APIService", registered).await?;
    let message = says(env, chat, "SLAUnverified", ("True", "FailedGetExternalMetric")).await?;
    ensure!(!message.is_empty(), "nothing says what is missing");
    env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", 1).await).await?;
    ensure!(asked.all() == [2, 3], "Pods come or go without metrics: {:?}", asked.all());

    let _metrics = metrics_of_vllm(env, "20m").await?;
    says(env, chat, "SLAMet", ("True", "WithinSLA")).await?;
    let is_down = |set: &Value| set["spec"]["replicas"] == 2;
    let awaited = Awaited { what: "to be asked for 2 Pods again", ..awaited };
    env.namespace.until_within(LONG, &awaited, is_down).await?;
    Ok(())
}
