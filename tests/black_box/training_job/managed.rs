//! Jobs that somebody else manages: nothing at all is done about them, until they are handed over.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::words::{JOB, job, named, runs};
use crate::{
    scene::Scene,
    suite::{Suite, tests},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_job_of_another_manager_is_left_alone_until_it_is_handed_over);
}

async fn a_job_of_another_manager_is_left_alone_until_it_is_handed_over(scene: &mut Scene) -> Result<()> {
    scene.start(&["training-job"]).await?;
    let theirs = json!({"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}});
    scene.namespace.apply(job(theirs.clone())).await?;
    scene.namespace.apply(named("leaving", theirs)).await?;
    scene.namespace.delete("TrainingJob", "leaving").await?;
    let ours = json!({"runPolicy": {"managedBy": "pilothouse.dev/training-job"}});
    scene.namespace.apply(named("ours", ours.clone())).await?;
    runs(scene, "ours").await?;
    scene.touch("TrainingJob", JOB, "again").await?;
    scene.reconciled_after("training-job", async || scene.touch("TrainingJob", "ours", "again").await).await?;
    left_alone(scene).await?;

    scene.namespace.patch("TrainingJob", JOB, json!({"spec": ours})).await?;
    runs(scene, JOB).await?;
    Ok(())
}

async fn left_alone(scene: &Scene) -> Result<()> {
    let job = scene.namespace.get("TrainingJob", JOB).await?.unwrap_or_default();
    ensure!(job.get("status").is_none() && job["metadata"].get("finalizers").is_none(), "{job}");
    let about_it = |write: &&String| [JOB, "leaving"].iter().any(|name| write.contains(&format!(" {name}")));
    let writes = scene.host_writes().await?;
    let writes: Vec<_> = writes.iter().filter(about_it).collect();
    ensure!(writes.is_empty(), "{writes:#?}");
    let left: Option<Value> = scene.namespace.get("TrainingJob", "leaving").await?;
    ensure!(left.is_none(), "it is held: {left:?}");
    Ok(())
}
