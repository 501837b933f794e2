//! What happens to Pods when the spec changes, when the job is scaled, and under another version of the plugin.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use serde_json::json;
use training_job::api::Phase;

#[test]
fn a_changed_spec_replaces_all_pods_together() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 3, runPolicy: {backoffLimit: 0}")?;
    cluster.graceful_deletion = true;
    cluster.job["spec"]["image"] = json!("another");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Restarting"), "True SpecChanged");
    for pod in cluster.pod_names() {
        assert_eq!(cluster.child("Pod", pod)?["spec"]["containers"][0]["image"], "image", "{pod} is an old Pod");
    }
    cluster.delete_pod("mnist-worker-0");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.pod_names().len(), 2, "old and new Pods never exist together");
    cluster.finish_deletions();
    cluster.reconcile_until_stable()?;
    for index in 0..3 {
        let pod = cluster.child("Pod", &format!("mnist-worker-{index}"))?;
        assert_eq!(pod["spec"]["containers"][0]["image"], "another");
    }
    assert_eq!(cluster.status()?.restart_count, 0, "nobody failed");
    cluster.set_phase_of_all_pods("Running");
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.condition("Running"), "True TrainingJobRunning");
    Ok(())
}

#[test]
fn a_change_of_fields_that_pods_are_not_made_from_keeps_the_pods() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 2")?;
    let before = cluster.children.clone();
    cluster.job["spec"]["runPolicy"] =
        json!({ "backoffLimit": 1, "ttlSecondsAfterFinished": 5, "cleanPodPolicy": "All" });
    cluster.reconcile_until_stable()?;
    assert_eq!(cluster.children, before);
    Ok(())
}

/// A change of the number of workers.
struct Scaling {
    elastic: &'static str,
    before: usize,
    after: usize,
    kept_pods: usize,
}

const ELASTIC: &str = ", elastic: {minWorkers: 1, maxWorkers: 8}";

const SCALINGS: &[Scaling] = &[
    Scaling { elastic: ELASTIC, before: 2, after: 4, kept_pods: 2 },
    Scaling { elastic: ELASTIC, before: 4, after: 2, kept_pods: 2 },
    Scaling { elastic: "", before: 2, after: 4, kept_pods: 0 },
    Scaling { elastic: "", before: 4, after: 2, kept_pods: 0 },
];

#[test]
fn only_an_elastic_job_keeps_its_pods_when_it_is_scaled() -> Result<(), Error> {
    for Scaling { elastic, before, after, kept_pods } in SCALINGS {
        let mut cluster = SimulatedCluster::running(&format!("workers: {before}{elastic}"))?;
        let old: Vec<_> = cluster.children.values().filter(|child| child["kind"] == "Pod").cloned().collect();
        cluster.job["spec"]["workers"] = json!(after);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.pod_names().len(), *after);
        let kept = cluster.children.values().filter(|child| old.contains(child)).count();
        assert_eq!(kept, *kept_pods, "{before} to {after}{elastic}");
        assert_eq!(cluster.status()?.worker_statuses.len(), *after);
    }
    Ok(())
}

/// Something that happens to a job.
type Incident = fn(&mut SimulatedCluster);

/// More of the spec of a job with three workers, an incident for which a Pod must be created or removed, and how many Pods stay.
const INCIDENTS: &[(&str, Incident, usize)] = &[
    ("runPolicy: {restartScope: Worker}", |cluster| cluster.delete_pod("mnist-worker-1"), 2),
    ("elastic: {minWorkers: 1, maxWorkers: 4}", |cluster| cluster.job["spec"]["workers"] = json!(4), 3),
    ("elastic: {minWorkers: 1, maxWorkers: 4}", |cluster| cluster.job["spec"]["workers"] = json!(2), 2),
];

