//! A job that is deleted and made anew under its name while Pods of the old one still end.

use anyhow::{Result, ensure};
use pilothouse_control_plane::LOST;
use pilothouse_tests::cluster::{Awaited, PATIENCE, condition};
use serde_json::{Value, json};

use super::{NAME, PODS, runs, sample, start};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
    training_job::words::{annotate, clear, exit, is_replaced, only_pods, pods},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_job_that_is_made_anew_while_a_restart_goes_on_starts_as_a_new_one);
}

/// The image of the second job.
const IMAGE: &str = "example.com/other:2";

async fn a_job_that_is_made_anew_while_a_restart_goes_on_starts_as_a_new_one(env: &mut TestEnv) -> Result<()> {
    start(env, sample(&json!({"backoffLimit": 5}), "ExitCode")?).await?;
    runs(env).await?;
    // The second failure in a row is followed by a pause.
    let before = pods(env).await?;
    exit(env, "mnist-worker-0", 137).await?;
    is_replaced(env, "mnist-worker-0", &before["mnist-worker-0"]).await?;
    runs(env).await?;
    let old = pods(env).await?;
    annotate(env, "mnist-worker-1", LOST, "").await?;
    exit(env, "mnist-worker-0", 137).await?;
    env.namespace.until_gone("Pod", "mnist-worker-0").await?;
    let restarts = |job: &Value| condition(job, "Restarting")["status"] == "True";
    env.namespace.until("PyTorchJob", NAME, "to restart", restarts).await?;
    env.namespace.delete("PyTorchJob", NAME).await?;
    env.namespace.until_gone("PyTorchJob", NAME).await?;
    let mut new = sample(&json!({"backoffLimit": 0}), "ExitCode")?;
    for replicas in ["Master", "Worker"] {
        new["spec"]["pytorchReplicaSpecs"][replicas]["template"]["spec"]["containers"][0]["image"] = json!(IMAGE);
    }
    env.namespace.apply(new).await?;

    // The garbage collector learns of a kind that was installed after its start only every half minute.
    let going = |pod: &Value| pod["metadata"].get("deletionTimestamp").is_some();
    let awaited = Awaited { kind: "Pod", name: "mnist-worker-1", what: "to be collected" };
    env.namespace.until_within(PATIENCE * 3, &awaited, going).await?;
    let told = |job: &Value| {
        let ready = condition(job, "Ready");
        ready["status"] == "False" && ready["message"].to_string().contains("mnist-worker-1")
    };
    env.namespace.until("PyTorchJob", NAME, "to say what it waits for", told).await?;
    clear(env, "mnist-worker-1", LOST).await?;
    let awaited = Awaited { kind: "PyTorchJob", name: NAME, what: "to run" };
    let active = |job: &Value, replicas: &str| job["status"]["replicaStatuses"][replicas]["active"].clone();
    let all_run = |job: &Value| active(job, "Master") == 1 && active(job, "Worker") == 2;
    let job = env.namespace.until_within(PATIENCE * 3, &awaited, all_run).await?;
    for condition_type in ["Restarting", "Failed"] {
        ensure!(condition(&job, condition_type).is_null(), "it has the old one's past: {}", job["status"]);
    }
    only_pods(env, &PODS).await?;
    for (name, pod) in pods(env).await? {
        ensure!(pod["metadata"]["uid"] != old[&name]["metadata"]["uid"], "{name} is the old one's");
        ensure!(pod["spec"]["containers"][0]["image"] == IMAGE, "{name} is the old one's: {pod}");
    }
    Ok(())
}
