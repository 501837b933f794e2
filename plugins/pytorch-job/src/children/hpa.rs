//! The autoscaler of an elastic job that gives metrics. It scales the job, whose kind has a scale subresource.

use super::labels;
use crate::api::PyTorchJobSpec;
use pilothouse_sdk::Kind;
use serde_json::{Value, json};
use training_job::Job;

/// The desired HorizontalPodAutoscaler, if there is one.
pub fn hpa(job: &Job<'_>, spec: &PyTorchJobSpec) -> Option<Value> {
    let metrics = spec.elastic_policy.as_ref()?.metrics.as_ref()?;
    let (min, max) = spec.elastic_bounds()?;
    Some(json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": job.name, "labels": labels::of_job(job) },
        "spec": {
            "scaleTargetRef": {
                "apiVersion": PyTorchJobSpec::API_VERSION,
                "kind": PyTorchJobSpec::KIND,
                "name": job.name,
            },
            "minReplicas": min,
            "maxReplicas": max,
            "metrics": metrics,
        },
    }))
}
