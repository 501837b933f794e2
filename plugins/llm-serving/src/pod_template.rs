//! The Pod template of a server, with the user's own merged into it.

use crate::container::container;
use crate::server::Server;
use crate::spec_error::SpecError;
use crate::{labels, merge, model_volume, template_check};
use pilothouse_pods::fields::set_unless_empty;
use pilothouse_pods::volumes::Volumes;
use pilothouse_pods::{gpu, security};
use serde_json::{Value, json};

/// The size of shared memory of a server with more than one GPU, if nobody says: GPUs exchange data through it.
const SHARED_MEMORY: &str = "8Gi";

/// The Pod template, with these volumes besides those of every server.
///
/// # Errors
/// The model's source cannot be read, or the user's template would break the server.
pub fn pod_template(server: &Server<'_>, mut volumes: Volumes) -> Result<Value, SpecError> {
    add_shared_memory(server, &mut volumes);
    let download = model_volume::add(server, &mut volumes)?;
    let mut spec = json!({
        "containers": [container(server, &volumes.mounts)],
        // A Service named `vllm` would set VLLM_PORT, which vLLM takes for a setting of its own.
        "enableServiceLinks": false,
        "automountServiceAccountToken": false,
        "securityContext": security::of_pod(Some(&server.security)),
        "terminationGracePeriodSeconds": server.grace_seconds(),
    });
    set_unless_empty(&mut spec, "initContainers", json!(download.into_iter().collect::<Vec<_>>()));
    set_unless_empty(&mut spec, "volumes", json!(volumes.volumes));
    set_unless_empty(&mut spec, "imagePullSecrets", json!(server.spec.model.image_pull_secrets));
    set_unless_empty(&mut spec, "affinity", json!(server.gpus.node_affinity(&server.config.gpus)));
    let tolerations: Vec<_> = server.gpus.resource().map(gpu::toleration).into_iter().collect();
    set_unless_empty(&mut spec, "tolerations", json!(tolerations));
    set_unless_empty(&mut spec, "resourceClaims", server.gpus.pod_claims(server.workload()));
    let template = json!({ "metadata": { "labels": labels::of(server) }, "spec": spec });
    match &server.spec.serving.pod_template {
        None => Ok(template),
        Some(given) => {
            let merged = merge::strategic(template, given);
            template_check::check(&merged, server)?;
            Ok(merged)
        }
    }
}

fn add_shared_memory(server: &Server<'_>, volumes: &mut Volumes) {
    let default = (server.gpus.count > 1).then(|| json!(SHARED_MEMORY));
    if let Some(size) = server.spec.model.shm_size.clone().or(default) {
        volumes.add_shared_memory(Some(&size));
    }
}
