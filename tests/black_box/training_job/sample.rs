//! The sample job, unchanged, from waiting for its claim to its end: Pods, Service, status, Events and metrics.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use pilothouse_tests::{artifacts, cluster::condition};
use serde_json::{Value, json};

use super::words::{claim, counts, environment, events, has, metric, pods, runs, succeed, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

const NAME: &str = "mnist-training";

/// The namespace that the sample names.
const NAMESPACE: &str = "ml-team";

pub fn register(suite: &mut Suite) {
    tests!(suite, the_sample_runs_to_its_end_and_is_counted_once);
}

async fn the_sample_runs_to_its_end_and_is_counted_once(env: &mut TestEnv) -> Result<()> {
    *env = TestEnv::new(env.cluster.clone(), NAMESPACE).await?;
    env.start(&["training-job"]).await?;
    env.namespace.apply(sample()?).await?;
    waits_for_its_claim(env).await?;
    claim(env, "training-data-pvc").await?;
    let running = runs(env, NAME).await?;
    is_reported_as_running(&running)?;
    workers_know_each_other(env).await?;
    its_service_is_headless(env).await?;
    succeed(env).await?;
    let ended = has(env, NAME, "Succeeded", "TrainingJobSucceeded").await?;
    is_reported_as_succeeded(&ended, &running)?;
    env.event("TrainingJob", NAME, "TrainingJobSucceeded").await?;
    everything_is_reported_once(env).await?;
    everything_is_counted(env, 1.0).await?;

    env.host.stop().await?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", NAME, "again").await).await?;
    everything_is_reported_once(env).await?;
    everything_is_counted(env, 0.0).await
}

fn sample() -> Result<Value> {
    let file = artifacts::repository().join("crds/samples/trainingjob.yaml");
    Ok(serde_saphyr::from_str(&std::fs::read_to_string(file)?)?)
}

/// Nothing is created before the claim exists.
async fn waits_for_its_claim(env: &TestEnv) -> Result<()> {
    let job = waits(env, NAME, "ClaimNotFound").await?;
    let message = &condition(&job, "Ready")["message"];
    ensure!(message.to_string().contains("'training-data-pvc'"), "it does not name the claim: {message}");
    for kind in ["Pod", "Service"] {
        ensure!(env.namespace.list(kind).await?.is_empty(), "a {kind} was made");
    }
    Ok(())
}

fn is_reported_as_running(job: &Value) -> Result<()> {
    let status = &job["status"];
    ensure!(status["startTime"].is_string() && status.get("completionTime").is_none(), "{status}");
    is(job, &[("Created", "True"), ("Running", "True"), ("Ready", "True")])?;
    ensure!(condition(job, "Reconciling").is_null(), "{status}");
    let workers = status["workerStatuses"].as_array().cloned().unwrap_or_default();
    ensure!(workers.len() == 4, "{status}");
    for (number, worker) in workers.iter().enumerate() {
        ensure!(worker["workerId"] == number && worker["status"] == "Running", "{worker}");
        ensure!(worker["podName"] == format!("{NAME}-worker-{number}"), "{worker}");
    }
    Ok(())
}

async fn workers_know_each_other(env: &TestEnv) -> Result<()> {
    let pods = pods(env).await?;
    ensure!(pods.len() == 4, "{:?}", pods.keys());
    for (number, (name, pod)) in pods.iter().enumerate() {
        ensure!(*name == format!("{NAME}-worker-{number}"), "{name}");
        let spec = &pod["spec"];
        ensure!(spec["hostname"] == *name && spec["subdomain"] == NAME, "{spec}");
        ensure!(spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1", "{spec}");
        let rank = number.to_string();
        let found = environment(pod);
        let hyperparameters = found.get("HYPERPARAMETERS").copied().unwrap_or_default();
        let hyperparameters: Value = serde_json::from_str(hyperparameters)?;
        ensure!(
            hyperparameters == json!({"learningRate": 0.001, "optimizer": "adam", "momentum": 0.9}),
            "{hyperparameters}"
        );
        let expected = BTreeMap::from([
            ("PYTHONUNBUFFERED", "1"),
            ("MASTER_ADDR", "mnist-training-worker-0.mnist-training"),
            ("MASTER_PORT", "29500"),
            ("WORLD_SIZE", "4"),
            ("RANK", &rank),
            ("PET_MASTER_ADDR", "mnist-training-worker-0.mnist-training"),
            ("PET_MASTER_PORT", "29500"),
            ("PET_NNODES", "4"),
            ("PET_NODE_RANK", &rank),
            ("PET_NPROC_PER_NODE", "1"),
            ("CHECKPOINT_DIR", "/checkpoints/mnist"),
        ]);
        let others: BTreeMap<_, _> = found.into_iter().filter(|(name, _)| *name != "HYPERPARAMETERS").collect();
        ensure!(others == expected, "{others:?}");
    }
    Ok(())
}

async fn its_service_is_headless(env: &TestEnv) -> Result<()> {
    let service = env.namespace.get("Service", NAME).await?.unwrap_or_default();
    let spec = &service["spec"];
    ensure!(spec["clusterIP"] == "None" && spec["publishNotReadyAddresses"] == true, "{service}");
    ensure!(spec["selector"] == json!({"ml.example.com/job-name": NAME}), "{service}");
    Ok(())
}

fn is_reported_as_succeeded(job: &Value, before: &Value) -> Result<()> {
    let status = &job["status"];
    ensure!(status["phase"] == "Succeeded" && status["succeeded"] == 4, "{status}");
    ensure!(status["startTime"] == before["status"]["startTime"], "the start has moved: {status}");
    // Times in this format can be compared as strings.
    ensure!(status["completionTime"].as_str() >= status["startTime"].as_str(), "{status}");
    ensure!(condition(job, "Reconciling").is_null(), "{status}");
    is(job, &[("Created", "True"), ("Running", "False"), ("Succeeded", "True"), ("Ready", "True")])
}

fn is(job: &Value, expected: &[(&str, &str)]) -> Result<()> {
    for (name, status) in expected {
        let found = condition(job, name);
        ensure!(found["status"] == *status, "{name} is not {status}: {found}");
    }
    Ok(())
}

async fn everything_is_reported_once(env: &TestEnv) -> Result<()> {
    let mut events = events(env, NAME).await?;
    // Other controllers decide when the claim is bound. Until then the scheduler reports the Pods as unschedulable.
    events.retain(|event| event.reason != "Unschedulable");
    let once = [("TrainingJobCreated", 1), ("TrainingJobSucceeded", 1), ("WorkersCreated", 1)];
    ensure!(counts(&events) == BTreeMap::from(once), "{events:?}");
    let workers = events.iter().find(|event| event.reason == "WorkersCreated");
    ensure!(workers.is_some_and(|event| event.message == "Created 4 worker pods"), "{events:?}");
    Ok(())
}

async fn everything_is_counted(env: &TestEnv, times: f64) -> Result<()> {
    for (name, expected) in [
        ("training_jobs_created_total", times),
        ("training_jobs_succeeded_total", times),
        ("training_job_duration_seconds_count", times),
        ("training_jobs_failed_total", 0.0),
        ("training_jobs_restarted_total", 0.0),
    ] {
        let found = metric(env, name).await?;
        ensure!(found == expected, "{name} is {found} in the place of {expected}");
    }
    let labels = [("namespace", NAMESPACE), ("framework", "pytorch")];
    let found = env.metrics().await?.sum("training_jobs_succeeded_total", &labels);
    ensure!(found == times, "not counted by namespace and framework");
    Ok(())
}
