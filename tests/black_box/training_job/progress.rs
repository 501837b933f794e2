//! The progress that a program reports by an annotation of its Pod.

use anyhow::{Result, ensure};
use pilothouse_tests::{cluster::condition, table};
use serde_json::{Value, json};

use super::words::{JOB, annotate, has_events, pods, runs, start_running, uids, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

const ANNOTATION: &str = "ml.example.com/progress";

pub fn register(suite: &mut Suite) {
    tests!(suite, progress_is_shown_and_a_hang_is_told, a_hang_restarts_the_job_if_asked);
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
