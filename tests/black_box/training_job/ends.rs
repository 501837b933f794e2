//! The Pods and other children of a job after its end, deadlines, and the time to live.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use pilothouse_tests::nodes::set_pod_status;
use serde_json::{Value, json};

use super::words::{
    JOB, exit, has, is_replaced, job, metric, named, only_pods, pods, runs, start_running, succeed, text,
};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The only Pod of jobs with a sidecar.
const POD: &str = "mnist-worker-0";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_policy_says_which_pods_stay,
        a_job_fails_at_its_deadline,
        a_trainer_that_ended_beside_a_sidecar_has_ended,
        a_trainer_that_succeeded_has_although_its_sidecar_failed,
        a_trainer_that_an_eviction_ended_beside_a_sidecar_has_not_succeeded,
        a_sidecar_that_crashes_stops_no_training_that_runs,
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

async fn a_trainer_that_ended_beside_a_sidecar_has_ended(env: &mut TestEnv) -> Result<()> {
    start_with_sidecar(env, json!({})).await?;
    set_containers(env, "Running", &ended(0), &json!({"running": {}})).await?;
    has_succeeded(env).await
}

/// Both are seen at once.
async fn a_trainer_that_succeeded_has_although_its_sidecar_failed(env: &mut TestEnv) -> Result<()> {
    start_with_sidecar(env, json!({"restartPolicy": "Never"})).await?;
    set_containers(env, "Failed", &ended(0), &ended(1)).await?;
    has_succeeded(env).await
}

/// The kubelet has told the trainer to end, which wrote a checkpoint; the sidecar takes longer. Nobody deletes the Pod.
async fn a_trainer_that_an_eviction_ended_beside_a_sidecar_has_not_succeeded(env: &mut TestEnv) -> Result<()> {
    start_with_sidecar(env, json!({"restartPolicy": "Never"})).await?;
    let before = pods(env).await?[POD].clone();
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"});
    let containers = [container("pytorch", &ended(0)), container("proxy", &json!({"running": {}}))];
    let status = json!({"phase": "Running", "conditions": [condition], "containerStatuses": containers});
    set_pod_status(&env.namespace, POD, status).await?;
    is_replaced(env, POD, &before).await?;
    let job = has(env, JOB, "Restarting", "WorkerDisrupted").await?;
    ensure!(job["status"]["restartCount"] == 0 && job["status"]["succeeded"] == 0, "{}", job["status"]);
    Ok(())
}

async fn a_sidecar_that_crashes_stops_no_training_that_runs(env: &mut TestEnv) -> Result<()> {
    start_with_sidecar(env, json!({"startDeadlineSeconds": 3600})).await?;
    let waits = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}});
    set_containers(env, "Running", &json!({"running": {}}), &waits).await?;
    let job = has(env, JOB, "Ready", "TrainingJobRunning").await?;
    let status = &job["status"];
    ensure!(status["workerStatuses"][0]["status"] == "CrashLoopBackOff", "it is not told: {status}");
    ensure!(status.get("startingSince").is_none() && status["runningSince"].is_string(), "{status}");
    Ok(())
}

/// Starts a job of one worker with a plain sidecar. No node takes the Pod, so the test says what its containers do.
async fn start_with_sidecar(env: &mut TestEnv, policy: Value) -> Result<()> {
    env.start(&["training-job"]).await?;
    let sidecar = json!({"spec": {"containers": [{"name": "proxy", "image": "example.com/proxy:1"}]}});
    let node = json!({"no-node": "has-this"});
    let spec = json!({"workers": 1, "nodeSelector": node, "podTemplate": sidecar, "runPolicy": policy});
    env.namespace.apply(job(spec)).await?;
    let started = |job: &Value| job["status"]["startTime"].is_string();
    env.namespace.until("TrainingJob", JOB, "to know its Pod", started).await?;
    Ok(())
}

fn ended(exit_code: u8) -> Value {
    json!({"terminated": {"exitCode": exit_code, "reason": if exit_code == 0 { "Completed" } else { "Error" }}})
}

fn container(name: &str, state: &Value) -> Value {
    json!({"name": name, "image": "a", "imageID": "a", "ready": false, "restartCount": 0, "state": state})
}

/// Says what the trainer and its sidecar do.
async fn set_containers(env: &TestEnv, phase: &str, trainer: &Value, sidecar: &Value) -> Result<()> {
    let containers = [container("pytorch", trainer), container("proxy", sidecar)];
    let status = json!({"phase": phase, "conditions": [], "containerStatuses": containers});
    set_pod_status(&env.namespace, POD, status).await
}

async fn has_succeeded(env: &TestEnv) -> Result<()> {
    let job = has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    ensure!(job["status"]["workerStatuses"][0]["status"] == "Succeeded", "{}", job["status"]);
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
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
