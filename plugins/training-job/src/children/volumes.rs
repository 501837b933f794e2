//! The volumes of a replica and where they are mounted. It leaves out values that are defaults of the API server: the API
//! server does not store all of them, and a missing value would look like drift.

use super::config_maps;
use crate::job::Job;
use serde_json::{Value, json};

/// Where the training data is mounted.
const DATA: &str = "/data";

/// Where the hyperparameters are mounted.
const HYPERPARAMETERS: &str = "/etc/hyperparameters";

/// Where shared memory is mounted. Data loaders and GPUs exchange data through it; the default of 64 MiB is too small.
const SHARED_MEMORY: &str = "/dev/shm";

/// Where checkpoints are mounted, if there is a volume for them and no directory is given.
const DEFAULT_CHECKPOINT_DIR: &str = "/checkpoints";

/// The volumes of a Pod, and the mounts of its container.
#[derive(Debug, Default)]
pub struct Volumes {
    /// The volumes.
    pub volumes: Vec<Value>,
    /// Their mounts.
    pub mounts: Vec<Value>,
}

impl Volumes {
    /// The volumes of each replica of a job.
    pub fn of(job: &Job<'_>) -> Self {
        let mut all = Self::default();
        let mut shared_memory = json!({ "medium": "Memory" });
        if let Some(size) = &job.spec.shm_size {
            shared_memory["sizeLimit"] = size.clone();
        }
        all.add("shm", "emptyDir", shared_memory, json!({ "mountPath": SHARED_MEMORY }));
        if let Some(data) = &job.spec.data_volume {
            let mut mount = json!({ "mountPath": DATA });
            if data.read_only.unwrap_or_default() {
                mount["readOnly"] = json!(true);
            }
            all.add("data", "persistentVolumeClaim", json!({ "claimName": data.claim_name }), mount);
        }
        if let Some(directory) = checkpoint_dir(job) {
            all.add_checkpoints(job, directory);
        }
        if job.spec.hyperparameters.is_some() {
            let name = config_maps::hyperparameters_name(job);
            let mount = json!({ "mountPath": HYPERPARAMETERS, "readOnly": true });
            all.add("hyperparameters", "configMap", json!({ "name": name }), mount);
        }
        for (index, config_map) in job.spec.config_maps.iter().enumerate() {
            let snapshot = json!({ "name": config_maps::snapshot_name(job, &config_map.name) });
            let mount = json!({ "mountPath": config_map.mount_path, "readOnly": true });
            all.add(&format!("config-{index}"), "configMap", snapshot, mount);
        }
        all
    }

    fn add(&mut self, name: &str, source: &str, volume: Value, mut mount: Value) {
        mount["name"] = json!(name);
        self.volumes.push(json!({ "name": name, source: volume }));
        self.mounts.push(mount);
    }

    /// Checkpoints are on a volume of their own, or on the data volume under the same path, or only in the Pod.
    fn add_checkpoints(&mut self, job: &Job<'_>, directory: &str) {
        if let Some(claim) = &job.spec.checkpoint_volume {
            let claim = json!({ "claimName": claim.claim_name });
            return self.add("checkpoints", "persistentVolumeClaim", claim, json!({ "mountPath": directory }));
        }
        let Some(data) = &job.spec.data_volume else {
            return self.add("checkpoints", "emptyDir", json!({}), json!({ "mountPath": directory }));
        };
        let within_data = directory.strip_prefix(DATA).filter(|rest| rest.starts_with('/'));
        // The mount of the data contains the directory already, and it can be written.
        if within_data.is_some() && !data.read_only.unwrap_or_default() {
            return;
        }
        let path = within_data.unwrap_or(directory).trim_matches('/');
        self.mounts.push(json!({ "name": "data", "mountPath": directory, "subPath": path }));
    }
}

/// Where the workers of a job find their checkpoints.
pub fn checkpoint_dir<'j>(job: &Job<'j>) -> Option<&'j str> {
    let default = || job.spec.checkpoint_volume.is_some().then_some(DEFAULT_CHECKPOINT_DIR);
    job.spec.checkpoint_dir.as_deref().map(|directory| directory.trim_end_matches('/')).or_else(default)
}

/// All paths at which something is mounted.
pub fn mount_paths(job: &Job<'_>) -> Vec<String> {
    let mounts = Volumes::of(job).mounts;
    mounts.iter().filter_map(|mount| mount["mountPath"].as_str()).map(str::to_owned).collect()
}
