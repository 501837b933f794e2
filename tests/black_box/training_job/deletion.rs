//! Jobs that are deleted while they run: everything that they made goes first, and claims stay.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::words::{JOB, claim, start_running};
use crate::{
    scene::Scene,
    suite::{Suite, tests},
};

const FINALIZER: &str = "trainingjob.ml.example.com/finalizer";

/// The ConfigMap that the cluster puts into every namespace, the host's record and the test's own.
const OTHERS: [&str; 3] = ["kube-root-ca.crt", "pilothouse-kinds", "settings"];

pub fn register(suite: &mut Suite) {
    tests!(suite, a_running_job_leaves_nothing_behind, a_job_is_held_while_its_host_is_down,);
}

async fn a_running_job_leaves_nothing_behind(scene: &mut Scene) -> Result<()> {
    start_with_everything(scene).await?;
    scene.namespace.delete("TrainingJob", JOB).await?;
    nothing_is_left(scene).await
}

/// What is deleted while nobody looks is cleaned up later.
async fn a_job_is_held_while_its_host_is_down(scene: &mut Scene) -> Result<()> {
    start_with_everything(scene).await?;
    scene.host.kill().await?;
    scene.namespace.delete("TrainingJob", JOB).await?;
    let job = scene.namespace.get("TrainingJob", JOB).await?.unwrap_or_default();
    ensure!(job["metadata"]["finalizers"] == json!([FINALIZER]), "nothing holds it: {job}");
    scene.host.resume().await?;
    nothing_is_left(scene).await
}

/// Brings a job with all kinds of children to run.
async fn start_with_everything(scene: &mut Scene) -> Result<()> {
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"seed": "7"},
    });
    scene.namespace.apply(settings).await?;
    claim(scene, "data").await?;
    let spec = json!({
        "dataVolume": {"claimName": "data"}, "hyperparameters": {"rate": 0.1},
        "configMaps": [{"name": "settings", "mountPath": "/etc/settings"}],
    });
    let job = start_running(scene, spec).await?;
    ensure!(job["metadata"]["finalizers"] == json!([FINALIZER]), "{job}");
    ensure!(made_config_maps(scene).await? == 2, "the test is about nothing");
    Ok(())
}

/// Waits until the job is gone; all that it made is gone then.
async fn nothing_is_left(scene: &Scene) -> Result<()> {
    scene.namespace.until_gone("TrainingJob", JOB).await?;
    for kind in ["Pod", "Service"] {
        let left = scene.namespace.list(kind).await?;
        ensure!(left.is_empty(), "a {kind} is left: {left:?}");
    }
    ensure!(made_config_maps(scene).await? == 0, "a ConfigMap is left");
    for (kind, name) in [("PersistentVolumeClaim", "data"), ("ConfigMap", "settings")] {
        let kept = scene.namespace.get(kind, name).await?;
        let stays = |kept: &Value| kept["metadata"].get("deletionTimestamp").is_none();
        ensure!(kept.as_ref().is_some_and(stays), "the user's {kind} does not stay: {kept:?}");
    }
    Ok(())
}

async fn made_config_maps(scene: &Scene) -> Result<usize> {
    let all = scene.namespace.list("ConfigMap").await?;
    let is_other = |map: &&Value| OTHERS.iter().any(|other| map["metadata"]["name"] == *other);
    Ok(all.iter().filter(|map| !is_other(map)).count())
}
