//! A large job: the time until all workers exist, the size of a request, and the number of status writes while they start.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use pilothouse_tests::cluster::{HOST_USER, condition};
use serde_json::{Value, json};

use super::words::{JOB, has_events, job, runs};
use crate::{
    suite::{Suite, tests, timed},
    test_env::TestEnv,
};

const WORKERS: usize = 100;

/// The longest time until all workers are created.
const MADE: Duration = Duration::from_secs(5);

/// The most bytes of a request to the plugin.
const REQUEST: usize = 2_000_000;

/// The time between the starts of two workers that start one by one.
const APART: Duration = Duration::from_millis(40);

/// Status writes that do not depend on the time: for the new Pods, for the running job, and for the details that were held last.
const NEWS: usize = 3;

pub fn register(suite: &mut Suite) {
    timed!(suite, a_hundred_workers_are_created_in_time);
    tests!(suite, workers_that_start_one_by_one_are_reported_once_a_second);
}

async fn a_hundred_workers_are_created_in_time(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let asked = Timestamp::now();
    env.namespace.apply(job(json!({"workers": WORKERS, "hyperparameters": {"rate": 0.1}}))).await?;
    let running = runs(env, JOB).await?;
    let ran = Duration::try_from(Timestamp::now().duration_since(asked))?;
    let writes = env.timed_writes_of(HOST_USER).await?;
    let pods: Vec<_> = writes.iter().filter(|(_, write)| write.starts_with("patch pods/")).collect();
    ensure!(pods.len() == WORKERS, "{} writes of {WORKERS} Pods", pods.len());
    let (last, _) = pods.iter().max_by_key(|(at, _)| at).context("no Pod was made")?;
    let made = Duration::try_from(last.duration_since(asked))?;
    let (shown, written) = (shown(env, &running).await?, status_writes(env).await?);
    let calls = env.metrics_at_rest().await?;
    let of_calls =
        |what: &str| calls.sum(&format!("pilothouse_plugin_call_seconds_{what}"), &[("plugin", "training-job")]);
    let mean = Duration::from_secs_f64(of_calls("sum") / of_calls("count"));
    eprintln!(
        "{WORKERS} workers: all made after {made:?}, all reported as running after {ran:?}, with {written} status writes; the \
         plugin is shown {shown} bytes, and answers within {mean:?}, the mean of {} calls",
        of_calls("count")
    );
    ensure!(made < MADE, "it took {made:?}");
    ensure!(shown < REQUEST, "{shown} bytes cross to the plugin");
    has_events(env, JOB, "WorkersCreated", 1).await
}

/// No node takes the Pods, so the test itself sets each of them to running.
async fn workers_that_start_one_by_one_are_reported_once_a_second(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"workers": WORKERS, "nodeSelector": {"no-node": "has-this"}}))).await?;
    let all_wait = |job: &Value| {
        let workers = job["status"]["workerStatuses"].as_array();
        workers.is_some_and(|workers| workers.iter().all(|worker| worker["reason"] == "Unschedulable"))
    };
    env.namespace.until("TrainingJob", JOB, "to say that all its workers wait", all_wait).await?;
    let (before, began) = (status_writes(env).await?, Instant::now());
    let mut clock = tokio::time::interval(APART);
    let pods = env.namespace.api("Pod")?;
    for number in 0..WORKERS {
        clock.tick().await;
        let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
        pods.patch_status(&format!("{JOB}-worker-{number}"), &PatchParams::default(), &running).await?;
    }
    let job = runs(env, JOB).await?;
    let (written, took) = (status_writes(env).await? - before, began.elapsed());
    eprintln!("{WORKERS} workers that start within {took:?}: {written} status writes");
    ensure!(written <= usize::try_from(took.as_secs())? + NEWS, "{written} status writes in {took:?}");
    ensure!(condition(&job, "Throttled").is_null(), "it is slowed down: {}", job["status"]["conditions"]);
    Ok(())
}

async fn status_writes(env: &TestEnv) -> Result<usize> {
    Ok(env.host_writes().await?.iter().filter(|write| write.contains("trainingjobs/status")).count())
}

/// The size of the job and its children as JSON, as the host caches them.
async fn shown(env: &TestEnv, job: &Value) -> Result<usize> {
    let mut all = vec![job.clone()];
    for kind in ["Pod", "Service", "ConfigMap"] {
        all.extend(env.namespace.list(kind).await?);
    }
    for object in &mut all {
        object["metadata"].as_object_mut().and_then(|metadata| metadata.remove("managedFields"));
    }
    Ok(all.iter().map(|object| object.to_string().len()).sum())
}
