//! Servers that span several nodes: groups of Pods under the real controller of LeaderWorkerSets, and what is said where it is missing.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::{Awaited, Cluster, PATIENCE},
    lws::LwsController,
    needs,
    third_party::{LEADER_WORKER_SET, LWS_CONTROLLER},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{LATENCY, metrics_of_vllm, model_deployment, says, serves};
use crate::{
    suite::{Suite, heavy, heavy_with},
    test_env::TestEnv,
};

/// The time limit for several rounds of controllers.
const LONG: std::time::Duration = std::time::Duration::from_secs(90);

pub fn register(suite: &mut Suite) {
    heavy_with!(
        suite,
        needs::program(&LWS_CONTROLLER, "make third-party"),
        a_server_beyond_one_node_is_a_group_of_pods,
        groups_are_scaled_by_the_autoscaler,
    );
    heavy!(suite, without_the_kind_of_groups_everything_stays_as_it_is);
}

/// Four GPUs for each server, on nodes that have so many.
fn chat(gpus_per_node: u32, more: Value) -> Value {
    let mut spec = json!({"tensorParallelSize": 4, "gpusPerNode": gpus_per_node, "networkPolicy": {}});
    if let (Some(all), Value::Object(more)) = (spec.as_object_mut(), more) {
        all.extend(more);
    }
    model_deployment("chat", spec)
}

async fn a_server_beyond_one_node_is_a_group_of_pods(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let _controller = LwsController::start(&env.cluster).await?;
    env.start(&["model-deployment"]).await?;
    env.namespace.apply(chat(2, json!({}))).await?;
    has_pods(env, &["chat-mn-0", "chat-mn-0-1", "chat-mn-1", "chat-mn-1-1"]).await?;
    serves(env, "ModelDeployment", "chat").await?;
    is_a_group(env).await?;
    only_leaders_have_clients(env).await?;

    // On one node and back: there are never two workloads, for both need the same GPUs.
    env.namespace.apply(chat(4, json!({}))).await?;
    has_pods(env, &["chat-0", "chat-1"]).await?;
    serves(env, "ModelDeployment", "chat").await?;
    env.namespace.until_gone("LeaderWorkerSet", "chat-mn").await?;
    env.namespace.apply(chat(2, json!({}))).await?;
    has_pods(env, &["chat-mn-0", "chat-mn-0-1", "chat-mn-1", "chat-mn-1-1"]).await?;
    serves(env, "ModelDeployment", "chat").await?;
    let writes = env.host_writes().await?;
    let of_workloads =
        writes.iter().filter(|write| write.contains("statefulsets/ ") || write.contains("leaderworkersets/ "));
    let of_workloads: Vec<_> =
        of_workloads.filter_map(|write| write.split_once("/ ")).map(|(write, _)| write).collect();
    let expected = [
        "patch leaderworkersets",
        "delete leaderworkersets",
        "patch statefulsets",
        "delete statefulsets",
        "patch leaderworkersets",
    ];
    ensure!(of_workloads == expected, "the old one does not go first: {of_workloads:?}");

    // At rest nothing is written, and a change of the image replaces one group after the other.
    for turn in 0..3 {
        env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", turn).await).await?;
    }
    let before = env.host_writes().await?.len();
    for turn in 3..6 {
        env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "chat", turn).await).await?;
    }
    let writes = env.host_writes().await?;
    ensure!(writes.len() == before, "it writes: {:#?}", &writes[before..]);
    env.namespace.patch("ModelDeployment", "chat", json!({"spec": {"image": "vllm/vllm-openai:v0.20.2"}})).await?;
    all_have(env, "vllm/vllm-openai:v0.20.2").await?;
    serves(env, "ModelDeployment", "chat").await?;

    env.namespace.delete("ModelDeployment", "chat").await?;
    has_pods(env, &[]).await
}

/// Waits until these are the Pods.
async fn has_pods(env: &TestEnv, names: &[&str]) -> Result<()> {
    eventually(LONG, &format!("the Pods {names:?}"), async || {
        let pods = env.namespace.list("Pod").await?;
        let mut found: Vec<_> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
        found.sort_unstable();
        Ok(Look::of(found == names, found))
    })
    .await
}

/// Waits until all Pods have an image.
async fn all_have(env: &TestEnv, image: &str) -> Result<()> {
    eventually(LONG, &format!("all Pods with {image}"), async || {
        let pods = env.namespace.list("Pod").await?;
        let images: Vec<_> = pods.iter().map(|pod| pod["spec"]["containers"][0]["image"].clone()).collect();
        Ok(Look::of(images.len() == 4 && images.iter().all(|found| found == image), images))
    })
    .await
}

