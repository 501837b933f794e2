//! Labels of a job's children, and the selector that finds them. The host adds its own.

use crate::job::{Job, Role};
use serde_json::{Value, json};

/// The label that holds the name of the job.
pub const JOB: &str = "ml.example.com/job-name";

/// The label that holds what a Pod does in its job.
pub const ROLE: &str = "ml.example.com/replica-type";

/// Labels of everything that belongs to a job.
pub fn of_job(job: &Job<'_>) -> Value {
    json!({
        "app.kubernetes.io/name": job.name,
        "app.kubernetes.io/instance": job.name,
        "app.kubernetes.io/part-of": "trainingjob",
        JOB: job.name,
    })
}

/// Labels of a member's Pod.
pub fn of_member(job: &Job<'_>, role: Role, index: u32) -> Value {
    let mut labels = of_job(job);
    labels["app.kubernetes.io/component"] = json!(role.word());
    labels[ROLE] = json!(role.word());
    labels["ml.example.com/replica-index"] = json!(index.to_string());
    if role == Role::Worker {
        labels["batch.kubernetes.io/job-completion-index"] = json!(index.to_string());
    }
    labels
}

/// The selector of a job's workers, as text.
pub fn worker_selector(job: &Job<'_>) -> String {
    format!("{JOB}={},{ROLE}={}", job.name, Role::Worker.word())
}
