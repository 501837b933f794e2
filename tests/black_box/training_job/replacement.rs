//! Deleted workers: they are created again with the same name, rank and address.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::words::{JOB, environment, has, has_events, pods, runs, start_running, uids};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The worker that is deleted.
const LOST: &str = "mnist-worker-1";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        losses_in_a_row_wait_longer_and_end_the_job,
        losses_of_a_worker_that_is_replaced_alone_wait_longer_and_end_the_job,
        a_deleted_worker_is_created_again_with_its_name_and_rank,
        workers_that_depend_on_each_other_are_all_recreated,
    );
}

/// The other workers are not disturbed.
async fn a_deleted_worker_is_created_again_with_its_name_and_rank(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"workers": 3, "runPolicy": {"restartScope": "Worker"}})).await?;
    let before = pods(env).await?;
    delete_and_wait(env).await?;
    let after = pods(env).await?;
    is_new_with_same_identity(&before[LOST], after.get(LOST).context("it is not there")?)?;
    let stay: BTreeSet<_> = uids(&before).intersection(&uids(&after)).cloned().collect();
    ensure!(stay.len() == 2, "another worker was disturbed");
    no_failure_is_counted(env).await?;
    has_events(env, JOB, "SuccessfulCreatePod", 1).await
}

async fn workers_that_depend_on_each_other_are_all_recreated(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"workers": 3})).await?;
    let before = pods(env).await?;
    delete_and_wait(env).await?;
    let after = pods(env).await?;
    ensure!(uids(&before).is_disjoint(&uids(&after)), "a worker goes on alone");
    for (name, pod) in &before {
        is_new_with_same_identity(pod, after.get(name).with_context(|| format!("no {name}"))?)?;
    }
    no_failure_is_counted(env).await
}

/// Waits until all workers run again.
async fn delete_and_wait(env: &TestEnv) -> Result<()> {
    let gone = &pods(env).await?[LOST]["metadata"]["uid"];
    env.namespace.delete("Pod", LOST).await?;
    let is_new = |pod: &Value| pod["metadata"]["uid"] != *gone;
    env.namespace.until("Pod", LOST, "to come back", is_new).await?;
    runs(env, JOB).await?;
    Ok(())
}

/// Checks that a Pod is a new one with the same host name and environment.
fn is_new_with_same_identity(before: &Value, after: &Value) -> Result<()> {
    ensure!(before["metadata"]["uid"] != after["metadata"]["uid"], "it is the same Pod");
    for field in ["hostname", "subdomain"] {
        ensure!(before["spec"][field] == after["spec"][field], "another {field}: {after}");
    }
    ensure!(environment(before) == environment(after), "another environment: {after}");
    Ok(())
}

/// A Pod that somebody deletes does not count as a failure of the job.
async fn no_failure_is_counted(env: &TestEnv) -> Result<()> {
    let job = env.namespace.get("TrainingJob", JOB).await?.unwrap_or_default();
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    Ok(())
}

async fn losses_in_a_row_wait_longer_and_end_the_job(env: &mut TestEnv) -> Result<()> {
    losses_wait_longer(env, "Job").await
}

async fn losses_of_a_worker_that_is_replaced_alone_wait_longer_and_end_the_job(env: &mut TestEnv) -> Result<()> {
    losses_wait_longer(env, "Worker").await
}

async fn losses_wait_longer(env: &mut TestEnv, scope: &str) -> Result<()> {
    start_running(env, json!({"runPolicy": {"disruptionLimit": 2, "restartScope": scope}})).await?;
    for (times, delay) in [(1, 0), (2, 10)] {
        lose(env).await?;
        let counted = |job: &Value| job["status"]["disruptionCount"] == times;
        let job = env.namespace.until("TrainingJob", JOB, "to have counted it", counted).await?;
        let waits = job["status"]["restartDelaySeconds"].as_u64().unwrap_or_default();
        ensure!(waits == delay, "loss {times} waits {waits} s");
        let restarted = |job: &Value| condition(job, "Restarting")["status"] == "False";
        env.namespace.until("TrainingJob", JOB, "to have restarted", restarted).await?;
        runs(env, JOB).await?;
    }
    lose(env).await?;
    let job = has(env, JOB, "Failed", "DisruptionLimitExceeded").await?;
    ensure!(job["status"]["restartCount"] == 0, "{}", job["status"]);
    Ok(())
}

async fn lose(env: &TestEnv) -> Result<()> {
    env.namespace.delete("Pod", LOST).await
}
