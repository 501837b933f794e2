//! The largest job: how long it takes until all of its workers run, what that costs the host, and how often its status is written.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::{Awaited, HOST_USER, condition},
    thoroughness,
};
use serde_json::{Value, json};

use super::words::{JOB, has_events, is_running_with_all, job, metric};
use crate::{
    suite::{Suite, timed_with},
    test_env::TestEnv,
};

const WORKERS: usize = 1000;

/// The time limit for all workers to run. Creating, placing and starting the Pods takes the API server, the scheduler and the simulated
/// kubelet most of it.
const PATIENCE: Duration = Duration::from_secs(100);

/// The most computing time of the host, which is no optimised build.
const CPU: Duration = Duration::from_secs(60);

/// Status writes that do not depend on the time: for the new Pods, for the running job, and for the details that were held last.
const NEWS: usize = 3;

pub fn register(suite: &mut Suite) {
    timed_with!(suite, thoroughness::all(), a_thousand_workers_run_and_are_reported_once_a_second);
}

async fn a_thousand_workers_run_and_are_reported_once_a_second(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let (cpu, began) = (cpu_seconds(env).await?, Instant::now());
    env.namespace.apply(job(json!({"workers": WORKERS, "hyperparameters": {"rate": 0.1}}))).await?;
    let made = |job: &Value| job["status"]["startTime"].is_string();
    let awaited = |what| Awaited { kind: "TrainingJob", name: JOB, what };
    env.namespace.until_within(PATIENCE, &awaited("to have all its Pods"), made).await?;
    let made = began.elapsed();
    let running = env.namespace.until_within(PATIENCE, &awaited("to run"), is_running_with_all).await?;
    let ran = began.elapsed();
    let cpu = Duration::from_secs_f64(cpu_seconds(env).await? - cpu);
    let writes = env.host_writes().await?.iter().filter(|write| write.contains("trainingjobs/status")).count();
    let calls = env.metrics_at_rest().await?;
    let of_calls =
        |what: &str| calls.sum(&format!("pilothouse_plugin_call_seconds_{what}"), &[("plugin", "training-job")]);
    let mean = Duration::from_secs_f64(of_calls("sum") / of_calls("count"));
    eprintln!(
        "{WORKERS} workers: all made after {made:?}, all reported as running after {ran:?}, with {writes} status writes and {cpu:?} of \
         computing; {} calls of {mean:?}; the job has {} bytes",
        of_calls("count"),
        running.to_string().len(),
    );
    let pods = env.timed_writes_of(HOST_USER).await?.iter().filter(|(_, it)| it.starts_with("patch pods/")).count();
    ensure!(pods == WORKERS, "{pods} writes of {WORKERS} Pods");
    ensure!(writes <= usize::try_from(ran.as_secs())? + NEWS, "{writes} status writes in {ran:?}");
    ensure!(condition(&running, "Throttled").is_null(), "it is slowed down: {}", running["status"]["conditions"]);
    ensure!(cpu < CPU, "the host computed for {cpu:?}");
    has_events(env, JOB, "WorkersCreated", 1).await
}

/// How long the host has computed.
async fn cpu_seconds(env: &TestEnv) -> Result<f64> {
    metric(env, "process_cpu_seconds_total").await
}
