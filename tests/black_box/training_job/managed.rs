//! Jobs with another manager: the host does not touch them until they are handed over.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::words::{JOB, claim, job, named, only_pods, runs, waits};
use crate::{
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_job_of_another_manager_is_left_alone_until_it_is_handed_over,
        a_job_that_waits_can_be_given_to_another_manager_and_back,
    );
}

async fn a_job_of_another_manager_is_left_alone_until_it_is_handed_over(env: &mut TestEnv) -> Result<()> {
    env.start(&["training-job"]).await?;
    let theirs = json!({"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}});
    env.namespace.apply(job(theirs.clone())).await?;
    env.namespace.apply(named("leaving", theirs)).await?;
    env.namespace.delete("TrainingJob", "leaving").await?;
    let ours = json!({"runPolicy": {"managedBy": "pilothouse.dev/training-job"}});
    env.namespace.apply(named("ours", ours.clone())).await?;
    runs(env, "ours").await?;
    env.touch("TrainingJob", JOB, "again").await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", "ours", "again").await).await?;
    left_alone(env).await?;

    env.namespace.patch("TrainingJob", JOB, json!({"spec": ours})).await?;
    runs(env, JOB).await?;
    Ok(())
}

/// Before it starts, and then no more.
async fn a_job_that_waits_can_be_given_to_another_manager_and_back(env: &mut TestEnv) -> Result<()> {
    let managed_by = |name: Value| json!({"spec": {"runPolicy": {"managedBy": name}}});
    env.start(&["training-job"]).await?;
    env.namespace.apply(job(json!({"dataVolume": {"claimName": "data"}}))).await?;
    waits(env, JOB, "ClaimNotFound").await?;
    env.namespace.patch("TrainingJob", JOB, managed_by(json!("kueue.x-k8s.io/multikueue"))).await?;
    // What the host had begun to write before is no longer under way.
    env.metrics_at_rest().await?;
    let given = env.namespace.get("TrainingJob", JOB).await?.unwrap_or_default();
    claim(env, "data").await?;
    env.namespace.apply(named("ours", json!({"dataVolume": {"claimName": "data"}}))).await?;
    runs(env, "ours").await?;
    env.reconciled_after("training-job", async || env.touch("TrainingJob", "ours", "again").await).await?;
    only_pods(env, &["ours-worker-0", "ours-worker-1"]).await?;
    let same = env.namespace.get("TrainingJob", JOB).await?.unwrap_or_default();
    ensure!(same["metadata"]["resourceVersion"] == given["metadata"]["resourceVersion"], "it was written to: {same}");

    // Without a manager of its own it is this plugin's again.
    env.namespace.patch("TrainingJob", JOB, managed_by(Value::Null)).await?;
    runs(env, JOB).await?;
    let refused = env.namespace.patch("TrainingJob", JOB, managed_by(json!("kueue.x-k8s.io/multikueue"))).await;
    ensure!(refused.is_err_and(|error| format!("{error:#}").contains("cannot change once the job has started")));
    // Also what its manager has begun goes when it is deleted meanwhile.
    env.namespace.delete("TrainingJob", JOB).await?;
    env.namespace.until_gone("TrainingJob", JOB).await?;
    only_pods(env, &["ours-worker-0", "ours-worker-1"]).await
}

async fn left_alone(env: &TestEnv) -> Result<()> {
    let job = env.namespace.get("TrainingJob", JOB).await?.unwrap_or_default();
    ensure!(job.get("status").is_none() && job["metadata"].get("finalizers").is_none(), "{job}");
    let about_it = |write: &&String| [JOB, "leaving"].iter().any(|name| write.contains(&format!(" {name}")));
    let writes = env.host_writes().await?;
    let writes: Vec<_> = writes.iter().filter(about_it).collect();
    ensure!(writes.is_empty(), "{writes:#?}");
    let left: Option<Value> = env.namespace.get("TrainingJob", "leaving").await?;
    ensure!(left.is_none(), "it is held: {left:?}");
    Ok(())
}