/// The leader serves, the worker follows it by the address that the controller gives both.
async fn is_a_group(env: &TestEnv) -> Result<()> {
    let set = env.namespace.get("LeaderWorkerSet", "chat-mn").await?.context("no LeaderWorkerSet")?;
    let template = &set["spec"]["leaderWorkerTemplate"];
    ensure!(template["size"] == 2 && template["restartPolicy"] == "RecreateGroupAfterStart", "{template}");
    ensure!(set["spec"]["startupPolicy"] == "LeaderCreated", "{set}");
    for (pod, is_leader) in [("chat-mn-1", true), ("chat-mn-1-1", false)] {
        let pod = env.namespace.get("Pod", pod).await?.context("no Pod")?;
        let container = &pod["spec"]["containers"][0];
        let variable = |name: &str| {
            let mut env = container["env"].as_array().into_iter().flatten();
            env.find(|variable| variable["name"] == name).map(|variable| variable["value"].clone())
        };
        let address = format!("chat-mn-1.chat-mn.{}", env.namespace.name);
        ensure!(variable("LWS_LEADER_ADDRESS") == Some(json!(address)), "{container}");
        let rank = if is_leader { "0" } else { "1" };
        ensure!(variable("LWS_WORKER_INDEX") == Some(json!(rank)), "{container}");
        ensure!(container["resources"]["limits"]["nvidia.com/gpu"] == "2", "{container}");
        ensure!(container["readinessProbe"].is_object() == is_leader, "{container}");
        let args = container["args"].as_array().context("no arguments")?;
        ensure!(args.contains(&json!("--headless")) != is_leader, "{args:?}");
        ensure!(args.windows(2).any(|pair| pair == [json!("--nnodes"), json!("2")]), "{args:?}");
        let waits = pod["spec"]["initContainers"][0]["name"] == "wait-for-leader";
        ensure!(waits != is_leader, "{pod}");
    }
    Ok(())
}

/// The Service of clients leads to the leaders; the names of the Pods are those of a Service of the controller.
async fn only_leaders_have_clients(env: &TestEnv) -> Result<()> {
    let is_leaders = |endpoints: &Value| {
        let addresses = endpoints["subsets"][0]["addresses"].as_array().into_iter().flatten();
        let mut pods: Vec<_> = addresses.filter_map(|address| address["targetRef"]["name"].as_str()).collect();
        pods.sort_unstable();
        pods == ["chat-mn-0", "chat-mn-1"]
    };
    env.namespace.until("Endpoints", "chat", "to be the leaders", is_leaders).await?;
    let names = env.namespace.get("Service", "chat-mn").await?.context("no Service for names")?;
    ensure!(names["spec"]["clusterIP"] == "None", "{names}");
    let scale = serde_json::to_value(env.namespace.api("ModelDeployment")?.get_scale("chat").await?)?;
    let selector = scale["status"]["selector"].as_str().unwrap_or_default();
    ensure!(selector.contains("leaderworkerset.sigs.k8s.io/worker-index=0"), "{scale}");
    Ok(())
}

async fn groups_are_scaled_by_the_autoscaler(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let _controller = LwsController::start(&env.cluster).await?;
    let metrics = metrics_of_vllm(env, "50m").await?;
    env.start(&["model-deployment"]).await?;
    let quick =
        json!({"maxReplicas": 3, "scaleUpPods": 1, "scaleUpPeriodSeconds": 2, "scaleDownStabilizationSeconds": 3});
    let spec = json!({"replicas": 1, "sla": {"maxLatency": "100ms"}, "autoscaling": quick});
    env.namespace.apply(chat(2, spec)).await?;
    says(env, ("ModelDeployment", "chat"), "SLAMet", ("True", "WithinSLA")).await?;
    for (latency, groups) in [("5", 3), ("20m", 1)] {
        metrics.set(LATENCY, latency);
        let what = format!("to have {groups} groups");
        let awaited = Awaited { kind: "ModelDeployment", name: "chat", what: &what };
        let has =
            |object: &Value| object["status"]["readyReplicas"] == groups && object["status"]["replicas"] == groups;
        env.namespace.until_within(LONG, &awaited, has).await?;
    }
    Ok(())
}

async fn without_the_kind_of_groups_everything_stays_as_it_is(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::quiet().await?).await?;
    env.start(&["model-deployment"]).await?;
    env.namespace.apply(chat(4, json!({}))).await?;
    let before = env.namespace.until("StatefulSet", "chat", "to be created", |_| true).await?;
    env.namespace.apply(chat(2, json!({"port": 9000}))).await?;
    let message = says(env, ("ModelDeployment", "chat"), "KindsInstalled", ("False", "KindNotInstalled")).await?;
    ensure!(message.contains("spec.tensorParallelSize needs leaderworkerset.x-k8s.io/v1 LeaderWorkerSet"), "{message}");
    says(env, ("ModelDeployment", "chat"), "Ready", ("False", "KindNotInstalled")).await?;
    let after = env.namespace.get("StatefulSet", "chat").await?.context("the StatefulSet is gone")?;
    ensure!(after["spec"] == before["spec"], "it has changed: {after}");

    // It comes, and the groups take the place of the Pods.
    env.cluster.install_foreign_crd(&LEADER_WORKER_SET.fetch().await?).await?;
    let set = env.namespace.until("LeaderWorkerSet", "chat-mn", "to be created", |_| true).await?;
    ensure!(set["spec"]["replicas"] == 2, "{set}");
    let worker = &set["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"];
    ensure!(worker["initContainers"][0]["command"][3] == "$(LWS_LEADER_ADDRESS)", "a field is dropped: {worker}");
    env.namespace.until_gone("StatefulSet", "chat").await?;
    eventually(PATIENCE, "no complaint", async || {
        let object = env.namespace.get("ModelDeployment", "chat").await?.context("no object")?;
        let found = pilothouse_tests::cluster::condition(&object, "KindsInstalled").clone();
        Ok(Look::of(found.is_null(), found))
    })
    .await
}
