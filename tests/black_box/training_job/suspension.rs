//! Suspended jobs: they have no Pods, and start again when they are resumed.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::words::{JOB, counts, events, has, has_events, job, only_pods, runs};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_job_that_is_suspended_while_it_starts_goes_on_when_it_is_resumed,
        a_job_that_is_created_suspended_has_no_pods,
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

async fn suspend(env: &TestEnv, suspend: bool) -> Result<()> {
    env.namespace.patch("TrainingJob", JOB, json!({"spec": {"runPolicy": {"suspend": suspend}}})).await?;
    Ok(())
}
