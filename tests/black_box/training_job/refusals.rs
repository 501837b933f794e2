//! Invalid and incomplete jobs: refused at submission, or waiting with a reason, and never created in part.

use anyhow::{Result, bail, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::words::{JOB, claim, job, named, runs, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        wrong_jobs_are_refused_when_they_are_submitted,
        jobs_without_what_is_required_are_refused,
        names_that_are_no_host_names_are_refused,
        hyperparameters_that_no_variable_can_hold_are_refused,
        a_missing_claim_is_waited_for,
        a_missing_config_map_is_waited_for,
        immutable_fields_of_a_running_job_cannot_change,
    );
}

/// Invalid specs, and the words of their refusal.
fn wrong() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"framework": "mxnet"}), "supported values: \"pytorch\", \"tensorflow\", \"jax\", \"mpi\""),
        (json!({"framework": "mpi"}), "mpi is for framework mpi only, and required there"),
        (json!({"mpi": {"sshSecretName": "keys"}}), "mpi is for framework mpi only, and required there"),
        (json!({"roles": [{"name": "launcher"}]}), "roles are those of the framework"),
        (json!({"framework": "jax", "roles": [{"name": "worker"}]}), "roles are those of the framework"),
        (json!({"workers": 0}), "should be greater than or equal to 1"),
        (json!({"workers": 1001}), "should be less than or equal to 1000"),
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
        (rule(json!({"action": "FailJob"})), "give onExitCodes, onReasons or onPodConditions"),
        (rule(json!({"action": "Ignore", "onReasons": []})), "give onExitCodes, onReasons or onPodConditions"),
    ]
}

/// A spec with one rule for failures.
fn rule(rule: Value) -> Value {
    json!({"runPolicy": {"podFailurePolicy": {"rules": [rule]}}})
}

async fn wrong_jobs_are_refused_when_they_are_submitted(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    for (spec, why) in wrong() {
        refused(env, job(spec), why).await?;
    }
    nothing_is_created(env).await
}

/// No container would start with them.
async fn hyperparameters_that_no_variable_can_hold_are_refused(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"hyperparameters": {"prompt": "x".repeat(130 << 10)}}))).await?;
    let job = waits(env, JOB, "Invalid").await?;
    let message = condition(&job, "Ready")["message"].to_string();
    ensure!(message.contains("no variable may have more than 131072"), "{message}");
    nothing_is_created(env).await
}

async fn jobs_without_what_is_required_are_refused(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    for field in ["framework", "workers", "image", "command"] {
        let mut job = job(json!({}));
        job["spec"].as_object_mut().and_then(|spec| spec.remove(field));
        refused(env, job, &format!("spec.{field}: Required value")).await?;
    }
    nothing_is_created(env).await
}

async fn names_that_are_no_host_names_are_refused(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let (too_long, longest) = ("a".repeat(54), "a".repeat(53));
    refused(env, named(&too_long, json!({})), "at most 53 characters").await?;
    for name in ["7b", "a.b"] {
        refused(env, named(name, json!({})), "begins with a letter and holds only").await?;
    }
    nothing_is_created(env).await?;
    env.namespace.apply(named(&longest, json!({"workers": 100, "nodeSelector": {"no-node": "has-this"}}))).await?;
    env.namespace.until("Pod", &format!("{longest}-worker-99"), "to be made", |_| true).await?;
    Ok(())
}

async fn a_missing_claim_is_waited_for(env: &mut TestEnv) -> Result<()> {
    let spec = json!({"dataVolume": {"claimName": "data"}, "checkpointVolume": {"claimName": "checkpoints"}});
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(spec)).await?;
    for (field, name) in [("dataVolume", "data"), ("checkpointVolume", "checkpoints")] {
        says(env, "ClaimNotFound", &format!("spec.{field} names the PersistentVolumeClaim '{name}'")).await?;
        nothing_is_created(env).await?;
        claim(env, name).await?;
    }
    runs(env, JOB).await?;
    Ok(())
}

async fn a_missing_config_map_is_waited_for(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"envFrom": [{"configMapRef": {"name": "settings"}}]}))).await?;
    says(env, "ConfigMapNotFound", "the ConfigMap 'settings'").await?;
    nothing_is_created(env).await?;
    let settings =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"A": "1"}});
    env.namespace.apply(settings).await?;
    runs(env, JOB).await?;
    Ok(())
}

async fn immutable_fields_of_a_running_job_cannot_change(env: &mut TestEnv) -> Result<()> {
    super::words::start_running(env, json!({})).await?;
    for (change, why) in [
        (json!({"framework": "tensorflow"}), "the framework cannot change"),
        (json!({"runPolicy": {"restartPolicy": "Always"}}), "cannot change once the job has started"),
        (json!({"runPolicy": {"managedBy": "example.com/other"}}), "cannot change once the job has started"),
    ] {
        let Err(refusal) = env.namespace.patch("TrainingJob", JOB, json!({"spec": change})).await else {
            bail!("{change} is taken");
        };
        ensure!(format!("{refusal:#}").contains(why), "{refusal:#}");
    }
    Ok(())
}

/// Checks that the API server refuses the job and says why.
async fn refused(env: &TestEnv, job: Value, why: &str) -> Result<()> {
    let spec = job["spec"].clone();
    let Err(refusal) = env.namespace.apply(job).await else { bail!("{spec} is taken") };
    let refusal = format!("{refusal:#}").to_lowercase();
    ensure!(refusal.contains(&why.to_lowercase()), "{spec}: {refusal}");
    Ok(())
}

/// Waits until the job says what it waits for.
async fn says(env: &TestEnv, reason: &str, what: &str) -> Result<()> {
    let holds = |job: &Value| condition(job, "Ready")["message"].to_string().contains(what);
    env.namespace.until("TrainingJob", JOB, &format!("to say {what}"), holds).await?;
    waits(env, JOB, reason).await?;
    Ok(())
}

async fn nothing_is_created(env: &TestEnv) -> Result<()> {
    for kind in ["Pod", "Service"] {
        let made = env.namespace.list(kind).await?;
        ensure!(made.is_empty(), "a {kind} is made: {made:?}");
    }
    Ok(())
}
