//! Suspended jobs: they have no Pods, and start again when they are resumed.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{
    JOB, counts, events, has, has_events, job, metric, only_pods, pods, runs, start_running, succeed, suspend, text,
};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The least time that a job runs before it is suspended.
const BEFORE: SignedDuration = SignedDuration::from_secs(4);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_job_that_is_suspended_while_it_starts_goes_on_when_it_is_resumed,
        a_job_that_is_created_suspended_has_no_pods,
        a_duration_has_the_time_before_a_suspension,
        a_job_that_succeeded_before_its_suspension_was_seen_has_succeeded,
    );
}

/// As with a job queue: the job is changed while it is suspended.
async fn a_job_that_is_suspended_while_it_starts_goes_on_when_it_is_resumed(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"nodeSelector": {"no-node": "has-this"}}))).await?;
    let stuck = |job: &Value| job["status"]["workerStatuses"][1]["reason"] == "Unschedulable";
    env.namespace.until("TrainingJob", JOB, "to say why it does not run", stuck).await?;
    suspend(env, true).await?;
    let suspended = has(env, JOB, "Suspended", "TrainingJobSuspended").await?;
    ensure!(suspended["status"]["phase"] == "Pending" && suspended["status"].get("startTime").is_none(), "{suspended}");
    only_pods(env, &[]).await?;
    env.namespace.until_gone("Service", JOB).await?;

    env.namespace.patch("TrainingJob", JOB, json!({"spec": {"nodeSelector": null}})).await?;
    suspend(env, false).await?;
    let job = runs(env, JOB).await?;
    let ended = condition(&job, "Suspended");
    ensure!(ended["status"] == "False" && ended["reason"] == "TrainingJobResumed", "{ended}");
    for (reason, times) in [("TrainingJobSuspended", 1), ("TrainingJobResumed", 1), ("WorkersCreated", 2)] {
        has_events(env, JOB, reason, times).await?;
    }
    Ok(())
}

async fn a_job_that_is_created_suspended_has_no_pods(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"runPolicy": {"suspend": true}}))).await?;
    has(env, JOB, "Suspended", "TrainingJobSuspended").await?;
    env.event("TrainingJob", JOB, "TrainingJobSuspended").await?;
    for kind in ["Pod", "Service"] {
        ensure!(env.namespace.list(kind).await?.is_empty(), "a {kind} was made");
    }
    let events = events(env, JOB).await?;
    ensure!(counts(&events) == BTreeMap::from([("TrainingJobCreated", 1), ("TrainingJobSuspended", 1)]), "{events:?}");
    suspend(env, false).await?;
    runs(env, JOB).await?;
    Ok(())
}

async fn a_job_that_succeeded_before_its_suspension_was_seen_has_succeeded(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({})).await?;
    env.host.stop().await?;
    succeed(env).await?;
    for pod in pods(env).await?.keys() {
        let ended = |pod: &Value| pod["status"]["phase"] == "Succeeded";
        env.namespace.until("Pod", pod, "to end with success", ended).await?;
    }
    suspend(env, true).await?;
    env.host.resume().await?;
    let job = has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    ensure!(condition(&job, "Suspended").is_null() && job["status"]["succeeded"] == 2, "{}", job["status"]);
    Ok(())
}

async fn a_duration_has_the_time_before_a_suspension(env: &mut TestEnv) -> Result<()> {
    let started = start_running(env, json!({})).await?;
    let began: Timestamp = text(&started["status"]["startTime"])?.parse()?;
    eventually(PATIENCE, "some seconds to pass", async || {
        let passed = Timestamp::now().duration_since(began);
        Ok(Look::of(passed > BEFORE, passed))
    })
    .await?;
    suspend(env, true).await?;
    let job = has(env, JOB, "Suspended", "TrainingJobSuspended").await?;
    let elapsed = job["status"]["elapsedSeconds"].as_f64().unwrap_or_default();
    ensure!(elapsed >= BEFORE.as_secs_f64(), "{}", job["status"]);
    only_pods(env, &[]).await?;
    suspend(env, false).await?;
    runs(env, JOB).await?;
    succeed(env).await?;
    has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    let measured = metric(env, "training_job_duration_seconds_sum").await?;
    ensure!(measured >= elapsed, "{measured} s, of which {elapsed} s before the suspension");
    Ok(())
}
