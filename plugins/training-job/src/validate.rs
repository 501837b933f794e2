//! What about a job cannot be right, said so that it can be put right. The CRD's schema refuses most of it before; this is
//! for clusters with an older CRD, and for what a schema cannot say. Pure.

use crate::api::{Framework, TrainingJobSpec};
use crate::children::{environment::RESERVED, pod, volumes};
use crate::job::Job;
use std::collections::BTreeSet;

/// The longest name of a job: with `-worker-99` after it, it is still a host name.
pub const LONGEST_NAME: usize = 53;

/// Checks a job.
///
/// # Errors
/// The first thing that is wrong, in a sentence that names the field and says what to do.
pub fn validate(job: &Job<'_>) -> Result<(), String> {
    name(job.name)?;
    sizes(job.spec)?;
    container(job)?;
    distribution(job.spec)?;
    storage(job)
}

fn refuse_if(is_wrong: bool, sentence: impl FnOnce() -> String) -> Result<(), String> {
    if is_wrong { Err(sentence()) } else { Ok(()) }
}

fn name(name: &str) -> Result<(), String> {
    refuse_if(name.len() > LONGEST_NAME, || {
        format!(
            "metadata.name is {} characters long; names of Pods are made of it, so it can have at most {LONGEST_NAME}",
            name.len()
        )
    })?;
    let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let is_label = plain && name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with('-');
    refuse_if(!is_label, || {
        format!(
            "metadata.name '{name}' is the name of a Service, so it must begin with a letter and hold only lower-case \
             letters, digits and '-'"
        )
    })
}

fn sizes(spec: &TrainingJobSpec) -> Result<(), String> {
    refuse_if(!(1..=100).contains(&spec.workers), || format!("spec.workers is {}; give 1 to 100", spec.workers))?;
    refuse_if(spec.gpu_per_worker > 8, || format!("spec.gpuPerWorker is {}; give 0 to 8", spec.gpu_per_worker))?;
    refuse_if(spec.parameter_servers > 100, || {
        format!("spec.parameterServers is {}; give 0 to 100", spec.parameter_servers)
    })?;
    let port = spec.port.unwrap_or(1);
    refuse_if(!(1..=65535).contains(&port), || format!("spec.port is {port}; give 1 to 65535"))
}

fn container(job: &Job<'_>) -> Result<(), String> {
    let spec = job.spec;
    refuse_if(spec.image.trim().is_empty(), || "spec.image is missing; name the image to train with".to_owned())?;
    refuse_if(spec.command.is_empty(), || "spec.command is missing; give the training command".to_owned())?;
    let mut names = BTreeSet::new();
    for variable in &spec.env {
        let name = variable.name.as_str();
        refuse_if(RESERVED.contains(&name), || {
            format!("spec.env sets {name}, which tells workers apart and is set for each of them; remove it")
        })?;
        refuse_if(!names.insert(name), || format!("spec.env sets {name} twice; keep one"))?;
    }
    let gpu = pod::gpu_resource(job);
    let own = spec.resources.iter().any(|own| own.limits.contains_key(gpu) || own.requests.contains_key(gpu));
    refuse_if(own && spec.gpu_per_worker > 0, || {
        format!("spec.resources and spec.gpuPerWorker both give {gpu}; keep spec.gpuPerWorker")
    })
}

fn distribution(spec: &TrainingJobSpec) -> Result<(), String> {
    refuse_if(spec.framework != Framework::Tensorflow && spec.parameter_servers > 0, || {
        "spec.parameterServers is for framework tensorflow only; remove it".to_owned()
    })?;
    let Some(elastic) = &spec.elastic else { return Ok(()) };
    refuse_if(spec.framework != Framework::Pytorch, || {
        "spec.elastic is for framework pytorch only; remove it".to_owned()
    })?;
    let bounds = elastic.min_workers..=elastic.max_workers;
    refuse_if(bounds.is_empty() || elastic.min_workers == 0, || {
        "spec.elastic.minWorkers must be at least 1 and at most spec.elastic.maxWorkers".to_owned()
    })?;
    refuse_if(!bounds.contains(&spec.workers), || {
        format!(
            "spec.workers is {}, but spec.elastic allows {} to {}",
            spec.workers, elastic.min_workers, elastic.max_workers
        )
    })
}

fn storage(job: &Job<'_>) -> Result<(), String> {
    let folder = volumes::checkpoint_dir(job).unwrap_or("/checkpoints");
    let walks = folder.split('/').any(|part| matches!(part, "." | ".."));
    refuse_if(walks || !folder.starts_with('/') || folder == "/", || {
        format!("spec.checkpointDir '{folder}' must be an absolute path without '.' and '..'")
    })?;
    let mut paths = BTreeSet::new();
    for path in volumes::mount_paths(job) {
        let sentence = format!("two volumes would be mounted at {path}; give one of them another path");
        refuse_if(!paths.insert(path), || sentence)?;
    }
    Ok(())
}
