//! Finds mistakes in a job. The schema of the CRD refuses most of them earlier; this is for clusters with an older CRD, and for
//! what a schema cannot express. Pure.

use crate::api::{Framework, PodFailureRule, ReplicaType, SuccessPolicy, TrainingJobSpec};
use crate::children::environment::{MAX_VARIABLE_BYTES, RESERVED, hyperparameters_bytes};
use crate::children::tensorflow::ClusterSpec;
use crate::children::{pod, pod_template, volumes};
use crate::job::Job;
use crate::validation_error::{MAX_HOST_NAME_LENGTH, MAX_NAME_LENGTH, ValidationError};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

type Validation = Result<(), ValidationError>;

/// Checks a job.
///
/// # Errors
/// The first mistake.
pub fn validate(job: &Job<'_>) -> Validation {
    name(job)?;
    numbers(job.spec)?;
    container(job)?;
    distribution(job.spec)?;
    variables(job)?;
    failure_rules(job)?;
    pod_template::forbidden_field(job).map_or(Ok(()), |field| Err(ValidationError::OwnField(field)))?;
    pod_template::value_that_is_no_text(job).map_or(Ok(()), |field| Err(ValidationError::NotText(field)))?;
    storage(job)
}

fn refuse_if(is_wrong: bool, error: impl FnOnce() -> ValidationError) -> Validation {
    if is_wrong { Err(error()) } else { Ok(()) }
}

/// The longest name of a job whose Pods all have valid host names.
fn max_name_length(job: &Job<'_>) -> usize {
    let suffixes = job.replicas().map(|replica| job.pod_name(replica).len().saturating_sub(job.name.len()));
    MAX_NAME_LENGTH.min(MAX_HOST_NAME_LENGTH.saturating_sub(suffixes.max().unwrap_or_default()))
}

fn name(job: &Job<'_>) -> Validation {
    let (name, max) = (job.name, max_name_length(job));
    refuse_if(name.len() > max, || ValidationError::NameTooLong { length: name.len(), max })?;
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_service_name =
        name.bytes().all(is_allowed) && name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with('-');
    refuse_if(!is_service_name, || ValidationError::InvalidName(name.to_owned()))
}

fn numbers(spec: &TrainingJobSpec) -> Validation {
    in_range("workers", spec.workers, 1..=1000)?;
    in_range("gpuPerWorker", spec.gpu_per_worker, 0..=8)?;
    in_range("parameterServers", spec.parameter_servers, 0..=100)?;
    spec.port.map_or(Ok(()), |port| in_range("port", port, 1..=65535))
}

fn in_range(field: &'static str, value: u32, allowed: RangeInclusive<u32>) -> Validation {
    let (min, max) = (*allowed.start(), *allowed.end());
    refuse_if(!allowed.contains(&value), || ValidationError::OutOfRange { field, value, min, max })
}

fn container(job: &Job<'_>) -> Validation {
    let spec = job.spec;
    refuse_if(spec.image.trim().is_empty(), || ValidationError::MissingImage)?;
    refuse_if(spec.command.is_empty(), || ValidationError::MissingCommand)?;
    let mut names = BTreeSet::new();
    for variable in &spec.env {
        let name = variable.name.as_str();
        refuse_if(RESERVED.contains(&name), || ValidationError::ReservedVariable(name.to_owned()))?;
        let is_new = names.insert(name);
        refuse_if(!is_new, || ValidationError::DuplicateVariable(name.to_owned()))?;
    }
    let gpu = pod::gpu_resource(job);
    let resources = spec.resources.as_ref();
    let gives_gpus = resources.is_some_and(|given| given.limits.contains_key(gpu) || given.requests.contains_key(gpu));
    refuse_if(gives_gpus && spec.gpu_per_worker > 0, || ValidationError::GpusGivenTwice(gpu.to_owned()))
}

