//! Jobs that do not get on: they say why in the words of those who know, and have limits for it.

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_control_plane::LOST;
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::words::{JOB, annotate, has, has_events, job, only_pods, pod_status, start_running, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_job_is_not_ready_before_all_its_workers_run,
        a_job_that_a_quota_cuts_says_so_and_gives_up_in_time,
        a_job_whose_pod_stays_on_a_lost_node_says_where,
    );
}

/// No node takes the Pods, so the test sets one of them to running.
async fn a_job_is_not_ready_before_all_its_workers_run(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"workers": 3, "nodeSelector": {"no-node": "has-this"}}))).await?;
    let wait = |job: &Value| {
        let workers = job["status"]["workerStatuses"].as_array();
        workers.is_some_and(|workers| workers.iter().all(|worker| worker["reason"] == "Unschedulable"))
    };
    env.namespace.until("TrainingJob", JOB, "to say that all its workers wait", wait).await?;
    pod_status(env, "mnist-worker-0", json!({"phase": "Running", "conditions": []})).await?;
    has(env, JOB, "Running", "TrainingJobRunning").await?;
    let job = waits(env, JOB, "WorkersPending").await?;
    let message = condition(&job, "Ready")["message"].to_string();
    ensure!(message.contains("1 of 3 workers run; mnist-worker-1: Unschedulable"), "{message}");
    Ok(())
}

async fn a_job_that_a_quota_cuts_says_so_and_gives_up_in_time(env: &mut TestEnv) -> Result<()> {
    let hard = json!({"pods": "2"});
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard},
    });
    env.namespace.apply(quota).await?;
    let known = Patch::Merge(json!({"status": {"hard": hard, "used": {"pods": "0"}}}));
    env.namespace.api("ResourceQuota")?.patch_status("few", &PatchParams::default(), &known).await?;
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"workers": 3, "runPolicy": {"startDeadlineSeconds": 5}}))).await?;
    let told = |job: &Value| {
        let workers = job["status"]["workerStatuses"].as_array();
        workers.is_some_and(|workers| {
            workers.iter().any(|worker| {
                worker["reason"] == "FailedCreatePod" && worker["message"].to_string().contains("exceeded quota")
            })
        })
    };
    env.namespace.until("TrainingJob", JOB, "to say what the API server said", told).await?;
    has_events(env, JOB, "FailedCreatePod", 1).await?;
    let failed = has(env, JOB, "Failed", "StartDeadlineExceeded").await?;
    ensure!(condition(&failed, "Failed")["message"].to_string().contains("exceeded quota"), "{}", failed["status"]);
    only_pods(env, &[]).await
}

async fn a_job_whose_pod_stays_on_a_lost_node_says_where(env: &mut TestEnv) -> Result<()> {
    const LOST_POD: &str = "mnist-worker-1";
    let policy = json!({"terminationTimeoutSeconds": 2});
    start_running(env, json!({"terminationGracePeriodSeconds": 1, "runPolicy": policy})).await?;
    annotate(env, LOST_POD, LOST, "").await?;
    env.namespace.delete("Pod", LOST_POD).await?;
    let job = has(env, JOB, "Failed", "TerminationTimeoutExceeded").await?;
    let pod = env.namespace.get("Pod", LOST_POD).await?.unwrap_or_default();
    let message = condition(&job, "Failed")["message"].to_string();
    let node = pod["spec"]["nodeName"].as_str().unwrap_or("no node");
    for part in [LOST_POD, node, "--grace-period=0 --force"] {
        ensure!(message.contains(part), "{part} is not in {message}");
    }
    Ok(())
}
