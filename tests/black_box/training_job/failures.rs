//! Failed workers: which failures are retried, with which Pods, and how often.

use anyhow::{Result, ensure};
use jiff::Timestamp;
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{JOB, exit, has, has_events, is_replaced, metric, only_pods, pods, runs, start_running, text, uids};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

const FAILING: &str = "mnist-worker-1";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_exit_code_of_the_program_is_final,
        an_exit_code_of_a_signal_is_retried,
        any_failure_is_retried_with_the_whole_job,
        a_policy_of_always_restarts_the_whole_job,
        no_failure_is_retried,
        the_backoff_limit_ends_the_job,
        a_job_that_trains_has_its_budget_back,
        a_budget_comes_back_also_while_the_host_is_down,
    );
}

async fn an_exit_code_of_the_program_is_final(env: &mut TestEnv) -> Result<()> {
    start_running(env, policy(json!({"restartPolicy": "ExitCode"}))).await?;
    exit(env, FAILING, 1).await?;
    fails_for_good(env, 1).await
}

async fn no_failure_is_retried(env: &mut TestEnv) -> Result<()> {
    start_running(env, policy(json!({"restartPolicy": "Never"}))).await?;
    exit(env, FAILING, 137).await?;
    fails_for_good(env, 137).await
}

async fn an_exit_code_of_a_signal_is_retried(env: &mut TestEnv) -> Result<()> {
    start_running(env, policy(json!({"restartPolicy": "ExitCode", "restartScope": "Worker"}))).await?;
    let before = pods(env).await?;
    exit(env, FAILING, 137).await?;
    restarted(env, 1).await?;
    let after = pods(env).await?;
    ensure!(before["mnist-worker-0"]["metadata"]["uid"] == after["mnist-worker-0"]["metadata"]["uid"], "not only it");
    ensure!(before[FAILING]["metadata"]["uid"] != after[FAILING]["metadata"]["uid"], "it is the same Pod");
    is_reported(env, 137).await
}

async fn any_failure_is_retried_with_the_whole_job(env: &mut TestEnv) -> Result<()> {
    the_whole_job_is_restarted(env, json!({"workers": 3})).await
}

/// The kubelet must not restart the container of one worker under the others.
async fn a_policy_of_always_restarts_the_whole_job(env: &mut TestEnv) -> Result<()> {
    the_whole_job_is_restarted(env, policy(json!({"restartPolicy": "Always"}))).await
}

async fn the_whole_job_is_restarted(env: &mut TestEnv, spec: Value) -> Result<()> {
    start_running(env, spec).await?;
    let pods_before = pods(env).await?;
    ensure!(pods_before[FAILING]["spec"]["restartPolicy"] == "Never", "{}", pods_before[FAILING]["spec"]);
    let before = uids(&pods_before);
    exit(env, FAILING, 1).await?;
    restarted(env, 1).await?;
    ensure!(before.is_disjoint(&uids(&pods(env).await?)), "a worker goes on alone");
    is_reported(env, 1).await
}

/// Workers that still run are stopped, although finished Pods are kept.
async fn the_backoff_limit_ends_the_job(env: &mut TestEnv) -> Result<()> {
    start_running(env, policy(json!({"restartPolicy": "OnFailure", "backoffLimit": 1}))).await?;
    exit(env, FAILING, 2).await?;
    restarted(env, 1).await?;
    exit(env, FAILING, 2).await?;
    let job = has(env, JOB, "Failed", "BackoffLimitExceeded").await?;
    ensure!(job["status"]["phase"] == "Failed" && job["status"]["restartCount"] == 1, "{}", job["status"]);
    let message = condition(&job, "Failed")["message"].to_string();
    ensure!(message.contains("backoffLimit of 1") && message.contains("exit code 2"), "{message}");
    only_pods(env, &[FAILING]).await?;
    let says_so =
        |job: &Value| job["status"]["active"] == 0 && job["status"]["workerStatuses"][0]["status"] == "Missing";
    let job = env.namespace.until("TrainingJob", JOB, "to say that no worker runs any more", says_so).await?;
    ensure!(job["status"]["workerStatuses"][1]["exitCode"] == 2, "{}", job["status"]);
    ensure!(metric(env, "training_jobs_failed_total").await? == 1.0, "not counted as failed");
    Ok(())
}

/// Two seconds of training give the budget back, so a second failure is a first one again.
async fn a_job_that_trains_has_its_budget_back(env: &mut TestEnv) -> Result<()> {
    start_running(env, policy(json!({"backoffLimit": 1, "backoffResetSeconds": 2}))).await?;
    for _ in 0..2 {
        exit(env, FAILING, 2).await?;
        env.namespace.until("TrainingJob", JOB, "to be restarted", |job| job["status"]["restartCount"] == 1).await?;
        env.namespace.until("TrainingJob", JOB, "to have its budget back", has_its_budget_back).await?;
    }
    let job = runs(env, JOB).await?;
    ensure!(condition(&job, "Failed").is_null(), "{}", job["status"]);
    Ok(())
}

