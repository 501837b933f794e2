//! The Deployment of a server whose Pods are all alike, and its Service.

use crate::child::Child;
use crate::labels;
use crate::model_volume;
use crate::pod_template::pod_template;
use crate::server::Server;
use crate::service::service;
use crate::spec_error::SpecError;
use pilothouse_pods::volumes::Volumes;
use serde_json::{Value, json};

/// The Deployment and its Service.
///
/// # Errors
/// No Pod template can be made.
pub fn children(server: &Server<'_>) -> Result<Vec<Child>, SpecError> {
    Ok(vec![Child::new(deployment(server)?), Child::new(service(server))])
}

/// The Deployment.
///
/// # Errors
/// No Pod template can be made.
fn deployment(server: &Server<'_>) -> Result<Value, SpecError> {
    Ok(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": {
            "replicas": server.desired_replicas(),
            "selector": { "matchLabels": labels::selector(&server.spec.identity) },
            "strategy": server.rollout.strategy(),
            "progressDeadlineSeconds": model_volume::progress_deadline_seconds(server),
            "template": pod_template(server, Volumes::default())?,
        },
    }))
}
