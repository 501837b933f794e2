//! A real server behind a `ModelDeployment`: processes run from the Pods that it renders, answer requests and their probes, and their
//! metrics drive the real autoscaler.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::PENDING;
use pilothouse_tests::{
    cluster::{Awaited, Cluster, condition},
    metrics_api::MetricsApi,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::{
    load::{Load, complete, request},
    node::Node,
    scrape::Scraper,
    words::model_deployment,
};
use crate::{
    suite::{Suite, heavy},
    test_env::{TestEnv, is_ready},
};

/// The model that clients ask for.
const MODEL: &str = "llama-3-70b";

/// The clients of a busy time: one server works on one of them after the other, each for 40 ms.
const BUSY: usize = 20;

/// The time limit for several rounds of an autoscaler.
const LONG: Duration = Duration::from_secs(120);

pub fn register(suite: &mut Suite) {
    heavy!(suite, a_load_over_the_sla_gets_more_servers_and_one_within_it_fewer);
}

/// One request at a time in each Pod; the autoscaler is quick, for tests.
fn chat() -> Value {
    let quick = json!({
        "minReplicas": 1, "maxReplicas": 6, "scaleUpPods": 2, "scaleUpPeriodSeconds": 2, "scaleDownStabilizationSeconds": 4,
    });
    model_deployment(
        "chat",
        json!({
            "model": MODEL, "replicas": 1, "image": "vllm/vllm-openai:v0.20.1", "modelPath": "/models/llama", "port": 8081,
            "args": ["--max-num-seqs", "1"], "sla": {"maxLatency": "500ms"}, "autoscaling": quick,
            "podTemplate": {"metadata": {"annotations": {PENDING: ""}}},
        }),
    )
}

async fn a_load_over_the_sla_gets_more_servers_and_one_within_it_fewer(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let api = Arc::new(MetricsApi::start(&env.namespace.client()).await?);
    let node = Arc::new(Node::start(env)?);
    let _scraper = Scraper::start(&node, &api);
    env.start(&["model-deployment"]).await?;
    env.namespace.apply(chat()).await?;
    becomes(env, "to be ready and within the SLA", |object| is_ready(object) && is_met(object, "True")).await?;

    // The process from the Pod's own words answers under the model's name, and only under that.
    let server = *node.ready().first().context("no server")?;
    ensure!(server.port() == 8081, "it listens on {server}");
    ensure!(complete(&server, MODEL).await? == " once", "another text");
    ensure!(request(&server, "/models/llama").await?.status == 404, "the path is no name");

    // A load that one server takes too long for: more servers, until they are quick enough.
    let busy = Load::start(&node, MODEL, BUSY);
    becomes(env, "to miss the SLA", |object| is_met(object, "False")).await?;
    env.event("ModelDeployment", "chat", "SLAMissed").await?;
    let more = |object: &Value| replicas(object) > 1 && is_ready(object) && is_met(object, "True");
    let many = replicas(&becomes(env, "to meet the SLA with more servers", more).await?);
    eprintln!("{BUSY} clients are served within the SLA by {many} servers; {} requests were answered", busy.answered());
    ensure!(busy.answered() > 0, "no request was answered");

    // Without the load, one server is enough, and the processes of the others end.
    drop(busy);
    becomes(env, "to have one server again", |object| replicas(object) == 1 && is_ready(object)).await?;
    eventually(LONG, "one process", async || Ok(Look::of(node.processes() == 1, node.processes()))).await?;
    env.namespace.delete("ModelDeployment", "chat").await?;
    eventually(LONG, "no process", async || Ok(Look::of(node.processes() == 0, node.processes()))).await
}

async fn becomes(env: &TestEnv, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    env.namespace.until_within(LONG, &Awaited { kind: "ModelDeployment", name: "chat", what }, holds).await
}

fn is_met(object: &Value, status: &str) -> bool {
    condition(object, "SLAMet")["status"] == status
}

fn replicas(object: &Value) -> i64 {
    object["status"]["replicas"].as_i64().unwrap_or_default()
}
