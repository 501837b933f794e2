//! What becomes of a job's Pods and other children after its end, and jobs whose time is up.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::words::{JOB, exit, has, job, metric, named, only_pods, pods, runs, start_running, succeed, text};
use crate::{
    scene::Scene,
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_policy_says_which_pods_stay,
        a_job_fails_at_its_deadline,
        a_job_goes_with_all_that_it_made_when_its_time_to_live_is_over,
        a_time_to_live_can_change_until_it_is_over,
    );
}

/// Worker 0 succeeds, worker 1 has failed, worker 2 still runs.
async fn the_policy_says_which_pods_stay(scene: &mut Scene) -> Result<()> {
    scene.start(&["training-job"]).await?;
    for (name, policy) in [("none", "None"), ("running", "Running"), ("all", "All")] {
        let spec = json!({"framework": "tensorflow", "workers": 3, "runPolicy": {"cleanPodPolicy": policy}});
        scene.namespace.apply(named(name, spec)).await?;
    }
    for name in ["none", "running", "all"] {
        runs(scene, name).await?;
        exit(scene, &format!("{name}-worker-1"), 1).await?;
        let failed = |job: &Value| job["status"]["failed"] == 1;
        scene.namespace.until("TrainingJob", name, "to know that a worker failed", failed).await?;
        exit(scene, &format!("{name}-worker-0"), 0).await?;
        has(scene, name, "Succeeded", "TrainingJobSucceeded").await?;
    }
    only_pods(scene, &["none-worker-0", "none-worker-1", "none-worker-2", "running-worker-0", "running-worker-1"])
        .await?;
    for (name, has_service) in [("none", true), ("running", false), ("all", false)] {
        if has_service {
            scene.namespace.until("Service", name, "to stay", |_| true).await?;
        } else {
            scene.namespace.until_gone("Service", name).await?;
        }
        let job = scene.namespace.get("TrainingJob", name).await?.context("the job is gone")?;
        let workers = job["status"]["workerStatuses"].as_array().map(Vec::len);
        ensure!(workers == Some(3), "{name} has forgotten its workers: {}", job["status"]);
    }
    Ok(())
}

async fn a_job_fails_at_its_deadline(scene: &mut Scene) -> Result<()> {
    const LIMIT: i64 = 3;
    start_running(scene, json!({"runPolicy": {"activeDeadlineSeconds": LIMIT}})).await?;
    let job = has(scene, JOB, "Failed", "DeadlineExceeded").await?;
    let took = seconds(&job, "completionTime")? - seconds(&job, "startTime")?;
    // A machine that is busy may be late, but never early.
    ensure!((LIMIT..LIMIT + 3).contains(&took), "it failed after {took} s");
    only_pods(scene, &[]).await?;
    ensure!(metric(scene, "training_jobs_failed_total").await? == 1.0, "not counted");
    Ok(())
}

async fn a_job_goes_with_all_that_it_made_when_its_time_to_live_is_over(scene: &mut Scene) -> Result<()> {
    const LIFE: i64 = 3;
    scene.start(&["training-job"]).await?;
    let spec = json!({"hyperparameters": {"rate": 0.1}, "runPolicy": {"ttlSecondsAfterFinished": LIFE}});
    scene.namespace.apply(job(spec)).await?;
    runs(scene, JOB).await?;
    succeed(scene).await?;
    let says_when = |job: &Value| job["status"]["expirationTime"].is_string();
    let ended = scene.namespace.until("TrainingJob", JOB, "to say when it goes", says_when).await?;
    let over = seconds(&ended, "completionTime")? + LIFE;
    ensure!(seconds(&ended, "expirationTime")? == over, "{}", ended["status"]);
    ensure!(pods(scene).await?.len() == 2, "its Pods go at once");
    scene.namespace.until_gone("TrainingJob", JOB).await?;
    ensure!(Timestamp::now().as_second() >= over, "it is early");
    ensure!(pods(scene).await?.is_empty(), "Pods are left");
    for (kind, name) in [("Service", JOB), ("ConfigMap", "mnist-hyperparameters")] {
        ensure!(scene.namespace.get(kind, name).await?.is_none(), "a {kind} is left");
    }
    Ok(())
}

async fn a_time_to_live_can_change_until_it_is_over(scene: &mut Scene) -> Result<()> {
    start_running(scene, json!({"runPolicy": {"ttlSecondsAfterFinished": 3600}})).await?;
    succeed(scene).await?;
    let says_when = |job: &Value| job["status"]["expirationTime"].is_string();
    scene.namespace.until("TrainingJob", JOB, "to say when it goes", says_when).await?;
    scene.host.stop().await?;
    let shorter = json!({"spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}});
    scene.namespace.patch("TrainingJob", JOB, shorter).await?;
    scene.host.resume().await?;
    scene.namespace.until_gone("TrainingJob", JOB).await?;
    only_pods(scene, &[]).await
}

fn seconds(job: &Value, field: &str) -> Result<i64> {
    Ok(text(&job["status"][field])?.parse::<Timestamp>()?.as_second())
}
