//! What the manifest declares.

use serde_json::{Value, json};

#[test]
fn the_manifest_declares_kinds_and_measurements() -> Result<(), serde_json::Error> {
    let manifest: Value = serde_json::from_str(training_job::MANIFEST)?;
    let kind = |version: &str, kind: &str| json!({ "apiVersion": version, "kind": kind });
    assert_eq!(manifest["name"], "training-job");
    assert_eq!(manifest["reconciles"], kind("ml.example.com/v1alpha1", "TrainingJob"));
    assert_eq!(manifest["finalizer"], "trainingjob.ml.example.com/finalizer");
    assert_eq!(manifest["managedBy"], "/spec/runPolicy/managedBy");
    assert_eq!(manifest["expires"], "/status/expirationTime");
    let groups = ["scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"].map(|group| kind(group, "PodGroup"));
    let of = |kinds: &[&str], of_kueue: &[&str]| {
        let of_kueue = of_kueue.iter().map(|name| kind("kueue.x-k8s.io/v1beta1", name));
        kinds.iter().map(|name| kind("v1", name)).chain(groups.clone()).chain(of_kueue).collect::<Vec<_>>()
    };
    assert_eq!(manifest["children"], json!(of(&["ConfigMap", "Pod", "Service"], &["Workload"])));
    let looked_up =
        of(&["ConfigMap", "PersistentVolumeClaim"], &["ResourceFlavor", "Workload", "WorkloadPriorityClass"]);
    assert_eq!(manifest["lookups"], json!(looked_up));
    let measurements: Vec<_> =
        manifest["measurements"].as_array().into_iter().flatten().map(|measurement| &measurement["name"]).collect();
    assert_eq!(
        measurements,
        [
            "training_jobs_created_total",
            "training_jobs_succeeded_total",
            "training_jobs_failed_total",
            "training_jobs_restarted_total",
            "training_job_duration_seconds",
        ]
    );
    Ok(())
}
