//! The volumes of a replica and where they are mounted. It says nothing of what is on them.

use super::{config_maps, mpi};
use crate::job::Job;
use pilothouse_pods::volumes::Volumes;
use serde_json::json;

/// Where the training data is mounted.
const DATA: &str = "/data";

/// Where the hyperparameters are mounted.
const HYPERPARAMETERS: &str = "/etc/hyperparameters";

/// Where checkpoints are mounted, if there is a volume for them and no directory is given.
const DEFAULT_CHECKPOINT_DIR: &str = "/checkpoints";

/// The volumes of each replica of a job.
pub fn of(job: &Job<'_>) -> Volumes {
    let mut all = Volumes::default();
    all.add_shared_memory(job.spec.shm_size.as_ref());
    if let Some(data) = &job.spec.data_volume {
        let mut mount = json!({ "mountPath": DATA });
        if data.read_only.unwrap_or_default() {
            mount["readOnly"] = json!(true);
        }
        all.add_claim("data", &data.claim_name, mount);
    }
    if let Some(directory) = checkpoint_dir(job) {
        add_checkpoints(&mut all, job, directory);
    }
    if job.spec.hyperparameters.is_some() {
        let name = config_maps::hyperparameters_name(job);
        let mount = json!({ "mountPath": HYPERPARAMETERS, "readOnly": true });
        all.add("hyperparameters", "configMap", json!({ "name": name }), mount);
    }
    if let Some(given) = &job.spec.mpi {
        mpi::add_volumes(job, given, &mut all);
    }
    for (index, config_map) in job.spec.config_maps.iter().enumerate() {
        let snapshot = json!({ "name": config_maps::snapshot_name(job, &config_map.name) });
        let mount = json!({ "mountPath": config_map.mount_path, "readOnly": true });
        all.add(&format!("config-{index}"), "configMap", snapshot, mount);
    }
    all
}

/// Checkpoints are on a volume of their own, or on the data volume under the same path, or only in the Pod.
fn add_checkpoints(all: &mut Volumes, job: &Job<'_>, directory: &str) {
    let mount = json!({ "mountPath": directory });
    if let Some(claim) = &job.spec.checkpoint_volume {
        return all.add_claim("checkpoints", &claim.claim_name, mount);
    }
    let Some(data) = &job.spec.data_volume else {
        return all.add("checkpoints", "emptyDir", json!({}), mount);
    };
    let within_data = directory.strip_prefix(DATA).filter(|rest| rest.starts_with('/'));
    // The mount of the data contains the directory already, and it can be written.
    if within_data.is_some() && !data.read_only.unwrap_or_default() {
        return;
    }
    let path = within_data.unwrap_or(directory).trim_matches('/');
    all.mounts.push(json!({ "name": "data", "mountPath": directory, "subPath": path }));
}

/// Where the workers of a job find their checkpoints.
pub fn checkpoint_dir<'j>(job: &Job<'j>) -> Option<&'j str> {
    let default = || job.spec.checkpoint_volume.is_some().then_some(DEFAULT_CHECKPOINT_DIR);
    job.spec.checkpoint_dir.as_deref().map(|directory| directory.trim_end_matches('/')).or_else(default)
}
