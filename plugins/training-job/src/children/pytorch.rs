//! The environment of a PyTorch worker: for programs that read the ranks themselves, and for torchrun.

use crate::api::Elastic;
use crate::job::{Job, Role};

/// The variables of one worker.
pub fn variables(job: &Job<'_>, index: u32) -> Vec<(&'static str, String)> {
    match &job.spec.elastic {
        None => fixed(job, index),
        Some(elastic) => rendezvous(job, elastic),
    }
}

/// Every worker knows its rank and how many there are.
fn fixed(job: &Job<'_>, index: u32) -> Vec<(&'static str, String)> {
    let world = job.spec.workers * job.spec.nproc_per_node.unwrap_or(1);
    vec![
        ("MASTER_ADDR", master(job)),
        ("MASTER_PORT", job.port().to_string()),
        ("WORLD_SIZE", world.to_string()),
        ("RANK", index.to_string()),
        ("PET_MASTER_ADDR", master(job)),
        ("PET_MASTER_PORT", job.port().to_string()),
        ("PET_NNODES", job.spec.workers.to_string()),
        ("PET_NODE_RANK", index.to_string()),
        ("PET_NPROC_PER_NODE", processes(job)),
    ]
}

/// Workers are the same; torchrun numbers those that meet.
fn rendezvous(job: &Job<'_>, elastic: &Elastic) -> Vec<(&'static str, String)> {
    let conf: Vec<_> = elastic.rendezvous_conf.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut variables = vec![
        ("PET_RDZV_BACKEND", "c10d".to_owned()),
        ("PET_RDZV_ENDPOINT", format!("{}:{}", master(job), job.port())),
        ("PET_RDZV_ID", job.name.to_owned()),
        ("PET_NNODES", format!("{}:{}", elastic.min_workers, elastic.max_workers)),
        ("PET_NPROC_PER_NODE", processes(job)),
    ];
    variables.extend(elastic.max_restarts.map(|restarts| ("PET_MAX_RESTARTS", restarts.to_string())));
    variables.extend((!conf.is_empty()).then(|| ("PET_RDZV_CONF", conf.join(","))));
    variables
}

/// Worker 0, as the others reach it.
fn master(job: &Job<'_>) -> String {
    format!("{}.{}", job.pod_name(Role::Worker, 0), job.name)
}

fn processes(job: &Job<'_>) -> String {
    job.spec.nproc_per_node.unwrap_or(job.spec.gpu_per_worker.max(1)).to_string()
}
