//! The environment of a member: what its framework needs, what every job offers, and what the user says, in this order, so
//! that users can refer to what comes before. A name that both set has the user's value.

use super::{config_maps, pytorch, tensorflow::Cluster, variable::variable, volumes};
use crate::api::{EnvVar, Framework};
use crate::job::{Job, Role};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Names that tell members apart or count them, and so cannot be the user's.
pub const RESERVED: [&str; 8] = [
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
    "PET_NNODES",
    "PET_NODE_RANK",
    "PET_NPROC_PER_NODE",
    "RANK",
    "TF_CONFIG",
    "WORLD_SIZE",
];

/// What the environments of all members have in common.
pub struct Environment {
    cluster: Option<Cluster>,
    /// What every job offers and what the user says.
    rest: Vec<Value>,
    taken: BTreeSet<String>,
}

impl Environment {
    /// The environment of a job.
    pub fn of(job: &Job<'_>) -> Self {
        let taken: BTreeSet<_> = job.spec.env.iter().map(|variable| variable.name.clone()).collect();
        let checkpoints = volumes::checkpoint_dir(job).map(|folder| variable("CHECKPOINT_DIR", folder));
        let hyperparameters =
            config_maps::hyperparameters_text(job).map(|text| variable("HYPERPARAMETERS", &text.replace('$', "$$")));
        let offered = checkpoints.into_iter().chain(hyperparameters).filter(|variable| is_free(&taken, variable));
        let rest = offered.chain(job.spec.env.iter().map(|variable| of_user(job, variable))).collect();
        Self { cluster: Cluster::of(job), rest, taken }
    }

    /// The variables of one member.
    pub fn variables(&self, job: &Job<'_>, role: Role, index: u32) -> Vec<Value> {
        let framework = match job.spec.framework {
            Framework::Pytorch => {
                pytorch::variables(job, index).iter().map(|(name, value)| variable(name, value)).collect()
            }
            Framework::Tensorflow => {
                self.cluster.as_ref().map(|cluster| cluster.variables(job, role, index)).unwrap_or_default()
            }
        };
        let unbuffered = variable("PYTHONUNBUFFERED", "1");
        let ours = std::iter::once(unbuffered).chain(framework).filter(|ours| is_free(&self.taken, ours));
        ours.chain(self.rest.iter().cloned()).collect()
    }

    /// The ConfigMap that the environment refers to, if it needs one.
    pub fn config_map(&self, job: &Job<'_>) -> Option<Value> {
        self.cluster.as_ref().and_then(|cluster| cluster.config_map(job))
    }
}

/// ConfigMaps and Secrets whose keys become environment.
pub fn sources(job: &Job<'_>) -> Vec<Value> {
    let source = |from: &crate::api::EnvFrom| {
        let mut from = json!(from);
        drop_if_empty(&mut from, "prefix");
        point_to_snapshot(job, from.pointer_mut("/configMapRef/name"));
        from
    };
    job.spec.env_from.iter().map(source).collect()
}

fn is_free(taken: &BTreeSet<String>, variable: &Value) -> bool {
    variable["name"].as_str().is_none_or(|name| !taken.contains(name))
}

fn of_user(job: &Job<'_>, variable: &EnvVar) -> Value {
    let mut variable = json!(variable);
    drop_if_empty(&mut variable, "value");
    point_to_snapshot(job, variable.pointer_mut("/valueFrom/configMapKeyRef/name"));
    variable
}

/// The API server leaves empty texts out, so they would look like drift.
fn drop_if_empty(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut().filter(|object| object.get(field).is_some_and(|text| text == "")) {
        object.remove(field);
    }
}

/// Pods read the copy of a ConfigMap that was made when the job started.
fn point_to_snapshot(job: &Job<'_>, name: Option<&mut Value>) {
    if let Some(name) = name {
        *name = json!(config_maps::snapshot_name(job, name.as_str().unwrap_or_default()));
    }
}
