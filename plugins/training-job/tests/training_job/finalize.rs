//! A job that is being deleted: none of its children is left when it goes.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::{Error, Verdict};
use serde_json::json;

#[test]
fn everything_is_gone_before_the_job_goes() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 3, hyperparameters: {a: 1}")?;
    cluster.graceful_deletion = true;
    cluster.job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.children.len(), 3, "Pods end within their grace period");
    let Verdict::Wait(waiting) = &cluster.verdict else { return Err(Error::Test("it does not wait".to_owned())) };
    assert_eq!(
        (waiting.reason.as_str(), waiting.message.as_str()),
        ("CleaningUp", "3 Pods and 0 other objects are being removed")
    );
    assert!(cluster.removes_many);
    cluster.finish_deletions();
    cluster.reconcile_until_stable()?;
    assert_eq!((&cluster.verdict, cluster.children.len()), (&Verdict::Done, 0));
    Ok(())
}

#[test]
fn a_job_that_cannot_be_read_can_be_deleted() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("framework: mxnet, workers: none")?;
    cluster.job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.verdict, Verdict::Done);
    Ok(())
}
