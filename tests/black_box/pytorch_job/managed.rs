//! Jobs that name their manager: the training operator's name is taken over, another one's is left alone.

use anyhow::{Result, ensure};
use pilothouse_tests::cluster::condition;
use serde_json::{Value, json};

use super::{NAME, PODS, has, runs, sample, start};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
    training_job::words::only_pods,
};

/// Who has the jobs of other clusters.
const MULTIKUEUE: &str = "kueue.x-k8s.io/multikueue";

/// What the training operator calls itself.
const TRAINING_OPERATOR: &str = "kubeflow.org/training-operator";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_job_of_the_training_operator_by_name_runs,
        a_job_of_another_manager_is_left_alone_until_it_is_handed_over,
    );
}

/// As they are in a cluster that leaves it. The field has an empty value, too.
async fn a_job_of_the_training_operator_by_name_runs(env: &mut TestEnv) -> Result<()> {
    start(env, sample(&json!({"managedBy": TRAINING_OPERATOR}), "OnFailure")?).await?;
    let job = runs(env).await?;
    ensure!(job["spec"]["runPolicy"]["managedBy"] == TRAINING_OPERATOR, "the kind has no such field: {job}");
    let mut other = sample(&json!({"managedBy": ""}), "OnFailure")?;
    other["metadata"]["name"] = json!("other");
    env.namespace.apply(other).await?;
    let running = |job: &Value| condition(job, "Running")["status"] == "True";
    env.namespace.until("PyTorchJob", "other", "to run", running).await?;
    Ok(())
}

/// The webhook that would refuse the change has gone with the training operator.
async fn a_job_of_another_manager_is_left_alone_until_it_is_handed_over(env: &mut TestEnv) -> Result<()> {
    start(env, sample(&json!({"managedBy": MULTIKUEUE, "suspend": true}), "OnFailure")?).await?;
    env.namespace.apply(ours("first")?).await?;
    left_alone(env, "first").await?;
    let hand_over =
        |manager: &str, suspend: bool| json!({"spec": {"runPolicy": {"managedBy": manager, "suspend": suspend}}});
    env.namespace.patch("PyTorchJob", NAME, hand_over(TRAINING_OPERATOR, true)).await?;
    has(env, "Suspended", "PyTorchJobSuspended").await?;
    // Back, before it has started.
    env.namespace.patch("PyTorchJob", NAME, hand_over(MULTIKUEUE, false)).await?;
    env.namespace.apply(ours("second")?).await?;
    left_alone(env, "second").await?;
    env.namespace.patch("PyTorchJob", NAME, hand_over(TRAINING_OPERATOR, false)).await?;
    runs(env).await?;
    only_pods(env, &PODS).await
}

/// A job that is served, to wait for.
fn ours(name: &str) -> Result<Value> {
    let mut job = sample(&json!({"suspend": true}), "OnFailure")?;
    job["metadata"]["name"] = json!(name);
    Ok(job)
}

/// The job was not looked at before this one was.
async fn left_alone(env: &TestEnv, served: &str) -> Result<()> {
    let before = env.namespace.get("PyTorchJob", NAME).await?.unwrap_or_default();
    let suspended = |job: &Value| condition(job, "Suspended")["status"] == "True";
    env.namespace.until("PyTorchJob", served, "to be served", suspended).await?;
    only_pods(env, &[]).await?;
    let after = env.namespace.get("PyTorchJob", NAME).await?.unwrap_or_default();
    ensure!(
        before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"],
        "it was written to: {after}"
    );
    Ok(())
}