/// The next failure is a first one again, though nobody looked in between.
async fn a_budget_comes_back_also_while_the_host_is_down(env: &mut TestEnv) -> Result<()> {
    const RESET: i64 = 4;
    start_running(env, policy(json!({"backoffLimit": 1, "backoffResetSeconds": RESET}))).await?;
    exit(env, FAILING, 2).await?;
    let is_back = |job: &Value| job["status"]["restartCount"] == 1 && job["status"]["runningSince"].is_string();
    let job = env.namespace.until("TrainingJob", JOB, "to run after a restart", is_back).await?;
    env.host.stop().await?;
    let since: Timestamp = text(&job["status"]["runningSince"])?.parse()?;
    eventually(PATIENCE, "the budget to come back", async || {
        let passed = Timestamp::now().as_second() - since.as_second();
        Ok(Look::of(passed > RESET, passed))
    })
    .await?;
    let before = pods(env).await?[FAILING].clone();
    exit(env, FAILING, 2).await?;
    env.namespace.until("Pod", FAILING, "to fail", |pod| pod["status"]["phase"] == "Failed").await?;
    env.host.resume().await?;
    is_replaced(env, FAILING, &before).await?;
    let job = runs(env, JOB).await?;
    ensure!(condition(&job, "Failed").is_null(), "{}", job["status"]);
    Ok(())
}

fn has_its_budget_back(job: &Value) -> bool {
    job["status"]["restartCount"] == 0 && condition(job, "Ready")["status"] == "True"
}

fn policy(policy: Value) -> Value {
    json!({"runPolicy": policy})
}

/// Waits until the job has failed, and checks that nothing was retried.
async fn fails_for_good(env: &TestEnv, code: u8) -> Result<()> {
    let before = uids(&pods(env).await?);
    let job = has(env, JOB, "Failed", "TrainingJobFailed").await?;
    let status = &job["status"];
    ensure!(status["phase"] == "Failed" && status["completionTime"].is_string(), "{status}");
    ensure!(status["restartCount"] == 0 && condition(&job, "Restarting").is_null(), "{status}");
    // kstatus must see `Failed`, and not `InProgress`.
    ensure!(condition(&job, "Stalled")["reason"] == "TrainingJobFailed", "{status}");
    ensure!(condition(&job, "Reconciling").is_null(), "{status}");
    let message = condition(&job, "Failed")["message"].to_string();
    ensure!(message.contains(&format!("{FAILING} (exit code {code})")), "{message}");
    ensure!(before == uids(&pods(env).await?), "Pods were replaced");
    env.event("TrainingJob", JOB, "TrainingJobFailed").await?;
    exit_is_reported(env, code).await?;
    for (name, expected) in [
        ("training_jobs_failed_total", 1.0),
        ("training_jobs_restarted_total", 0.0),
        ("training_job_duration_seconds_count", 1.0),
    ] {
        let found = metric(env, name).await?;
        ensure!(found == expected, "{name} is {found}");
    }
    Ok(())
}

/// Waits until all workers run after this many restarts.
async fn restarted(env: &TestEnv, times: u64) -> Result<()> {
    let counted = |job: &Value| {
        let status = &job["status"];
        status["restartCount"] == times && condition(job, "Restarting")["status"] == "False"
    };
    env.namespace.until("TrainingJob", JOB, "to have restarted", counted).await?;
    let job = runs(env, JOB).await?;
    ensure!(condition(&job, "Restarting")["status"] == "False", "{}", job["status"]);
    ensure!(job["status"]["restartCount"] == times, "{}", job["status"]);
    Ok(())
}

async fn is_reported(env: &TestEnv, code: u8) -> Result<()> {
    exit_is_reported(env, code).await?;
    has_events(env, JOB, "TrainingJobRestarting", 1).await?;
    let restarts = metric(env, "training_jobs_restarted_total").await?;
    ensure!(restarts == 1.0, "{restarts} restarts are counted");
    Ok(())
}

async fn exit_is_reported(env: &TestEnv, code: u8) -> Result<()> {
    let event = env.event("TrainingJob", JOB, "ExitedWithCode").await?;
    let expected = format!("Pod {}.{FAILING} exited with code {code}", env.namespace.name);
    ensure!(event["message"] == expected && event["type"] == "Warning" && event["count"] == 1, "{event}");
    Ok(())
}
