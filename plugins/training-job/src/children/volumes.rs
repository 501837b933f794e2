//! Volumes of a member and where they are mounted. What is the API server's default is not said: it leaves such values
//! out, and they would look like drift.

use super::config_maps;
use crate::job::Job;
use serde_json::{Value, json};

/// Where the training data is.
pub const DATA: &str = "/data";

/// Where the hyperparameters are.
pub const HYPERPARAMETERS: &str = "/etc/hyperparameters";

/// Shared memory, for data loaders and for GPUs that talk to each other.
pub const SHARED_MEMORY: &str = "/dev/shm";

/// Where checkpoints are, if there is a volume for them and nothing else is said.
const CHECKPOINTS: &str = "/checkpoints";

/// The volumes of a Pod, and the mounts of its container.
#[derive(Debug, Default)]
pub struct Volumes {
    /// The volumes.
    pub volumes: Vec<Value>,
    /// Their mounts.
    pub mounts: Vec<Value>,
}

impl Volumes {
    /// The volumes of every member of a job.
    pub fn of(job: &Job<'_>) -> Self {
        let mut all = Self::default();
        let mut shared = json!({ "medium": "Memory" });
        if let Some(size) = &job.spec.shm_size {
            shared["sizeLimit"] = size.clone();
        }
        all.add("shm", "emptyDir", shared, json!({ "mountPath": SHARED_MEMORY }));
        if let Some(data) = &job.spec.data_volume {
            let mut mount = json!({ "mountPath": DATA });
            if data.read_only.unwrap_or_default() {
                mount["readOnly"] = json!(true);
            }
            all.add("data", "persistentVolumeClaim", json!({ "claimName": data.claim_name }), mount);
        }
        if let Some(folder) = checkpoint_dir(job) {
            all.add_checkpoints(job, folder);
        }
        if job.spec.hyperparameters.is_some() {
            let name = config_maps::hyperparameters_name(job);
            let mount = json!({ "mountPath": HYPERPARAMETERS, "readOnly": true });
            all.add("hyperparameters", "configMap", json!({ "name": name }), mount);
        }
        for (number, mounted) in job.spec.config_maps.iter().enumerate() {
            let snapshot = json!({ "name": config_maps::snapshot_name(job, &mounted.name) });
            let mount = json!({ "mountPath": mounted.mount_path, "readOnly": true });
            all.add(&format!("config-{number}"), "configMap", snapshot, mount);
        }
        all
    }

    fn add(&mut self, name: &str, source: &str, volume: Value, mut mount: Value) {
        mount["name"] = json!(name);
        self.volumes.push(json!({ "name": name, source: volume }));
        self.mounts.push(mount);
    }

    /// Checkpoints are on their own volume, or on the data volume under the same path, or nowhere but in the Pod.
    fn add_checkpoints(&mut self, job: &Job<'_>, folder: &str) {
        if let Some(claim) = &job.spec.checkpoint_volume {
            let claim = json!({ "claimName": claim.claim_name });
            return self.add("checkpoints", "persistentVolumeClaim", claim, json!({ "mountPath": folder }));
        }
        let Some(data) = &job.spec.data_volume else {
            return self.add("checkpoints", "emptyDir", json!({}), json!({ "mountPath": folder }));
        };
        let within = folder.strip_prefix(DATA).filter(|rest| rest.starts_with('/'));
        if within.is_some() && !data.read_only.unwrap_or_default() {
            return;
        }
        let path = within.unwrap_or(folder).trim_matches('/');
        self.mounts.push(json!({ "name": "data", "mountPath": folder, "subPath": path }));
    }
}

/// Where a job's members find their checkpoints.
pub fn checkpoint_dir<'j>(job: &Job<'j>) -> Option<&'j str> {
    let default = || job.spec.checkpoint_volume.is_some().then_some(CHECKPOINTS);
    job.spec.checkpoint_dir.as_deref().map(|folder| folder.trim_end_matches('/')).or_else(default)
}

/// Every path at which something is mounted.
pub fn mount_paths(job: &Job<'_>) -> Vec<String> {
    let mounts = Volumes::of(job).mounts;
    mounts.iter().filter_map(|mount| mount["mountPath"].as_str()).map(str::to_owned).collect()
}
