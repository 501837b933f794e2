//! The headless Service through which members find each other by name, also before they are ready.

use super::labels;
use crate::job::Job;
use serde_json::{Value, json};

/// The Service that shall exist.
pub fn service(job: &Job<'_>) -> Value {
    let name = job.spec.framework.word();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": job.name, "labels": labels::of_job(job) },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": { labels::JOB: job.name },
            "ports": [{ "name": name, "port": job.port(), "targetPort": job.port(), "protocol": "TCP" }],
        },
    })
}
