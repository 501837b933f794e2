//! The environment variables of a replica: first those of the framework, then those that every job gets, then those of the
//! user, who can therefore refer to all earlier ones. Where a name is set twice, the user's value wins.

use super::{config_maps, jax, mpi, pytorch, tensorflow::ClusterSpec, volumes};
use crate::api::Framework;
use crate::job::{Job, ReplicaId};
use pilothouse_pods::api::{EnvFrom, EnvVar};
use pilothouse_pods::{fields::remove_if_empty, variable::variable};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Variables that tell workers apart or count them. Users cannot set them.
pub const RESERVED: [&str; 11] = [
    "JAX_NUM_PROCESSES",
    "JAX_PROCESS_ID",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
    "PET_NNODES",
    "PET_NODE_RANK",
    "PET_NPROC_PER_NODE",
    "PROCESS_ID",
    "RANK",
    "TF_CONFIG",
    "WORLD_SIZE",
];

/// The most bytes of one variable with its name and its end: Linux starts no program that is given more.
pub const MAX_VARIABLE_BYTES: usize = 128 << 10;

/// The variable with the hyperparameters.
const HYPERPARAMETERS: &str = "HYPERPARAMETERS";

/// The part of the environment that all replicas of a job share.
pub struct Environment {
    /// The TensorFlow cluster, if the job has one.
    cluster: Option<ClusterSpec>,
    /// The variables that every job gets, and those of the user.
    common: Vec<Value>,
    /// The names that the user sets.
    user_names: BTreeSet<String>,
}

impl Environment {
    /// The environment of a job.
    pub fn of(job: &Job<'_>) -> Self {
        let user_names: BTreeSet<_> = job.spec.env.iter().map(|variable| variable.name.clone()).collect();
        let checkpoint_dir = volumes::checkpoint_dir(job).map(|directory| variable("CHECKPOINT_DIR", directory));
        let hyperparameters = config_maps::hyperparameters_variable(job, HYPERPARAMETERS);
        let of_every_job = checkpoint_dir.into_iter().chain(hyperparameters);
        let of_every_job = of_every_job.filter(|variable| !is_set_by_user(&user_names, variable));
        let common = of_every_job.chain(job.spec.env.iter().map(|variable| user_variable(job, variable))).collect();
        Self { cluster: ClusterSpec::of(job), common, user_names }
    }

    /// The variables of one replica.
    pub fn variables(&self, job: &Job<'_>, replica: ReplicaId) -> Vec<Value> {
        let of_framework = match (job.spec.framework, &self.cluster) {
            (Framework::Pytorch, _) => pytorch::variables(job, replica.index),
            (Framework::Tensorflow, Some(cluster)) => cluster.variables(job, replica),
            (Framework::Tensorflow, None) => Vec::new(),
            (Framework::Jax, _) => jax::variables(job, replica.index),
            (Framework::Mpi, _) => mpi::variables(job, replica),
        };
        // Without it, Python holds log lines back in a buffer, and a killed worker loses its last ones.
        let unbuffered = variable("PYTHONUNBUFFERED", "1");
        let own = std::iter::once(unbuffered).chain(of_framework);
        let own = own.filter(|variable| !is_set_by_user(&self.user_names, variable));
        own.chain(self.common.iter().cloned()).collect()
    }

    /// The ConfigMap that the variables refer to, if they need one.
    pub fn config_map(&self, job: &Job<'_>) -> Option<Value> {
        self.cluster.as_ref().and_then(|cluster| cluster.config_map(job))
    }
}

/// How many bytes the variable with the hyperparameters has in a replica; none if the user sets it to something else.
pub fn hyperparameters_bytes(job: &Job<'_>) -> usize {
    let is_replaced = job.spec.env.iter().any(|variable| variable.name == HYPERPARAMETERS);
    let json = config_maps::hyperparameters_json(job).filter(|_| !is_replaced);
    json.map_or(0, |json| HYPERPARAMETERS.len() + "=".len() + json.len() + 1)
}

/// `envFrom` of a container: ConfigMaps and Secrets whose keys become variables.
pub fn env_from(job: &Job<'_>) -> Vec<Value> {
    let source = |from: &EnvFrom| {
        let mut from = json!(from);
        remove_if_empty(&mut from, "prefix");
        point_to_snapshot(job, from.pointer_mut("/configMapRef/name"));
        from
    };
    job.spec.env_from.iter().map(source).collect()
}

fn is_set_by_user(user_names: &BTreeSet<String>, variable: &Value) -> bool {
    variable["name"].as_str().is_some_and(|name| user_names.contains(name))
}

fn user_variable(job: &Job<'_>, variable: &EnvVar) -> Value {
    let mut variable = json!(variable);
    remove_if_empty(&mut variable, "value");
    point_to_snapshot(job, variable.pointer_mut("/valueFrom/configMapKeyRef/name"));
    variable
}

/// Pods read the snapshot of a ConfigMap in the place of the ConfigMap itself.
fn point_to_snapshot(job: &Job<'_>, name: Option<&mut Value>) {
    if let Some(name) = name {
        *name = json!(config_maps::snapshot_name(job, name.as_str().unwrap_or_default()));
    }
}
