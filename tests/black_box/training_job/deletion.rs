//! Deletion of running jobs: their children are deleted first, and claims stay. And what is told of Pods that are deleted.

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::words::{JOB, claim, events, has_events, only_pods, start_running, suspend};
use crate::{
    permissions::{allow, be_restricted, rule},
    suite::{Suite, tests},
    test_env::TestEnv,
};

const FINALIZER: &str = "trainingjob.ml.example.com/finalizer";

/// ConfigMaps that are not the job's: the one that the cluster creates in every namespace, the host's record, and the test's own.
const OTHERS: [&str; 3] = ["kube-root-ca.crt", "pilothouse-kinds", "settings"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_running_job_leaves_nothing_behind,
        a_job_is_held_while_its_host_is_down,
        pods_that_the_host_may_not_delete_are_not_told_as_deleted,
    );
}

async fn a_running_job_leaves_nothing_behind(env: &mut TestEnv) -> Result<()> {
    start_with_everything(env).await?;
    env.namespace.delete("TrainingJob", JOB).await?;
    nothing_is_left(env).await
}

/// A job that is deleted while the host is down is cleaned up later.
async fn a_job_is_held_while_its_host_is_down(env: &mut TestEnv) -> Result<()> {
    start_with_everything(env).await?;
    env.host.kill().await?;
    env.namespace.delete("TrainingJob", JOB).await?;
    let job = env.namespace.get("TrainingJob", JOB).await?.unwrap_or_default();
    ensure!(job["metadata"]["finalizers"] == json!([FINALIZER]), "nothing holds it: {job}");
    env.host.resume().await?;
    nothing_is_left(env).await
}

async fn pods_that_the_host_may_not_delete_are_not_told_as_deleted(env: &mut TestEnv) -> Result<()> {
    const TOLD: &str = "SuccessfulDeletePod";
    let mut rules = vec![rule("*", "*", "get list watch create patch update")];
    allow(env, &rules).await?;
    be_restricted(env, &[])?;
    start_running(env, json!({})).await?;
    suspend(env, true).await?;
    let refused = |job: &Value| {
        let ready = condition(job, "Ready");
        ready["reason"] == "Forbidden" && condition(job, "Suspended")["status"] == "True"
    };
    env.namespace.until("TrainingJob", JOB, "to say that its Pods may not be deleted", refused).await?;
    has_events(env, JOB, "TrainingJobSuspended", 1).await?;
    let told = events(env, JOB).await?;
    ensure!(told.iter().all(|event| event.reason != TOLD), "they are all there: {told:#?}");
    rules.push(rule("", "pods", "delete"));
    rules.push(rule("", "services", "delete"));
    allow(env, &rules).await?;
    only_pods(env, &[]).await?;
    has_events(env, JOB, TOLD, 1).await
}

/// Starts a job with children of all kinds and waits until it runs.
async fn start_with_everything(env: &mut TestEnv) -> Result<()> {
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"seed": "7"},
    });
    env.namespace.apply(settings).await?;
    claim(env, "data").await?;
    let spec = json!({
        "dataVolume": {"claimName": "data"}, "hyperparameters": {"rate": 0.1},
        "configMaps": [{"name": "settings", "mountPath": "/etc/settings"}],
    });
    let job = start_running(env, spec).await?;
    ensure!(job["metadata"]["finalizers"] == json!([FINALIZER]), "{job}");
    ensure!(config_maps_of_job(env).await? == 2, "the test is about nothing");
    Ok(())
}

/// Waits until the job is gone, and checks that its children are gone and the user's objects stay.
async fn nothing_is_left(env: &TestEnv) -> Result<()> {
    env.namespace.until_gone("TrainingJob", JOB).await?;
    for kind in ["Pod", "Service"] {
        let left = env.namespace.list(kind).await?;
        ensure!(left.is_empty(), "a {kind} is left: {left:?}");
    }
    ensure!(config_maps_of_job(env).await? == 0, "a ConfigMap is left");
    for (kind, name) in [("PersistentVolumeClaim", "data"), ("ConfigMap", "settings")] {
        let kept = env.namespace.get(kind, name).await?;
        let stays = |kept: &Value| kept["metadata"].get("deletionTimestamp").is_none();
        ensure!(kept.as_ref().is_some_and(stays), "the user's {kind} does not stay: {kept:?}");
    }
    Ok(())
}

async fn config_maps_of_job(env: &TestEnv) -> Result<usize> {
    let all = env.namespace.list("ConfigMap").await?;
    let is_other = |map: &&Value| OTHERS.iter().any(|other| map["metadata"]["name"] == *other);
    Ok(all.iter().filter(|map| !is_other(map)).count())
}
