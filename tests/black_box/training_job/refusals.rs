//! Jobs that cannot be right: refused when they are submitted, or told what they wait for, and never half made.

use anyhow::{Result, bail, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::words::{JOB, claim, job, named, runs, waits};
use crate::{
    scene::Scene,
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        wrong_jobs_are_refused_when_they_are_submitted,
        jobs_without_what_is_required_are_refused,
        names_that_are_no_host_names_are_refused,
        a_missing_claim_is_waited_for,
        a_missing_config_map_is_waited_for,
        what_cannot_change_is_refused_on_a_running_job,
    );
}

/// Fields that are wrong, and what the refusal says.
fn wrong() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"framework": "jax"}), "supported values: \"pytorch\", \"tensorflow\""),
        (json!({"workers": 0}), "should be greater than or equal to 1"),
        (json!({"workers": 101}), "should be less than or equal to 100"),
        (json!({"gpuPerWorker": 9}), "should be less than or equal to 8"),
        (json!({"image": ""}), "spec.image"),
        (json!({"command": []}), "spec.command"),
        (json!({"dataVolume": {}}), "spec.dataVolume.claimName: Required value"),
        (json!({"env": [{"name": "RANK", "value": "0"}]}), "this name tells workers apart"),
        (json!({"parameterServers": 1}), "parameterServers is for framework tensorflow only"),
        (json!({"elastic": {"minWorkers": 3, "maxWorkers": 2}}), "elastic.minWorkers must be at most"),
        (json!({"elastic": {"minWorkers": 3, "maxWorkers": 4}}), "workers must be between"),
        (json!({"checkpointDir": "/data/../etc"}), "the path cannot have '.' or '..' in it"),
        (json!({"nodeSelector": {"zone": "no label"}}), "spec.nodeSelector.zone"),
        (json!({"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}}), "requests must be at most limits"),
        (json!({"runPolicy": {"restartPolicy": "Sometimes"}}), "spec.runPolicy.restartPolicy"),
        (json!({"runPolicy": {"activeDeadlineSeconds": 0}}), "spec.runPolicy.activeDeadlineSeconds"),
    ]
}

async fn wrong_jobs_are_refused_when_they_are_submitted(scene: &mut Scene) -> Result<()> {
    scene.start(&["training-job"]).await?;
    for (spec, why) in wrong() {
        refused(scene, job(spec), why).await?;
    }
    nothing_is_made(scene).await
}

async fn jobs_without_what_is_required_are_refused(scene: &mut Scene) -> Result<()> {
    scene.start(&["training-job"]).await?;
    for field in ["framework", "workers", "image", "command"] {
        let mut job = job(json!({}));
        job["spec"].as_object_mut().and_then(|spec| spec.remove(field));
        refused(scene, job, &format!("spec.{field}: Required value")).await?;
    }
    nothing_is_made(scene).await
}

async fn names_that_are_no_host_names_are_refused(scene: &mut Scene) -> Result<()> {
    scene.start(&["training-job"]).await?;
    let (too_long, longest) = ("a".repeat(54), "a".repeat(53));
    refused(scene, named(&too_long, json!({})), "at most 53 characters").await?;
    for name in ["7b", "a.b"] {
        refused(scene, named(name, json!({})), "begins with a letter and holds only").await?;
    }
    nothing_is_made(scene).await?;
    scene.namespace.apply(named(&longest, json!({"workers": 100, "nodeSelector": {"no-node": "has-this"}}))).await?;
    scene.namespace.until("Pod", &format!("{longest}-worker-99"), "to be made", |_| true).await?;
    Ok(())
}

async fn a_missing_claim_is_waited_for(scene: &mut Scene) -> Result<()> {
    let spec = json!({"dataVolume": {"claimName": "data"}, "checkpointVolume": {"claimName": "checkpoints"}});
    scene.start(&["training-job"]).await?;
    scene.namespace.apply(job(spec)).await?;
    for (field, name) in [("dataVolume", "data"), ("checkpointVolume", "checkpoints")] {
        says(scene, "ClaimNotFound", &format!("spec.{field} names the PersistentVolumeClaim '{name}'")).await?;
        nothing_is_made(scene).await?;
        claim(scene, name).await?;
    }
    runs(scene, JOB).await?;
    Ok(())
}

async fn a_missing_config_map_is_waited_for(scene: &mut Scene) -> Result<()> {
    scene.start(&["training-job"]).await?;
    scene.namespace.apply(job(json!({"envFrom": [{"configMapRef": {"name": "settings"}}]}))).await?;
    says(scene, "ConfigMapNotFound", "the ConfigMap 'settings'").await?;
    nothing_is_made(scene).await?;
    let settings =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"A": "1"}});
    scene.namespace.apply(settings).await?;
    runs(scene, JOB).await?;
    Ok(())
}

async fn what_cannot_change_is_refused_on_a_running_job(scene: &mut Scene) -> Result<()> {
    super::words::start_running(scene, json!({})).await?;
    for (change, why) in [
        (json!({"framework": "tensorflow"}), "the framework cannot change"),
        (json!({"runPolicy": {"restartPolicy": "Always"}}), "cannot change once the job has started"),
        (json!({"runPolicy": {"managedBy": "example.com/other"}}), "cannot change once the job has started"),
    ] {
        let Err(refusal) = scene.namespace.patch("TrainingJob", JOB, json!({"spec": change})).await else {
            bail!("{change} is taken");
        };
        ensure!(format!("{refusal:#}").contains(why), "{refusal:#}");
    }
    Ok(())
}

/// The API server refuses it and says why.
async fn refused(scene: &Scene, job: Value, why: &str) -> Result<()> {
    let spec = job["spec"].clone();
    let Err(refusal) = scene.namespace.apply(job).await else { bail!("{spec} is taken") };
    let refusal = format!("{refusal:#}").to_lowercase();
    ensure!(refusal.contains(&why.to_lowercase()), "{spec}: {refusal}");
    Ok(())
}

/// Waits until the job says what it waits for.
async fn says(scene: &Scene, reason: &str, what: &str) -> Result<()> {
    let holds = |job: &Value| condition(job, "Ready")["message"].to_string().contains(what);
    scene.namespace.until("TrainingJob", JOB, &format!("to say {what}"), holds).await?;
    waits(scene, JOB, reason).await?;
    Ok(())
}

async fn nothing_is_made(scene: &Scene) -> Result<()> {
    for kind in ["Pod", "Service"] {
        let made = scene.namespace.list(kind).await?;
        ensure!(made.is_empty(), "a {kind} is made: {made:?}");
    }
    Ok(())
}
