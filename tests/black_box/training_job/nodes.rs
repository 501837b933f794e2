//! What the cluster's own scheduler and its controller of taints do to the Pods of a job: they make room for others, and clear nodes. Neither
//! is a failure of the program, also where nothing is retried.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::cluster::{api, condition, create_or_keep};
use serde_json::{Value, json};

use super::words::{JOB, has_events, pods, runs, start_running, uids};
use crate::{
    llm::words::gpu_node,
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_taint_of_the_node_costs_no_restart, a_preemption_costs_no_restart);
}

/// A job that never retries, with all GPUs of the node with this product.
fn fills_node(product: &str) -> Value {
    json!({
        "workers": 2, "gpuPerWorker": 8, "nodeSelector": {"nvidia.com/gpu.product": product},
        "runPolicy": {"restartPolicy": "Never", "backoffLimit": 0},
    })
}

async fn a_taint_of_the_node_costs_no_restart(env: &mut TestEnv) -> Result<()> {
    const NODE: &str = "gpu-taint";
    gpu_node(env, NODE, "TAINT-TEST").await?;
    start_running(env, fills_node("TAINT-TEST")).await?;
    let before = uids(&pods(env).await?);
    let nodes = api(&env.namespace.client(), "Node", None)?;
    let gpu = json!({"key": "nvidia.com/gpu", "effect": "NoSchedule"});
    let taint = async |taints: Value| {
        let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
        nodes.patch(NODE, &PatchParams::default(), &patch).await
    };
    taint(json!([gpu, {"key": "maintenance", "effect": "NoExecute"}])).await?;
    let disrupted = |job: &Value| job["status"]["disruptionCount"] == 1;
    env.namespace.until("TrainingJob", JOB, "to be disrupted", disrupted).await?;
    taint(json!([gpu])).await?;
    goes_on(env).await?;
    ensure!(before.is_disjoint(&uids(&pods(env).await?)), "a Pod outlived the taint");
    Ok(())
}

async fn a_preemption_costs_no_restart(env: &mut TestEnv) -> Result<()> {
    gpu_node(env, "gpu-preempt", "PREEMPT-TEST").await?;
    start_running(env, fills_node("PREEMPT-TEST")).await?;
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent-pods"}, "value": 1000,
    });
    create_or_keep(&env.namespace.client(), class).await?;
    let limits = json!({"limits": {"nvidia.com/gpu": "8"}});
    let urgent = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent"},
        "spec": {
            "priorityClassName": "urgent-pods", "nodeSelector": {"nvidia.com/gpu.product": "PREEMPT-TEST"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "containers": [{"name": "main", "image": "example.com/urgent:1", "resources": limits}],
        },
    });
    env.namespace.apply(urgent).await?;
    env.namespace.until("Pod", "urgent", "to have its place", |pod| pod["status"]["phase"] == "Running").await?;
    // There is room for one of its workers only.
    let is_cut = |job: &Value| job["status"]["disruptionCount"] == 1 && condition(job, "Ready")["status"] == "False";
    env.namespace.until("TrainingJob", JOB, "to be without a worker", is_cut).await?;
    env.namespace.delete("Pod", "urgent").await?;
    goes_on(env).await
}

/// The job runs with all its workers, and no restart was charged.
async fn goes_on(env: &TestEnv) -> Result<()> {
    let job = runs(env, JOB).await?;
    ensure!(condition(&job, "Failed").is_null() && job["status"]["restartCount"] == 0, "{}", job["status"]);
    ensure!(job["status"]["disruptionCount"] == 1, "{}", job["status"]);
    has_events(env, JOB, "TrainingJobRestarting", 1).await
}
