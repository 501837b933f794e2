//! A TensorFlow job with a parameter server: the cluster specification in its members' environment, and the nodes that they run on.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::nodes::gpu_node;
use serde_json::{Value, json};

use super::words::{environment, pods, start_running};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        members_know_each_other_and_who_they_are,
        a_parameter_server_runs_where_the_node_selector_leads_it_with_resources_of_its_own,
    );
}

async fn members_know_each_other_and_who_they_are(env: &mut TestEnv) -> Result<()> {
    let spec = json!({"framework": "tensorflow", "workers": 2, "parameterServers": 1, "gpuPerWorker": 1});
    start_running(env, spec).await?;
    let address = |member: &str| format!("mnist-{member}.mnist.{}.svc:2222", env.namespace.name);
    let cluster = json!({"worker": [address("worker-0"), address("worker-1")], "ps": [address("ps-0")]});
    let pods = pods(env).await?;
    ensure!(pods.len() == 3, "{:?}", pods.keys());
    for (member, role, index, gpus) in
        [("worker-0", "worker", 0, json!("1")), ("worker-1", "worker", 1, json!("1")), ("ps-0", "ps", 0, Value::Null)]
    {
        let pod = pods.get(&format!("mnist-{member}")).with_context(|| format!("no {member}"))?;
        let config = environment(pod).get("TF_CONFIG").copied().context("no TF_CONFIG")?;
        let config: Value = serde_json::from_str(config)?;
        let expected = json!({"cluster": cluster, "environment": "cloud", "task": {"type": role, "index": index}});
        ensure!(config == expected, "{member}: {config}");
        let container = &pod["spec"]["containers"][0];
        ensure!(container["name"] == "tensorflow", "{container}");
        ensure!(container["resources"]["limits"]["nvidia.com/gpu"] == gpus, "{member} has other GPUs: {container}");
    }
    Ok(())
}

/// The node is tainted, as those with GPUs are, and the parameter server has none.
async fn a_parameter_server_runs_where_the_node_selector_leads_it_with_resources_of_its_own(
    env: &mut TestEnv,
) -> Result<()> {
    const NODE: &str = "gpu-ps";
    gpu_node(&env.namespace, NODE, "PS-TEST").await?;
    let memory = |size: &str| json!({"requests": {"memory": size}});
    let spec = json!({
        "framework": "tensorflow", "workers": 1, "parameterServers": 1, "gpuPerWorker": 1,
        "nodeSelector": {"nvidia.com/gpu.product": "PS-TEST"},
        "resources": memory("1Gi"), "roles": [{"name": "ps", "resources": memory("4Gi")}],
    });
    start_running(env, spec).await?;
    for (pod, memory) in [("mnist-worker-0", "1Gi"), ("mnist-ps-0", "4Gi")] {
        let runs = |pod: &Value| pod["status"]["phase"] == "Running" && pod["spec"]["nodeName"] == NODE;
        let pod = env.namespace.until("Pod", pod, "to run on its node", runs).await?;
        ensure!(pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == memory, "{pod}");
    }
    Ok(())
}
