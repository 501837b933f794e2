//! The headless Service that gives every Pod a host name.

use super::labels;
use crate::job::Job;
use pilothouse_sdk::Kind;
use serde_json::{Value, json};

/// A Service, of which only its existence matters.
#[derive(Debug)]
pub struct Service;

impl Kind for Service {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
}

/// The desired Service.
pub fn service(job: &Job<'_>) -> Value {
    let name = job.spec.framework.as_str();
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": job.name, "labels": labels::of_job(job) },
        "spec": {
            "clusterIP": "None",
            // Workers look each other up while they start, before they are ready.
            "publishNotReadyAddresses": true,
            "selector": { labels::JOB_NAME: job.name },
            "ports": [{ "name": name, "port": job.port(), "targetPort": job.port(), "protocol": "TCP" }],
        },
    })
}
