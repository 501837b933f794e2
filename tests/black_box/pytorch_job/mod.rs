//! The plugin `pytorch-job` on a real API server with the training operator's own CRD: jobs run, fail, are suspended and are cleaned up
//! as under the training operator.

mod managed;
mod names;
mod recreation;
mod schedulers;
mod size;

use anyhow::{Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition, install_crd},
    third_party::PYTORCH_JOB,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
    training_job::words::{exit, is_replaced, only_pods, pods, text},
};

const NAME: &str = "mnist";

/// The Pods of the sample.
const PODS: [&str; 3] = ["mnist-master-0", "mnist-worker-0", "mnist-worker-1"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_sample_runs_and_ends_with_its_master,
        an_exit_code_by_a_signal_is_retried_and_another_one_is_final,
        a_suspended_job_has_nothing_and_starts_again,
        a_job_goes_some_seconds_after_its_end,
        a_deleted_job_leaves_nothing,
    );
    managed::register(suite);
    names::register(suite);
    recreation::register(suite);
    schedulers::register(suite);
    size::register(suite);
}

/// The sample with this policy.
fn sample(run_policy: &Value, restart_policy: &str) -> Result<Value> {
    let file = artifacts::repository().join("plugins/pytorch-job/samples/mnist.yaml");
    let mut job: Value = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
    job["spec"]["runPolicy"] = run_policy.clone();
    for replicas in ["Master", "Worker"] {
        job["spec"]["pytorchReplicaSpecs"][replicas]["restartPolicy"] = json!(restart_policy);
    }
    Ok(job)
}

async fn start(env: &mut TestEnv, job: Value) -> Result<()> {
    install_crd(&env.namespace.client(), &PYTORCH_JOB.fetch().await?).await?;
    env.start(&["pytorch-job"]).await?;
    env.namespace.apply(job).await?;
    Ok(())
}

async fn has(env: &TestEnv, condition_type: &str, reason: &str) -> Result<Value> {
    let holds = |job: &Value| {
        let found = condition(job, condition_type);
        found["status"] == "True" && found["reason"] == reason
    };
    env.namespace.until("PyTorchJob", NAME, &format!("to be {condition_type} for {reason}"), holds).await
}

async fn runs(env: &TestEnv) -> Result<Value> {
    let all_run = |job: &Value| {
        let active = |replicas: &str| job["status"]["replicaStatuses"][replicas]["active"].clone();
        condition(job, "Running")["status"] == "True" && active("Master") == 1 && active("Worker") == 2
    };
    env.namespace.until("PyTorchJob", NAME, "to run with all its replicas", all_run).await
}

/// The type of the last condition: what `kubectl get` shows as the state.
fn state(job: &Value) -> Value {
    let last = job["status"]["conditions"].as_array().and_then(|conditions| conditions.last());
    last.map(|condition| condition["type"].clone()).unwrap_or_default()
}

async fn the_sample_runs_and_ends_with_its_master(env: &mut TestEnv) -> Result<()> {
    start(env, sample(&json!({"cleanPodPolicy": "Running"}), "OnFailure")?).await?;
    let job = runs(env).await?;
    ensure!(state(&job) == "Running" && job["status"]["startTime"].is_string(), "{}", job["status"]);
    only_pods(env, &PODS).await?;
    for name in PODS {
        ensure!(env.namespace.get("Service", name).await?.is_some(), "there is no Service {name}");
    }
    let selector = &job["status"]["replicaStatuses"]["Worker"]["selector"];
    ensure!(selector.to_string().contains("training.kubeflow.org/replica-type=worker"), "{selector}");

    exit(env, "mnist-master-0", 0).await?;
    let ended = has(env, "Succeeded", "PyTorchJobSucceeded").await?;
    ensure!(state(&ended) == "Succeeded" && ended["status"]["completionTime"].is_string(), "{}", ended["status"]);
    ensure!(condition(&ended, "Running")["status"] == "False", "{}", ended["status"]);
    env.event("PyTorchJob", NAME, "PyTorchJobSucceeded").await?;
    // Those that still ran go, the one that has ended stays with its Service.
    only_pods(env, &["mnist-master-0"]).await?;
    env.namespace.until_gone("Service", "mnist-worker-0").await?;
    ensure!(env.namespace.get("Service", "mnist-master-0").await?.is_some(), "the master's Service is gone");

    let metrics = env.metrics_at_rest().await?;
    for (metric, expected) in [("created", 1.0), ("successful", 1.0), ("failed", 0.0), ("restarted", 0.0)] {
        let labels = [("job_namespace", &*env.namespace.name), ("framework", "pytorch")];
        let found = metrics.sum(&format!("training_operator_jobs_{metric}_total"), &labels);
        ensure!(found == expected, "{found} {metric}");
    }
    // The kind has no field for an observed generation, and nobody can be asked to add one.
    let told = env.log_lines().into_iter().filter(|line| line["reason"] == "StatusFieldsDropped").count();
    ensure!(told == 0, "the user is told {told} times of fields that only the host misses");
    Ok(())
}

