//! The environment variables of a JAX worker: where process 0 is, how many there are, and which one this is. One process runs in each
//! worker and has all its GPUs.

use crate::job::{Job, ReplicaId};
use pilothouse_pods::variable::variable;
use serde_json::Value;

/// The variables of one worker: under the names that JAX and Kubeflow's Trainer have for them, and under those of Kubeflow's `JAXJob`.
pub fn variables(job: &Job<'_>, index: u32) -> Vec<Value> {
    let (host, port) = (job.host_name(ReplicaId::worker(0)), job.port().to_string());
    let (count, index) = (job.spec.workers.to_string(), index.to_string());
    vec![
        variable("JAX_COORDINATOR_ADDRESS", &format!("{host}:{port}")),
        variable("JAX_NUM_PROCESSES", &count),
        variable("JAX_PROCESS_ID", &index),
        variable("COORDINATOR_ADDRESS", &host),
        variable("COORDINATOR_PORT", &port),
        variable("NUM_PROCESSES", &count),
        variable("PROCESS_ID", &index),
    ]
}
