//! The Pods and other children of a job after its end, deadlines, and the time to live.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use pilothouse_tests::nodes::set_pod_status;
use serde_json::{Value, json};

use super::words::{JOB, exit, has, job, metric, named, only_pods, pods, runs, start_running, succeed, text};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_policy_says_which_pods_stay,
        a_job_fails_at_its_deadline,
        a_trainer_that_ended_beside_a_sidecar_has_ended,
        a_job_and_its_children_are_deleted_after_the_time_to_live,
        a_time_to_live_can_change_until_it_is_over,
    );
}

/// Worker 0 succeeds, worker 1 has failed, worker 2 still runs.
async fn the_policy_says_which_pods_stay(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    for (name, policy) in [("none", "None"), ("running", "Running"), ("all", "All")] {
        let spec = json!({
            "framework": "tensorflow", "workers": 3, "successPolicy": "ChiefWorker", "runPolicy": {"cleanPodPolicy": policy},
        });
        env.namespace.apply(named(name, spec)).await?;
    }
    for name in ["none", "running", "all"] {
        runs(env, name).await?;
        exit(env, &format!("{name}-worker-1"), 1).await?;
        let failed = |job: &Value| job["status"]["failed"] == 1;
        env.namespace.until("TrainingJob", name, "to know that a worker failed", failed).await?;
        exit(env, &format!("{name}-worker-0"), 0).await?;
        has(env, name, "Succeeded", "TrainingJobSucceeded").await?;
    }
    only_pods(env, &["none-worker-0", "none-worker-1", "none-worker-2", "running-worker-0", "running-worker-1"])
        .await?;
    for (name, has_service) in [("none", true), ("running", false), ("all", false)] {
        if has_service {
            env.namespace.until("Service", name, "to stay", |_| true).await?;
        } else {
            env.namespace.until_gone("Service", name).await?;
        }
        let job = env.namespace.get("TrainingJob", name).await?.context("the job is gone")?;
        let workers = job["status"]["workerStatuses"].as_array().map(Vec::len);
        ensure!(workers == Some(3), "{name} has forgotten its workers: {}", job["status"]);
    }
    Ok(())
}

/// Also where its Pods did not get to run until then.
async fn a_job_fails_at_its_deadline(env: &mut TestEnv) -> Result<()> {
    const LIMIT: i64 = 3;
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"runPolicy": {"activeDeadlineSeconds": LIMIT}}))).await?;
    let job = has(env, JOB, "Failed", "DeadlineExceeded").await?;
    let took = seconds(&job, "completionTime")? - seconds(&job, "startTime")?;
    eprintln!("a job with {LIMIT} s failed after {took} s");
    ensure!(took >= LIMIT, "it failed after {took} s");
    only_pods(env, &[]).await?;
    ensure!(metric(env, "training_jobs_failed_total").await? == 1.0, "not counted");
    Ok(())
}

/// No node takes the Pod, so the test says what its containers do.
async fn a_trainer_that_ended_beside_a_sidecar_has_ended(env: &mut TestEnv) -> Result<()> {
    const POD: &str = "mnist-worker-0";
    env.start(&["training-job"]).await?;
    let sidecar = json!({"spec": {"containers": [{"name": "proxy", "image": "example.com/proxy:1"}]}});
    let spec = json!({"workers": 1, "nodeSelector": {"no-node": "has-this"}, "podTemplate": sidecar});
    env.namespace.apply(job(spec)).await?;
    env.namespace.until("Pod", POD, "to be made", |_| true).await?;
    let container = |name: &str, state: Value| json!({"name": name, "image": "a", "imageID": "a", "ready": false, "restartCount": 0, "state": state});
    let ended = container("pytorch", json!({"terminated": {"exitCode": 0, "reason": "Completed"}}));
    let runs_on = container("proxy", json!({"running": {}}));
    let status = json!({"phase": "Running", "conditions": [], "containerStatuses": [ended, runs_on]});
    set_pod_status(&env.namespace, POD, status).await?;
    let job = has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    ensure!(job["status"]["workerStatuses"][0]["status"] == "Succeeded", "{}", job["status"]);
    Ok(())
}

async fn a_job_and_its_children_are_deleted_after_the_time_to_live(env: &mut TestEnv) -> Result<()> {
    const LIFE: i64 = 3;
    env.start(&["training-job"]).await?;
    let spec = json!({"hyperparameters": {"rate": 0.1}, "runPolicy": {"ttlSecondsAfterFinished": LIFE}});
    env.namespace.apply(job(spec)).await?;
    runs(env, JOB).await?;
    succeed(env).await?;
    let says_when = |job: &Value| job["status"]["expirationTime"].is_string();
    let ended = env.namespace.until("TrainingJob", JOB, "to say when it goes", says_when).await?;
    let over = seconds(&ended, "completionTime")? + LIFE;
    ensure!(seconds(&ended, "expirationTime")? == over, "{}", ended["status"]);
    ensure!(pods(env).await?.len() == 2, "its Pods go at once");
    env.namespace.until_gone("TrainingJob", JOB).await?;
    ensure!(Timestamp::now().as_second() >= over, "it is early");
    ensure!(pods(env).await?.is_empty(), "Pods are left");
    for (kind, name) in [("Service", JOB), ("ConfigMap", "mnist-hyperparameters")] {
        ensure!(env.namespace.get(kind, name).await?.is_none(), "a {kind} is left");
    }
    Ok(())
}

async fn a_time_to_live_can_change_until_it_is_over(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"runPolicy": {"ttlSecondsAfterFinished": 3600}})).await?;
    succeed(env).await?;
    let says_when = |job: &Value| job["status"]["expirationTime"].is_string();
    env.namespace.until("TrainingJob", JOB, "to say when it goes", says_when).await?;
    env.host.stop().await?;
    let shorter = json!({"spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}});
    env.namespace.patch("TrainingJob", JOB, shorter).await?;
    env.host.resume().await?;
    env.namespace.until_gone("TrainingJob", JOB).await?;
    only_pods(env, &[]).await
}

fn seconds(job: &Value, field: &str) -> Result<i64> {
    Ok(text(&job["status"][field])?.parse::<Timestamp>()?.as_second())
}
