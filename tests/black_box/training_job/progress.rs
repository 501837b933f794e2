//! The progress that a program reports by an annotation of its Pod.

use anyhow::{Result, ensure};
use pilothouse_tests::{cluster::condition, table};
use serde_json::{Value, json};

use super::words::{JOB, annotate, has, has_events, pods, runs, start_running, succeed, uids, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

const ANNOTATION: &str = "ml.example.com/progress";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        progress_is_shown_and_a_hang_is_told,
        a_hang_restarts_the_job_if_asked,
        whatever_a_program_reports_its_job_is_followed_to_its_end,
    );
}

async fn progress_is_shown_and_a_hang_is_told(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({"runPolicy": {"progressDeadlineSeconds": 2}})).await?;
    annotate(env, "mnist-worker-0", ANNOTATION, r#"{"step": 3, "totalSteps": 9, "loss": 0.5}"#).await?;
    let shown = |job: &Value| job["status"]["progress"]["summary"] == "step 3/9, loss 0.5";
    env.namespace.until("TrainingJob", JOB, "to show it", shown).await?;
    let printed = table::printed(&env.namespace, "apis/ml.example.com/v1alpha1", "trainingjobs", &["NAME", "PROGRESS"]);
    let printed = printed.await?;
    ensure!(printed.last().is_some_and(|line| line == "mnist   step 3/9, loss 0.5"), "{printed:?}");
    let job = waits(env, JOB, "ProgressDeadlineExceeded").await?;
    ensure!(condition(&job, "Ready")["message"].to_string().contains("step 3/9"), "{}", job["status"]);
    has_events(env, JOB, "ProgressDeadlineExceeded", 1).await?;
    ensure!(job["status"]["restartCount"] == 0 && job["status"]["phase"] == "Running", "{}", job["status"]);
    Ok(())
}

/// The API server takes no status with a larger integer than its own, and no object of any size.
async fn whatever_a_program_reports_its_job_is_followed_to_its_end(env: &mut TestEnv) -> Result<()> {
    start_running(env, json!({})).await?;
    let long = format!(r#"{{"step": 8, "loss": "{}"}}"#, "x".repeat(200_000));
    for (report, shown) in
        [(r#"{"step": 18446744073709551615}"#, "cannot be read"), (long.as_str(), "step 8, loss xxx")]
    {
        annotate(env, "mnist-worker-0", ANNOTATION, report).await?;
        let is_shown = |job: &Value| job["status"]["progress"]["summary"].to_string().contains(shown);
        let job = env.namespace.until("TrainingJob", JOB, "to tell what it can", is_shown).await?;
        ensure!(job["status"]["progress"].to_string().len() < 1000, "{}", job["status"]);
    }
    succeed(env).await?;
    has(env, JOB, "Succeeded", "TrainingJobSucceeded").await?;
    Ok(())
}

async fn a_hang_restarts_the_job_if_asked(env: &mut TestEnv) -> Result<()> {
    let policy = json!({"progressDeadlineSeconds": 3, "onHang": "Restart"});
    env.start(&["training-job"]).await?;
    env.namespace.apply(super::words::job(json!({"runPolicy": policy}))).await?;
    let restarted = |job: &Value| job["status"]["restartCount"] == 1;
    env.namespace.until("TrainingJob", JOB, "to have been restarted", restarted).await?;
    env.namespace.patch("TrainingJob", JOB, json!({"spec": {"runPolicy": {"progressDeadlineSeconds": null}}})).await?;
    runs(env, JOB).await?;
    ensure!(uids(&pods(env).await?).len() == 2, "not all are back");
    Ok(())
}
