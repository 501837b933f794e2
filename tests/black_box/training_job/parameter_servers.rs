//! A TensorFlow job with a parameter server: the cluster specification in its members' environment.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::words::{environment, pods, start_running};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, members_know_each_other_and_who_they_are);
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
