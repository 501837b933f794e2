//! The environment variables of a PyTorch worker: for programs that read the ranks themselves, and for torchrun (`PET_`).

use crate::api::Elastic;
use crate::job::{Job, ReplicaId};
use pilothouse_pods::variable::variable;
use serde_json::Value;

/// The variables of one worker.
pub fn variables(job: &Job<'_>, index: u32) -> Vec<Value> {
    match &job.spec.elastic {
        None => fixed_ranks(job, index),
        Some(elastic) => rendezvous(job, elastic, index),
    }
}

/// Every worker knows its rank and the number of workers.
fn fixed_ranks(job: &Job<'_>, index: u32) -> Vec<Value> {
    let (master, port, rank) = (master_address(job), job.port().to_string(), index.to_string());
    let world_size = job.spec.workers * job.spec.nproc_per_node.unwrap_or(1);
    vec![
        variable("MASTER_ADDR", &master),
        variable("MASTER_PORT", &port),
        variable("WORLD_SIZE", &world_size.to_string()),
        variable("RANK", &rank),
        variable("PET_MASTER_ADDR", &master),
        variable("PET_MASTER_PORT", &port),
        variable("PET_NNODES", &job.spec.workers.to_string()),
        variable("PET_NODE_RANK", &rank),
        variable("PET_NPROC_PER_NODE", &processes_per_worker(job)),
    ]
}

/// The setting by which a worker knows whether it is the one at which all meet. By itself torchrun compares the address with its
/// host name, and before PyTorch 2 a name with a dot in it is nobody's.
const IS_HOST: &str = "is_host";

/// All workers have the same variables, but for who is the host. torchrun gives ranks to those that meet.
fn rendezvous(job: &Job<'_>, elastic: &Elastic, index: u32) -> Vec<Value> {
    let mut conf = elastic.rendezvous_conf.clone();
    conf.entry(IS_HOST.to_owned()).or_insert_with(|| (index == 0).to_string());
    let conf: Vec<_> = conf.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut variables = vec![
        variable("PET_RDZV_BACKEND", "c10d"),
        variable("PET_RDZV_ENDPOINT", &format!("{}:{}", master_address(job), job.port())),
        variable("PET_RDZV_ID", job.name),
        variable("PET_NNODES", &format!("{}:{}", elastic.min_workers, elastic.max_workers)),
        variable("PET_NPROC_PER_NODE", &processes_per_worker(job)),
    ];
    if let Some(restarts) = elastic.max_restarts {
        variables.push(variable("PET_MAX_RESTARTS", &restarts.to_string()));
    }
    variables.push(variable("PET_RDZV_CONF", &conf.join(",")));
    variables
}

/// The host name by which other workers reach worker 0.
fn master_address(job: &Job<'_>) -> String {
    job.host_name(ReplicaId::worker(0))
}

fn processes_per_worker(job: &Job<'_>) -> String {
    job.spec.nproc_per_node.unwrap_or(job.spec.gpu_per_worker.max(1)).to_string()
}
