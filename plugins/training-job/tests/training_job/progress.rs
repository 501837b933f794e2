//! The progress that a program reports, and trainings that hang.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::json;
use training_job::api::Phase;

const ANNOTATION: &str = "ml.example.com/progress";

fn report(cluster: &mut SimulatedCluster, text: &str) -> Result<(), Error> {
    cluster.child_mut("Pod", "mnist-worker-0")?["metadata"]["annotations"][ANNOTATION] = json!(text);
    cluster.reconcile_until_stable()
}

#[test]
fn the_status_has_what_worker_0_reports() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    for (text, summary) in [
        (r#"{"step": 1}"#, "step 1"),
        (
            r#"{"step": 120, "totalSteps": 1000, "loss": 0.31, "estimatedRemainingSeconds": 330}"#,
            "step 120/1000, loss 0.31, 5m30s left",
        ),
        (r#"{"step": 999, "loss": "nan", "estimatedRemainingSeconds": 90000}"#, "step 999, loss nan, 1d1h left"),
    ] {
        report(&mut cluster, text)?;
        assert_eq!(cluster.status()?.progress.map(|progress| progress.summary).as_deref(), Some(summary), "{text}");
    }
    report(&mut cluster, "half way")?;
    let unread = cluster.status()?.progress.map(|progress| progress.summary).unwrap_or_default();
    assert!(unread.contains(ANNOTATION), "{unread}");
    Ok(())
}

/// Python's `json.dumps` writes the first three; the others are mistakes of the program.
#[test]
fn a_report_that_is_no_json_is_progress_nevertheless_when_it_changes() -> Result<(), Error> {
    for (loss, shown) in [
        ("NaN", "loss nan"),
        ("Infinity", "loss inf"),
        ("-Infinity", "loss -inf"),
        ("half", "cannot be read"),
        ("1, \"totalSteps\": -1", "cannot be read"),
    ] {
        let mut cluster =
            SimulatedCluster::running("workers: 1, runPolicy: {progressDeadlineSeconds: 20, onHang: Restart}")?;
        for step in 1..5 {
            cluster.advance_clock(19);
            report(&mut cluster, &format!("{{\"step\": {step}, \"loss\": {loss}}}"))?;
            let told = cluster.status()?;
            let summary = told.progress.map(|progress| progress.summary).unwrap_or_default();
            assert!(summary.contains(shown), "{loss}: {summary}");
            assert_eq!((told.restart_count, cluster.condition("Ready").as_str()), (0, "True TrainingJobRunning"));
        }
    }
    Ok(())
}

/// Whatever it holds, and however often it changes: nobody can tell what it means.
#[test]
fn a_report_that_is_no_object_is_told_and_is_no_progress() -> Result<(), Error> {
    const POLICY: &str = "workers: 1, runPolicy: {progressDeadlineSeconds: 20, onHang: Restart}";
    for wrong in ["[]", "[7, 1000]", "null", "true", "7", "\"7\"", "NaN"] {
        let mut cluster = SimulatedCluster::running(POLICY)?;
        report(&mut cluster, r#"{"step": 7}"#)?;
        cluster.advance_clock(19);
        report(&mut cluster, wrong)?;
        let told = cluster.status()?.progress.unwrap_or_default();
        assert!(told.summary.contains("cannot be read") && told.summary.ends_with(wrong), "{wrong}: {}", told.summary);
        report(&mut cluster, r#"{"step": 7}"#)?;
        let told = cluster.status()?.progress.unwrap_or_default();
        assert_eq!(
            (told.summary.as_str(), told.step),
            ("step 7", Some(7)),
            "{wrong}: what was reported before is no news"
        );
        cluster.advance_clock(1);
        report(&mut cluster, wrong)?;
        assert_eq!(cluster.status()?.restart_count, 1, "{wrong}: the time since the last progress is over");
    }
    let mut cluster = SimulatedCluster::running(POLICY)?;
    cluster.advance_clock(19);
    report(&mut cluster, "[]")?;
    cluster.advance_clock(1);
    report(&mut cluster, "[0]")?;
    assert_eq!(cluster.status()?.restart_count, 1, "there never was any progress");
    Ok(())
}

#[test]
fn the_progress_outlives_the_pod_that_reported_it() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    report(&mut cluster, r#"{"step": 7}"#)?;
    cluster.fail_pod("mnist-worker-1", 1)?;
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.status()?.progress.and_then(|progress| progress.step), Some(7));
    Ok(())
}

#[test]
fn a_training_without_progress_is_told() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2, runPolicy: {progressDeadlineSeconds: 20}")?;
    assert_eq!(cluster.requeue_after, Some(20));
    cluster.advance_clock(19);
    report(&mut cluster, r#"{"step": 7}"#)?;
    assert_eq!((cluster.condition("Ready").as_str(), cluster.requeue_after), ("True TrainingJobRunning", Some(20)));
    cluster.advance_clock(20);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Ready"), "False ProgressDeadlineExceeded");
    assert!(cluster.condition_message("Ready").contains("last: step 7"));
    assert_eq!(cluster.phase()?, Some(Phase::Running), "nothing is restarted");
    cluster.advance_clock(20);
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.event_count("ProgressDeadlineExceeded"), 1);
    report(&mut cluster, r#"{"step": 8}"#)?;
    assert_eq!(cluster.condition("Ready"), "True TrainingJobRunning");
    Ok(())
}

#[test]
fn progress_that_is_seen_late_is_no_hang() -> Result<(), Error> {
    let mut cluster =
        SimulatedCluster::running("workers: 2, runPolicy: {progressDeadlineSeconds: 20, onHang: Restart}")?;
    cluster.advance_clock(60);
    report(&mut cluster, r#"{"step": 1}"#)?;
    assert_eq!((cluster.status()?.restart_count, cluster.condition("Ready").as_str()), (0, "True TrainingJobRunning"));
    Ok(())
}

#[test]
fn a_training_that_hangs_is_restarted_if_asked_and_that_counts() -> Result<(), Error> {
    for scope in ["Job", "Worker"] {
        let policy = format!("progressDeadlineSeconds: 20, onHang: Restart, backoffLimit: 1, restartScope: {scope}");
        let mut cluster = SimulatedCluster::running(&format!("workers: 2, runPolicy: {{{policy}}}"))?;
        let before = cluster.pod_uid("mnist-worker-1")?.to_owned();
        cluster.advance_clock(20);
        cluster.reconcile_until_stable()?;
        assert_ne!(cluster.pod_uid("mnist-worker-1")?, before, "{scope}");
        assert_eq!(cluster.status()?.restart_count, 1, "{scope}");
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.condition("Running"), "True TrainingJobRunning", "{scope}: the time counts anew");
        cluster.advance_clock(20);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.condition("Failed"), "True BackoffLimitExceeded", "{scope}");
    }
    Ok(())
}

/// Programs guess times with a fraction, and infinite ones at first.
#[test]
fn a_count_may_have_a_fraction_and_a_time_may_be_infinite() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 1")?;
    for (text, summary) in [
        (r#"{"step": 120.0, "totalSteps": 1e3, "estimatedRemainingSeconds": 330.7}"#, "step 120/1000, 5m30s left"),
        (r#"{"step": 1, "estimatedRemainingSeconds": Infinity}"#, "step 1"),
        (r#"{"step": 9223372036854775807}"#, "step 9223372036854775807"),
    ] {
        report(&mut cluster, text)?;
        assert_eq!(cluster.status()?.progress.map(|progress| progress.summary).as_deref(), Some(summary), "{text}");
    }
    Ok(())
}

#[test]
fn whatever_a_program_reports_the_status_can_be_written() -> Result<(), Error> {
    let long = "x".repeat(200_000);
    let mut cluster = SimulatedCluster::running("workers: 1")?;
    for (text, shown) in [
        // No integer of the API server's is as large.
        (r#"{"step": 9223372036854775808}"#.to_owned(), "cannot be read"),
        (r#"{"estimatedRemainingSeconds": 1e300}"#.to_owned(), "cannot be read"),
        (r#"{"step": -0.5}"#.to_owned(), "cannot be read"),
        (format!(r#"{{"step": "{long}"}}"#), "cannot be read"),
        (format!(r#"{{"step": 7, "loss": "{long}"}}"#), "step 7, loss xxx"),
    ] {
        report(&mut cluster, &text)?;
        let progress = &cluster.job["status"]["progress"];
        let summary = progress["summary"].as_str().unwrap_or_default();
        assert!(summary.contains(shown), "{summary}");
        assert!(progress.to_string().len() < 1000, "{} bytes of {shown}", progress.to_string().len());
        let step = progress["step"].as_u64().unwrap_or_default();
        assert!(i64::try_from(step).is_ok(), "{progress}");
    }
    Ok(())
}
