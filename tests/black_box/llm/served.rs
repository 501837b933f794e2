//! A real server behind a `ModelDeployment`: processes run from the Pods that it renders, answer requests and their probes, and their
//! metrics drive the real autoscaler.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::{LOST, PENDING};
use pilothouse_tests::{
    cluster::{Awaited, Cluster, condition},
    http::ask,
    metrics_api::MetricsApi,
    thoroughness,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::{
    load::{Load, complete, request, request_of},
    node::Node,
    scrape::Scraper,
    words::model_deployment,
};
use crate::{
    suite::{Suite, heavy, heavy_with},
    test_env::{TestEnv, is_ready},
};

/// The model that clients ask for.
const MODEL: &str = "llama-3-70b";

/// The clients of a busy time: one server works on one of them after the other, each for 40 ms.
const BUSY: usize = 20;

/// How long a Pod has that is being deleted: its requests take a third of it.
const GRACE: Duration = Duration::from_secs(30);

/// The time limit for several rounds of an autoscaler.
const LONG: Duration = Duration::from_secs(120);

pub fn register(suite: &mut Suite) {
    heavy!(suite, a_server_that_goes_answers_its_clients_first);
    heavy_with!(suite, thoroughness::all(), a_load_over_the_sla_gets_more_servers_and_one_within_it_fewer);
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

/// A Pod that a rollout replaces: clients that have not noticed yet are answered while the hook runs, and so is a request that goes on
/// beyond it; then the process ends by itself, before the grace period does.
async fn a_server_that_goes_answers_its_clients_first(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let node = Node::start(env)?;
    env.start(&["model-deployment"]).await?;
    let waits = json!({"metadata": {"annotations": {PENDING: "", LOST: ""}}});
    let spec = json!({
        "model": MODEL, "replicas": 1, "image": "vllm/vllm-openai:v0.20.1", "drainSeconds": 3,
        "terminationGracePeriodSeconds": GRACE.as_secs(), "podTemplate": waits,
    });
    env.namespace.apply(model_deployment("chat", spec)).await?;
    becomes(env, "to be ready", is_ready).await?;
    let server = *node.ready().first().context("no server")?;
    let uid = uid_of_pod(env).await?;

    // It takes longer than the hook does.
    let long = tokio::spawn(async move { request_of(&server, MODEL, 200).await });
    eventually(LONG, "the request to be under way", async || {
        let metrics = ask(&server, "GET /metrics HTTP/1.1\r\n", "").await?.body;
        let running = metrics.lines().find(|line| line.starts_with("vllm:num_requests_running"));
        Ok(Look::of(running.is_some_and(|line| line.ends_with(" 1")), running))
    })
    .await?;
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"image": "vllm/vllm-openai:v0.20.2"}})).await?;
    eventually(LONG, "the server to go", async || Ok(Look::of(node.ready().is_empty(), node.ready()))).await?;
    ensure!(complete(&server, MODEL).await? == " once", "another text");
    ensure!(node.ended(&uid).is_none(), "it ended before its hook");

    let answer = long.await??;
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.body);
    let ended = eventually(LONG, "the process to end", async || {
        Ok(node.ended(&uid).map_or(Look::NotYet("it runs".to_owned()), Look::Found))
    })
    .await?;
    ensure!(ended.status.success(), "it did not end by itself: {ended:?}");
    ensure!(ended.after < GRACE, "it took longer than it has: {ended:?}");
    becomes(env, "to be served by the new image", |object| is_ready(object) && object["status"]["readyReplicas"] == 1)
        .await?;
    ensure!(uid_of_pod(env).await? != uid, "it is the same Pod");
    Ok(())
}

async fn uid_of_pod(env: &TestEnv) -> Result<String> {
    let pod = env.namespace.get("Pod", "chat-0").await?.context("no Pod")?;
    Ok(pod["metadata"]["uid"].as_str().context("a Pod without a UID")?.to_owned())
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
