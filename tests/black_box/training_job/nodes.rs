//! What nodes, the cluster's own scheduler and its controller of taints do to the Pods of a job: they shut down, make room for others, and
//! clear nodes. None of it is a failure of the program, also where nothing is retried.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    cluster::{api, condition, create_or_keep},
    nodes::{GPU_TAINT, RESERVED_TAINT, end_by_kubelet, reserved_gpu_node},
};
use serde_json::{Value, json};

use super::words::{JOB, events, has_events, metric, pods, runs, start_running, uids, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_taint_of_the_node_costs_no_restart,
        a_preemption_costs_no_restart,
        a_shutdown_of_the_node_costs_no_restart,
    );
}

/// A job that never retries, with all GPUs of the node with this product.
fn fills_node(product: &str) -> Value {
    json!({
        "workers": 2, "gpuPerWorker": 8, "nodeSelector": {"nvidia.com/gpu.product": product},
        "tolerations": [{"key": RESERVED_TAINT, "operator": "Exists"}],
        "runPolicy": {"restartPolicy": "Never", "backoffLimit": 0},
    })
}

async fn a_taint_of_the_node_costs_no_restart(env: &mut TestEnv) -> Result<()> {
    const NODE: &str = "gpu-taint";
    reserved_gpu_node(&env.namespace, NODE, "TAINT-TEST").await?;
    start_running(env, fills_node("TAINT-TEST")).await?;
    let before = uids(&pods(env).await?);
    let lasting = [GPU_TAINT, RESERVED_TAINT].map(|key| json!({"key": key, "effect": "NoSchedule"}));
    let maintenance = json!({"key": "maintenance", "effect": "NoExecute"});
    change_node(env, NODE, json!({"taints": [&lasting[0], &lasting[1], &maintenance]})).await?;
    let disrupted = |job: &Value| job["status"]["disruptionCount"] == 1;
    env.namespace.until("TrainingJob", JOB, "to be disrupted", disrupted).await?;
    change_node(env, NODE, json!({"taints": lasting})).await?;
    goes_on(env).await?;
    ensure!(before.is_disjoint(&uids(&pods(env).await?)), "a Pod outlived the taint");
    Ok(())
}

async fn a_preemption_costs_no_restart(env: &mut TestEnv) -> Result<()> {
    reserved_gpu_node(&env.namespace, "gpu-preempt", "PREEMPT-TEST").await?;
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
            "tolerations": [{"operator": "Exists"}],
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

/// A node that shuts down ends its Pods and keeps them: the kubelet gives them the phase Failed, and nobody deletes them. It takes no new
/// ones before it is back.
async fn a_shutdown_of_the_node_costs_no_restart(env: &mut TestEnv) -> Result<()> {
    const NODE: &str = "gpu-shutdown";
    reserved_gpu_node(&env.namespace, NODE, "SHUTDOWN-TEST").await?;
    start_running(env, fills_node("SHUTDOWN-TEST")).await?;
    let before = uids(&pods(env).await?);
    change_node(env, NODE, json!({"unschedulable": true})).await?;
    for pod in ["mnist-worker-0", "mnist-worker-1"] {
        let message = "Pod was terminated in response to imminent node shutdown.";
        end_by_kubelet(&env.namespace, pod, "Terminated", message).await?;
    }
    let waiting = waits(env, JOB, "WorkerDisrupted").await?;
    let message = condition(&waiting, "Restarting")["message"].to_string();
    ensure!(message.contains("mnist-worker-0"), "{message}");
    let both_wait = |job: &Value| {
        let workers = job["status"]["workerStatuses"].as_array();
        workers.is_some_and(|workers| workers.iter().all(|worker| worker["reason"] == "Unschedulable"))
    };
    env.namespace.until("TrainingJob", JOB, "to have new Pods that wait", both_wait).await?;
    change_node(env, NODE, json!({"unschedulable": null})).await?;
    goes_on(env).await?;
    ensure!(before.is_disjoint(&uids(&pods(env).await?)), "a Pod outlived its node");
    for name in ["training_jobs_restarted_total", "training_jobs_failed_total"] {
        ensure!(metric(env, name).await? == 0.0, "{name} counts it");
    }
    let told = events(env, JOB).await?;
    ensure!(told.iter().any(|event| event.reason == "Terminated"), "the reason of the node is told: {told:?}");
    Ok(())
}

/// Changes the spec of a node.
async fn change_node(env: &TestEnv, node: &str, spec: Value) -> Result<()> {
    let nodes = api(&env.namespace.client(), "Node", None)?;
    nodes.patch(node, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await?;
    Ok(())
}

/// The job runs with all its workers, and no restart was charged.
async fn goes_on(env: &TestEnv) -> Result<()> {
    let job = runs(env, JOB).await?;
    ensure!(condition(&job, "Failed").is_null() && job["status"]["restartCount"] == 0, "{}", job["status"]);
    ensure!(job["status"]["disruptionCount"] == 1, "{}", job["status"]);
    has_events(env, JOB, "TrainingJobRestarting", 1).await
}
