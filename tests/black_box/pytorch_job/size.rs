//! Jobs that are too large for the plugin: they are refused on the job, and what runs goes on.

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::{NAME, PODS, runs, sample, start};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
    training_job::words::{only_pods, pods, uids},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_job_of_more_than_500_replicas_is_refused_until_it_is_smaller,
        a_job_that_grows_beyond_500_replicas_goes_on_as_it_was,
    );
}

async fn a_job_of_more_than_500_replicas_is_refused_until_it_is_smaller(env: &mut TestEnv) -> Result<()> {
    let mut job = sample(&json!({}), "OnFailure")?;
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = json!(500);
    start(env, job).await?;
    is_refused(env, "spec.pytorchReplicaSpecs has up to 501 replicas; a job can have at most 500").await?;
    only_pods(env, &[]).await?;
    ensure!(env.namespace.list("Service").await?.is_empty(), "a Service was made");
    workers(env, 2).await?;
    let job = runs(env).await?;
    ensure!(condition(&job, "Stalled").is_null(), "{}", job["status"]);
    Ok(())
}

async fn a_job_that_grows_beyond_500_replicas_goes_on_as_it_was(env: &mut TestEnv) -> Result<()> {
    start(env, sample(&json!({}), "OnFailure")?).await?;
    runs(env).await?;
    let before = uids(&pods(env).await?);
    workers(env, 1000).await?;
    is_refused(env, "spec.pytorchReplicaSpecs has up to 1001 replicas; a job can have at most 500").await?;
    only_pods(env, &PODS).await?;
    ensure!(before == uids(&pods(env).await?), "Pods were replaced");
    Ok(())
}

/// Waits until the job says that it is refused, in these words.
async fn is_refused(env: &TestEnv, words: &str) -> Result<()> {
    let refused = |job: &Value| {
        let stalled = condition(job, "Stalled");
        stalled["status"] == "True" && stalled["message"].to_string().contains(words)
    };
    env.namespace.until("PyTorchJob", NAME, "to be refused", refused).await?;
    env.event("PyTorchJob", NAME, "Invalid").await?;
    Ok(())
}

/// Asks for so many workers.
async fn workers(env: &TestEnv, count: u32) -> Result<()> {
    let spec = json!({"pytorchReplicaSpecs": {"Worker": {"replicas": count}}});
    env.namespace.patch("PyTorchJob", NAME, json!({"spec": spec})).await?;
    Ok(())
}
