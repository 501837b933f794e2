//! Finds mistakes that the CRD lets through: what the training operator's webhook refuses, and what no Pod can be made from. Pure.

use crate::api::{CONTAINER, MASTER, PyTorchJobSpec, ReplicaSpec, WORKER};
use training_job::Job;
use training_job::api::ReplicaType;

/// The longest name of a Pod that is its host name, and of a Service.
const MAX_NAME_LENGTH: usize = 63;

/// The most replicas of a job: the Pods and Services of all of them, and what is known of each, must fit into one answer.
const MAX_REPLICAS: u32 = 500;

type Validation = Result<(), String>;

/// Checks a job.
///
/// # Errors
/// A sentence about the first mistake.
pub fn validate(job: &Job<'_>, spec: &PyTorchJobSpec) -> Validation {
    // Before anything looks at each of them.
    replicas(job)?;
    name(job)?;
    if spec.pytorch_replica_specs.is_empty() {
        return Err(format!("spec.pytorchReplicaSpecs is empty; give {MASTER}, {WORKER} or both"));
    }
    for (replica_type, replica_spec) in &spec.pytorch_replica_specs {
        of_type(replica_type, replica_spec)?;
    }
    if let Some(policy) = &spec.elastic_policy {
        if policy.nproc_per_node.is_some() && spec.nproc_per_node.is_some() {
            return Err(
                "spec.elasticPolicy.nProcPerNode and spec.nprocPerNode say the same; keep the second".to_owned()
            );
        }
        if spec.replica_spec(ReplicaType::Worker).is_none() {
            return Err(format!("spec.elasticPolicy needs workers; add spec.pytorchReplicaSpecs.{WORKER}"));
        }
    }
    Ok(())
}

fn name(job: &Job<'_>) -> Validation {
    let name = job.name;
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.bytes().all(is_allowed) || !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.ends_with('-') {
        return Err(format!(
            "metadata.name '{name}' becomes the name of Services, so it must begin with a letter and hold only lower-case letters, \
             digits and '-'"
        ));
    }
    let longest = job.replicas().map(|replica| job.pod_name(replica).len()).max().unwrap_or_default();
    if longest > MAX_NAME_LENGTH {
        let max = MAX_NAME_LENGTH.saturating_sub(longest - name.len());
        return Err(format!(
            "metadata.name is {} characters long; with this many replicas it can have at most {max}",
            name.len()
        ));
    }
    Ok(())
}

/// An elastic job may be scaled to its upper bound at any time.
fn replicas(job: &Job<'_>) -> Validation {
    let workers =
        job.spec.elastic.as_ref().map_or(job.spec.workers, |elastic| elastic.max_workers.max(job.spec.workers));
    let replicas = job.replica_count() - job.spec.workers + workers;
    match replicas > MAX_REPLICAS {
        true => Err(format!(
            "spec.pytorchReplicaSpecs has up to {replicas} replicas; a job can have at most {MAX_REPLICAS}. For more, use a TrainingJob"
        )),
        false => Ok(()),
    }
}

fn of_type(replica_type: &str, spec: &ReplicaSpec) -> Validation {
    let place = format!("spec.pytorchReplicaSpecs.{replica_type}");
    let is_master = replica_type.eq_ignore_ascii_case(MASTER);
    if !is_master && !replica_type.eq_ignore_ascii_case(WORKER) {
        return Err(format!("{place} is no type of replica; give {MASTER} or {WORKER}"));
    }
    if is_master && spec.replicas.unwrap_or(1) != 1 {
        return Err(format!("{place}.replicas must be 1"));
    }
    let is_without_image = |container: &serde_json::Value| container["image"].as_str().is_none_or(str::is_empty);
    if let Some(number) = spec.containers().iter().position(is_without_image) {
        return Err(format!("{place}.template.spec.containers[{number}].image is missing"));
    }
    if spec.container().is_none() {
        return Err(format!(
            "{place}.template.spec.containers has none with the name {CONTAINER}, which is the one that trains"
        ));
    }
    Ok(())
}