#[test]
fn pods_that_another_version_of_the_plugin_made_stay_as_they_are() -> Result<(), Error> {
    const OF_OTHER_VERSION: &str = "set-by-another-version";
    for (spec, incident, staying) in INCIDENTS {
        let mut cluster = SimulatedCluster::running(&format!("workers: 3, {spec}"))?;
        for index in 0..3 {
            let pod = cluster.child_mut("Pod", &format!("mnist-worker-{index}"))?;
            pod["spec"]["hostname"] = json!(OF_OTHER_VERSION);
        }
        let before = cluster.children.clone();
        cluster.advance_clock(30);
        cluster.reconcile_until_stable()?;
        assert!(cluster.children == before, "{spec}: the Pods are kept");
        incident(&mut cluster);
        cluster.reconcile_until_stable()?;
        assert_eq!(cluster.job["spec"]["workers"], json!(cluster.pod_names().len()), "{spec}");
        let pods = cluster.children.values().filter(|child| child["kind"] == "Pod");
        let kept = pods.filter(|pod| pod["spec"]["hostname"] == OF_OTHER_VERSION).count();
        assert_eq!(kept, *staying, "{spec}");
        assert_eq!(cluster.status()?.restart_count, 0, "{spec}");
    }
    Ok(())
}

#[test]
fn another_queue_or_size_of_the_gang_restarts_nothing() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 3, gangScheduling: {scheduler: scheduler-plugins}")?;
    cluster.scheduler_plugins_is_installed = true;
    cluster.reconcile_until_stable()?;
    let before: Vec<_> =
        (0..3).map(|index| cluster.pod_uid(&format!("mnist-worker-{index}")).map(str::to_owned)).collect();
    cluster.job["spec"]["gangScheduling"] =
        json!({ "scheduler": "scheduler-plugins", "minMember": 2, "queue": "research", "scheduleTimeoutSeconds": 5 });
    cluster.reconcile_until_stable()?;
    for (index, uid) in before.into_iter().enumerate() {
        assert_eq!(cluster.pod_uid(&format!("mnist-worker-{index}"))?, uid?);
    }
    assert_eq!(cluster.child("PodGroup", "mnist")?["spec"]["minMember"], 2);
    Ok(())
}

/// Without it, no other worker finds the Pod, or another job's workers do. Another version of the plugin would make another Pod.
#[test]
fn a_pod_that_lost_a_label_by_which_it_is_found_gets_it_back_and_goes_on() -> Result<(), Error> {
    const FOUND_BY: [&str; 2] = ["ml.example.com/job-name", "ml.example.com/replica-type"];
    for (label, value) in FOUND_BY.into_iter().flat_map(|label| [(label, None), (label, Some("another"))]) {
        let template = "podTemplate: {metadata: {labels: {team: a}, annotations: {note: b}}}";
        let mut cluster = SimulatedCluster::running(&format!("workers: 2, {template}"))?;
        let pod = cluster.child_mut("Pod", "mnist-worker-1")?;
        pod["spec"]["enableServiceLinks"] = json!(true);
        pod["metadata"]["annotations"]["ml.example.com/progress"] = json!("{}");
        let before = pod.clone();
        match value {
            Some(value) => pod["metadata"]["labels"][label] = json!(value),
            None => drop(pod["metadata"]["labels"].as_object_mut().and_then(|labels| labels.remove(label))),
        }
        cluster.reconcile_until_stable()?;
        assert_eq!(*cluster.child("Pod", "mnist-worker-1")?, before, "{label} {value:?}");
        assert_eq!((cluster.status()?.restart_count, cluster.phase()?), (0, Some(Phase::Running)), "{label} {value:?}");
        // What it was made from stays as unknown as it is.
        let pod = cluster.child_mut("Pod", "mnist-worker-1")?;
        pod["metadata"]["annotations"] = json!({});
        pod["metadata"]["labels"] = json!({});
        cluster.reconcile_until_stable()?;
        let metadata = &cluster.child("Pod", "mnist-worker-1")?["metadata"];
        assert_eq!(
            (&metadata["labels"], metadata["annotations"].get("ml.example.com/template")),
            (&before["metadata"]["labels"], None)
        );
    }
    Ok(())
}
