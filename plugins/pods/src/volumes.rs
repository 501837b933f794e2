//! The volumes of a Pod and where its container mounts them. It leaves out values that are defaults of the API server: the API
//! server does not store all of them, and a missing value would look like drift.

use serde_json::{Value, json};

/// Where shared memory is mounted. Data loaders and GPUs exchange data through it; the default of 64 MiB is too small.
pub const SHARED_MEMORY: &str = "/dev/shm";

/// The volumes of a Pod, and the mounts of its container.
#[derive(Clone, Debug, Default)]
pub struct Volumes {
    /// The volumes.
    pub volumes: Vec<Value>,
    /// Their mounts.
    pub mounts: Vec<Value>,
}

impl Volumes {
    /// Adds a volume and its mount, which gets the name of the volume.
    pub fn add(&mut self, name: &str, source: &str, volume: Value, mut mount: Value) {
        mount["name"] = json!(name);
        self.volumes.push(json!({ "name": name, source: volume }));
        self.mounts.push(mount);
    }

    /// Adds shared memory, of this size or as much as the Pod's memory allows.
    pub fn add_shared_memory(&mut self, size: Option<&Value>) {
        let mut memory = json!({ "medium": "Memory" });
        if let Some(size) = size {
            memory["sizeLimit"] = size.clone();
        }
        self.add("shm", "emptyDir", memory, json!({ "mountPath": SHARED_MEMORY }));
    }

    /// Adds a claim, mounted at a path.
    pub fn add_claim(&mut self, name: &str, claim: &str, mount: Value) {
        self.add(name, "persistentVolumeClaim", json!({ "claimName": claim }), mount);
    }

    /// All paths at which something is mounted.
    pub fn mount_paths(&self) -> impl Iterator<Item = &str> {
        self.mounts.iter().filter_map(|mount| mount["mountPath"].as_str())
    }
}
