//! The environment variables of a replica: for programs that read the ranks themselves, and for torchrun (`PET_`).

use crate::api::{ElasticPolicy, PyTorchJobSpec, RdzvConf};
use pilothouse_pods::variable::variable;
use serde_json::Value;
use training_job::api::ReplicaType;
use training_job::{Job, ReplicaId};

/// The variables of one replica. Later ones stand in the place of earlier ones of the same name.
pub fn variables(job: &Job<'_>, spec: &PyTorchJobSpec, replica: ReplicaId) -> Vec<Value> {
    let mut variables = vec![variable("PYTHONUNBUFFERED", "1")];
    if let Some(master) = spec.replica_spec(ReplicaType::Chief) {
        let (address, port) = (job.pod_name(job.chief()), master.port().to_string());
        let rank = replica.index + u32::from(replica.replica_type == ReplicaType::Worker);
        // `auto`, `cpu` and `gpu` are known in the replica only.
        let processes = spec.nproc_per_node().and_then(|number| number.parse::<u32>().ok()).unwrap_or(1);
        variables.extend([
            variable("MASTER_PORT", &port),
            variable("PET_MASTER_PORT", &port),
            variable("MASTER_ADDR", &address),
            variable("PET_MASTER_ADDR", &address),
            variable("WORLD_SIZE", &job.replica_count().saturating_mul(processes).to_string()),
            variable("RANK", &rank.to_string()),
            variable("PET_NODE_RANK", &rank.to_string()),
        ]);
    }
    variables.extend(spec.nproc_per_node().map(|number| variable("PET_NPROC_PER_NODE", number)));
    match &spec.elastic_policy {
        Some(policy) => variables.extend(rendezvous(job, spec, policy)),
        None => variables.push(variable("PET_NNODES", &job.replica_count().to_string())),
    }
    variables
}

fn rendezvous(job: &Job<'_>, spec: &PyTorchJobSpec, policy: &ElasticPolicy) -> Vec<Value> {
    let first = || job.pod_name(ReplicaId::worker(0));
    let host = policy.rdzv_host.clone().unwrap_or_else(first);
    let port = policy.rdzv_port.or_else(|| spec.replica_spec(ReplicaType::Worker).map(|spec| spec.port()));
    let (min, max) = spec.elastic_bounds().unwrap_or_default();
    let conf: Vec<_> = policy.rdzv_conf.iter().map(|RdzvConf { key, value }| format!("{key}={value}")).collect();
    let mut variables = vec![
        variable("PET_RDZV_ENDPOINT", &format!("{host}:{}", port.unwrap_or_default())),
        variable("PET_RDZV_BACKEND", policy.rdzv_backend.as_deref().unwrap_or("c10d")),
        variable("PET_NNODES", &format!("{min}:{max}")),
    ];
    let number = |name, number: Option<u32>| number.map(|number| variable(name, &number.to_string()));
    variables.extend(number("PET_MAX_RESTARTS", policy.max_restarts));
    variables.extend(number("PET_NPROC_PER_NODE", policy.nproc_per_node));
    variables.extend(policy.rdzv_id.as_deref().map(|id| variable("PET_RDZV_ID", id)));
    if !conf.is_empty() {
        variables.push(variable("PET_RDZV_CONF", &conf.join(",")));
    }
    if policy.standalone == Some(true) {
        variables.push(variable("PET_STANDALONE", ""));
    }
    variables
}
