//! Jobs that shall not run for now: they have no Pods, and begin anew when they are resumed.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::words::{JOB, counts, has, job, only_pods, runs, told, told_times};
use crate::{
    scene::Scene,
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_job_that_is_suspended_while_it_starts_goes_on_when_it_is_resumed,
        a_job_that_begins_suspended_makes_nothing,
    );
}

/// As a queue does it: the job is changed while it is suspended.
async fn a_job_that_is_suspended_while_it_starts_goes_on_when_it_is_resumed(scene: &mut Scene) -> Result<()> {
    scene.start(&["training-job"]).await?;
    scene.namespace.apply(job(json!({"nodeSelector": {"no-node": "has-this"}}))).await?;
    let stuck = |job: &Value| job["status"]["workerStatuses"][1]["reason"] == "Unschedulable";
    scene.namespace.until("TrainingJob", JOB, "to say why it does not run", stuck).await?;
    suspend(scene, true).await?;
    let suspended = has(scene, JOB, "Suspended", "TrainingJobSuspended").await?;
    ensure!(suspended["status"]["phase"] == "Pending" && suspended["status"].get("startTime").is_none(), "{suspended}");
    only_pods(scene, &[]).await?;
    scene.namespace.until_gone("Service", JOB).await?;

    scene.namespace.patch("TrainingJob", JOB, json!({"spec": {"nodeSelector": null}})).await?;
    suspend(scene, false).await?;
    let job = runs(scene, JOB).await?;
    let ended = condition(&job, "Suspended");
    ensure!(ended["status"] == "False" && ended["reason"] == "TrainingJobResumed", "{ended}");
    for (reason, times) in [("TrainingJobSuspended", 1), ("TrainingJobResumed", 1), ("WorkersCreated", 2)] {
        told_times(scene, JOB, reason, times).await?;
    }
    Ok(())
}

async fn a_job_that_begins_suspended_makes_nothing(scene: &mut Scene) -> Result<()> {
    scene.start(&["training-job"]).await?;
    scene.namespace.apply(job(json!({"runPolicy": {"suspend": true}}))).await?;
    has(scene, JOB, "Suspended", "TrainingJobSuspended").await?;
    scene.event("TrainingJob", JOB, "TrainingJobSuspended").await?;
    for kind in ["Pod", "Service"] {
        ensure!(scene.namespace.list(kind).await?.is_empty(), "a {kind} was made");
    }
    let told = told(scene, JOB).await?;
    ensure!(counts(&told) == BTreeMap::from([("TrainingJobCreated", 1), ("TrainingJobSuspended", 1)]), "{told:?}");
    suspend(scene, false).await?;
    runs(scene, JOB).await?;
    Ok(())
}

async fn suspend(scene: &Scene, suspend: bool) -> Result<()> {
    scene.namespace.patch("TrainingJob", JOB, json!({"spec": {"runPolicy": {"suspend": suspend}}})).await?;
    Ok(())
}
