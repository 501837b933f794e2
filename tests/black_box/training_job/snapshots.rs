//! ConfigMaps that a job refers to: a running job keeps their content as of its start.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::words::{JOB, job, pods, runs, uids};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, edits_of_a_config_map_do_not_disturb_a_running_job);
}

async fn edits_of_a_config_map_do_not_disturb_a_running_job(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    env.namespace.apply(settings("first")).await?;
    let from = json!({"configMapKeyRef": {"name": "settings", "key": "mode"}});
    let spec = json!({
        "configMaps": [{"name": "settings", "mountPath": "/etc/settings"}], "env": [{"name": "MODE", "valueFrom": from}],
    });
    env.namespace.apply(job(spec)).await?;
    runs(env, JOB).await?;
    let before = pods(env).await?;
    for pod in before.values() {
        refers_to_the_copy(pod)?;
    }
    env.namespace.apply(settings("second")).await?;
    copy_is_unchanged(env, "an edit").await?;
    env.namespace.delete("ConfigMap", "settings").await?;
    copy_is_unchanged(env, "the end").await?;
    ensure!(uids(&before) == uids(&pods(env).await?), "Pods were replaced");

    // A worker that is created again uses the same copy as the others.
    env.namespace.delete("Pod", "mnist-worker-1").await?;
    let is_new = |pod: &Value| pod["metadata"]["uid"] != before["mnist-worker-1"]["metadata"]["uid"];
    let back = env.namespace.until("Pod", "mnist-worker-1", "to come back", is_new).await?;
    refers_to_the_copy(&back)?;
    runs(env, JOB).await?;
    copy_is_unchanged(env, "the end of a worker").await
}

fn settings(mode: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"mode": mode}})
}

fn refers_to_the_copy(pod: &Value) -> Result<()> {
    let env = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    let mode = env.iter().find(|variable| variable["name"] == "MODE").context("no MODE")?;
    let copy = "mnist-snapshot-settings";
    ensure!(mode["valueFrom"]["configMapKeyRef"]["name"] == copy, "{mode}");
    let volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    ensure!(volumes.iter().any(|volume| volume["configMap"]["name"] == copy), "{volumes:?}");
    Ok(())
}

/// Checks that the copy is unchanged after another reconcile of the job.
async fn copy_is_unchanged(env: &TestEnv, by: &str) -> Result<()> {
    env.reconciled_after("training-job", async || env.touch("TrainingJob", JOB, by).await).await?;
    let copy = env.namespace.get("ConfigMap", "mnist-snapshot-settings").await?.context("the copy is gone")?;
    ensure!(copy["data"] == json!({"mode": "first"}) && copy["immutable"] == true, "{by} of the ConfigMap: {copy}");
    Ok(())
}
