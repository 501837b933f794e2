//! Finds mistakes that the CRD lets through: what the training operator's webhook refuses, and what no Pod can be made from. Pure.

use crate::api::{MASTER, PyTorchJobSpec, ReplicaSpec, WORKER};
use crate::validation_error::{MAX_REPLICAS, ValidationError};
use pilothouse_pods::name::MAX_LABEL;
use training_job::Job;
use training_job::api::ReplicaType;

type Validation = Result<(), ValidationError>;

/// Checks a job.
///
/// # Errors
/// The first mistake.
pub fn validate(job: &Job<'_>, spec: &PyTorchJobSpec) -> Validation {
    // Before anything looks at each of them.
    replicas(job)?;
    name(job)?;
    if spec.pytorch_replica_specs.is_empty() {
        return Err(ValidationError::NoReplicas);
    }
    for (replica_type, replica_spec) in &spec.pytorch_replica_specs {
        of_type(replica_type, replica_spec)?;
    }
    if let Some(policy) = &spec.elastic_policy {
        if policy.nproc_per_node.is_some() && spec.nproc_per_node.is_some() {
            return Err(ValidationError::ProcessesGivenTwice);
        }
        if spec.replica_spec(ReplicaType::Worker).is_none() {
            return Err(ValidationError::ElasticWithoutWorkers);
        }
    }
    Ok(())
}

fn name(job: &Job<'_>) -> Validation {
    let name = job.name;
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.bytes().all(is_allowed) || !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.ends_with('-') {
        return Err(ValidationError::InvalidName(name.to_owned()));
    }
    let longest = job.replicas().map(|replica| job.pod_name(replica).len()).max().unwrap_or_default();
    // Each Pod has a Service of its name.
    if longest > MAX_LABEL {
        let max = MAX_LABEL.saturating_sub(longest - name.len());
        return Err(ValidationError::NameTooLong { length: name.len(), max });
    }
    Ok(())
}

/// An elastic job may be scaled to its upper bound at any time.
fn replicas(job: &Job<'_>) -> Validation {
    let workers =
        job.spec.elastic.as_ref().map_or(job.spec.workers, |elastic| elastic.max_workers.max(job.spec.workers));
    let replicas = job.replica_count() - job.spec.workers + workers;
    match replicas > MAX_REPLICAS {
        true => Err(ValidationError::TooManyReplicas(replicas)),
        false => Ok(()),
    }
}

fn of_type(replica_type: &str, spec: &ReplicaSpec) -> Validation {
    let named = || replica_type.to_owned();
    let is_master = replica_type.eq_ignore_ascii_case(MASTER);
    if !is_master && !replica_type.eq_ignore_ascii_case(WORKER) {
        return Err(ValidationError::UnknownReplicaType(named()));
    }
    if is_master && spec.replicas.unwrap_or(1) != 1 {
        return Err(ValidationError::SeveralMasters(named()));
    }
    let is_without_image = |container: &serde_json::Value| container["image"].as_str().is_none_or(str::is_empty);
    if let Some(number) = spec.containers().iter().position(is_without_image) {
        return Err(ValidationError::MissingImage { replica_type: named(), number });
    }
    if spec.container().is_none() {
        return Err(ValidationError::NoContainer(named()));
    }
    Ok(())
}
