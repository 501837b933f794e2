//! The headless Service of one replica, under whose name the others reach it.

use super::labels;
use crate::api::PyTorchJobSpec;
use serde_json::{Value, json};
use training_job::{Job, ReplicaId};

/// The desired Service.
pub fn service(job: &Job<'_>, spec: &PyTorchJobSpec, replica: ReplicaId) -> Value {
    let labels = labels::of_replica(job, replica);
    let ports = spec.replica_spec(replica.replica_type).map(|spec| spec.ports()).unwrap_or_default();
    let port =
        |(name, port): (&String, &u32)| json!({ "name": name, "port": port, "targetPort": port, "protocol": "TCP" });
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": job.pod_name(replica), "labels": labels },
        "spec": {
            "clusterIP": "None",
            // Replicas look each other up while they start, before they are ready.
            "publishNotReadyAddresses": true,
            "selector": labels,
            "ports": ports.iter().map(port).collect::<Vec<_>>(),
        },
    })
}