fn distribution(spec: &TrainingJobSpec) -> Validation {
    refuse_if(spec.framework != Framework::Tensorflow && spec.parameter_servers > 0, || {
        ValidationError::ParameterServersNotSupported
    })?;
    let framework = spec.framework;
    let mut roles = BTreeSet::new();
    for role in &spec.roles {
        let (role_name, framework_name) = (role.name.as_str(), framework.as_str());
        refuse_if(!has_role(framework, role.name), || ValidationError::RoleNotSupported(role_name, framework_name))?;
        let is_new = roles.insert(role.name);
        refuse_if(!is_new, || ValidationError::DuplicateRole(role.name.as_str()))?;
    }
    mpi(spec)?;
    let Some(elastic) = &spec.elastic else { return Ok(()) };
    refuse_if(spec.framework != Framework::Pytorch, || ValidationError::ElasticNotSupported)?;
    let (workers, min, max) = (spec.workers, elastic.min_workers, elastic.max_workers);
    refuse_if(min == 0 || min > max, || ValidationError::InvalidElasticBounds)?;
    refuse_if(!(min..=max).contains(&workers), || ValidationError::OutsideElasticBounds { workers, min, max })
}

/// Whether jobs of a framework have replicas of a role, or may describe their workers as one.
fn has_role(framework: Framework, role: ReplicaType) -> bool {
    match framework {
        Framework::Tensorflow => role != ReplicaType::Launcher,
        Framework::Mpi => matches!(role, ReplicaType::Worker | ReplicaType::Launcher),
        Framework::Pytorch | Framework::Jax => false,
    }
}

/// The hyperparameters are a variable of each replica, and so is the list of replicas, also where a ConfigMap holds it.
fn variables(job: &Job<'_>) -> Validation {
    let length = hyperparameters_bytes(job);
    let max = MAX_VARIABLE_BYTES;
    refuse_if(length > max, || ValidationError::HyperparametersTooLarge { length, max })?;
    let length = ClusterSpec::of(job).map_or(0, |cluster| cluster.variable_bytes(job));
    refuse_if(length > max, || ValidationError::ClusterTooLarge { length, max })
}

/// A rule that says nothing of failures fits none or all, whoever reads it. `batch/v1` refuses such a one, too.
fn failure_rules(job: &Job<'_>) -> Validation {
    let says_nothing = |rule: &PodFailureRule| {
        rule.on_exit_codes.is_none() && rule.on_reasons.is_empty() && rule.on_pod_conditions.is_empty()
    };
    let first = job.failure_rules().iter().position(says_nothing);
    first.map_or(Ok(()), |number| Err(ValidationError::RuleFitsNothing(number)))
}

fn mpi(spec: &TrainingJobSpec) -> Validation {
    let is_mpi = spec.framework == Framework::Mpi;
    refuse_if(is_mpi && spec.mpi.is_none(), || ValidationError::MissingMpi)?;
    refuse_if(!is_mpi && spec.mpi.is_some(), || ValidationError::MpiNotSupported)?;
    let waits_for_workers = spec.success_policy == Some(SuccessPolicy::AllWorkers);
    refuse_if(is_mpi && waits_for_workers, || ValidationError::WorkersNeverSucceed)
}

fn storage(job: &Job<'_>) -> Validation {
    let directory = volumes::checkpoint_dir(job).unwrap_or("/checkpoints");
    let has_dots = directory.split('/').any(|part| matches!(part, "." | ".."));
    let is_absolute = directory.starts_with('/') && directory != "/";
    refuse_if(has_dots || !is_absolute, || ValidationError::InvalidCheckpointDir(directory.to_owned()))?;
    let mut paths = BTreeSet::new();
    for path in volumes::of(job).mount_paths() {
        let is_new = paths.insert(path.to_owned());
        refuse_if(!is_new, || ValidationError::DuplicateMountPath(path.to_owned()))?;
    }
    Ok(())
}
