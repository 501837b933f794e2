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
    let deep = (0..500).fold(json!(1), |inner, _| json!({ "a": inner }));
    for (field, value) in [("workers", json!("none")), ("hyperparameters", deep)] {
        let mut cluster = SimulatedCluster::new("workers: 2")?;
        cluster.job["spec"][field] = value;
        cluster.reconcile()?;
        let message = match &cluster.verdict {
            Verdict::Invalid(message) => message.clone(),
            other => return Err(Error::Test(format!("{field}: {other:?}"))),
        };
        assert!(message.contains(&format!("plugin: spec.{field}")), "{message}");
        cluster.job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.verdict, Verdict::Done, "{field}");
    }
    Ok(())
}

/// A job that is being deleted, with a Pod on a lost node.
fn deleted(policy: &str) -> Result<SimulatedCluster, Error> {
    let mut cluster = SimulatedCluster::running(&format!("workers: 2, runPolicy: {{{policy}}}"))?;
    cluster.graceful_deletion = true;
    cluster.child_mut("Pod", "mnist-worker-1")?["spec"]["nodeName"] = json!("node-7");
    cluster.job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    cluster.reconcile_until_stable()?;
    cluster.delete_pod("mnist-worker-0");
    Ok(cluster)
}

#[test]
fn a_pod_that_keeps_a_deleted_job_is_told() -> Result<(), Error> {
    let mut cluster = deleted("")?;
    cluster.advance_clock(90);
    cluster.reconcile_until_stable()?;
    let message = cluster.condition_message("Ready");
    let parts = ["1 Pods and 0 other objects are being removed; Pod mnist-worker-1", "'node-7'", "more than 1m ago"];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    Ok(())
}

#[test]
fn a_pod_that_keeps_a_deleted_job_is_forced_away_if_asked() -> Result<(), Error> {
    let mut cluster = deleted("terminationTimeoutSeconds: 600, onTerminationTimeout: ForceDelete")?;
    cluster.advance_clock(629);
    cluster.reconcile_until_stable()?;
    assert_eq!((cluster.pod_names().len(), cluster.requeue_after), (1, Some(1)));
    cluster.advance_clock(1);
    assert!(cluster.call_plugin()?.forced_deletions.is_empty(), "the status does not say so yet");
    cluster.reconcile()?;
    assert!(cluster.condition_message("Ready").contains("it is deleted without its node"));
    cluster.reconcile()?;
    assert_eq!((&cluster.verdict, cluster.pod_names().len()), (&Verdict::Done, 0));
    Ok(())
}