async fn an_exit_code_by_a_signal_is_retried_and_another_one_is_final(env: &mut TestEnv) -> Result<()> {
    start(env, sample(&json!({}), "ExitCode")?).await?;
    runs(env).await?;
    let before = pods(env).await?;
    exit(env, "mnist-worker-1", 137).await?;
    is_replaced(env, "mnist-worker-1", &before["mnist-worker-1"]).await?;
    env.event("PyTorchJob", NAME, "PyTorchJobRestarting").await?;
    runs(env).await?;
    let after = pods(env).await?;
    for stays in ["mnist-master-0", "mnist-worker-0"] {
        ensure!(before[stays]["metadata"]["uid"] == after[stays]["metadata"]["uid"], "{stays} was restarted as well");
    }
    exit(env, "mnist-worker-0", 1).await?;
    let failed = has(env, "Failed", "PyTorchJobFailed").await?;
    ensure!(state(&failed) == "Failed", "{}", failed["status"]);
    let message = condition(&failed, "Failed")["message"].to_string();
    ensure!(message.contains("mnist-worker-0 (exit code 1)"), "{message}");
    Ok(())
}

async fn a_suspended_job_has_nothing_and_starts_again(env: &mut TestEnv) -> Result<()> {
    start(env, sample(&json!({"suspend": true}), "OnFailure")?).await?;
    let suspended = has(env, "Suspended", "PyTorchJobSuspended").await?;
    ensure!(suspended["status"].get("startTime").is_none(), "{}", suspended["status"]);
    only_pods(env, &[]).await?;
    suspend(env, false).await?;
    let job = runs(env).await?;
    ensure!(condition(&job, "Suspended")["reason"] == "PyTorchJobResumed", "{}", job["status"]);
    suspend(env, true).await?;
    let suspended = has(env, "Suspended", "PyTorchJobSuspended").await?;
    ensure!(condition(&suspended, "Running")["reason"] == "PyTorchJobSuspended", "{}", suspended["status"]);
    only_pods(env, &[]).await?;
    for name in PODS {
        env.namespace.until_gone("Service", name).await?;
    }
    suspend(env, false).await?;
    runs(env).await?;
    Ok(())
}

async fn suspend(env: &TestEnv, suspend: bool) -> Result<()> {
    env.namespace.patch("PyTorchJob", NAME, json!({"spec": {"runPolicy": {"suspend": suspend}}})).await?;
    Ok(())
}

/// The kind has no field for the time of its end of life: the host adds the seconds in the spec to the time at which the job ended.
async fn a_job_goes_some_seconds_after_its_end(env: &mut TestEnv) -> Result<()> {
    start(env, sample(&json!({"ttlSecondsAfterFinished": 3}), "OnFailure")?).await?;
    runs(env).await?;
    exit(env, "mnist-master-0", 0).await?;
    let ended = has(env, "Succeeded", "PyTorchJobSucceeded").await?;
    let end: jiff::Timestamp = text(&ended["status"]["completionTime"])?.parse()?;
    env.namespace.until_gone("PyTorchJob", NAME).await?;
    let lived = jiff::Timestamp::now().duration_since(end).as_secs();
    ensure!(lived >= 3, "it went {lived} s after its end");
    Ok(())
}

async fn a_deleted_job_leaves_nothing(env: &mut TestEnv) -> Result<()> {
    start(env, sample(&json!({}), "OnFailure")?).await?;
    runs(env).await?;
    env.namespace.delete("PyTorchJob", NAME).await?;
    env.namespace.until_gone("PyTorchJob", NAME).await?;
    // The garbage collector learns of a kind that was installed after its start only every half minute.
    eventually(PATIENCE * 3, "the Pods to be gone", async || {
        let pods = pods(env).await?;
        Ok(Look::of(pods.is_empty(), pods.keys()))
    })
    .await?;
    env.namespace.until_gone("Service", "mnist-master-0").await?;
    env.namespace.until_gone("ConfigMap", "mnist-pytorchjob-state").await
}
