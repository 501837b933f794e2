//! The environment variables of a TensorFlow replica: `TF_CONFIG`, which lists all replicas and says which one this is.

use super::config_maps::is_shared;
use super::labels;
use crate::api::{Framework, ReplicaType};
use crate::job::{Job, ReplicaId};
use pilothouse_pods::variable::variable;
use serde_json::{Value, json};

/// The key of that ConfigMap.
const CONFIG_MAP_KEY: &str = "cluster.json";

/// The variable with the list from that ConfigMap, to which `TF_CONFIG` refers.
const CLUSTER_VARIABLE: &str = "TF_CLUSTER";

/// All replicas of a job with their addresses, as JSON: what TensorFlow calls the cluster spec.
pub struct ClusterSpec(String);

impl ClusterSpec {
    /// The cluster spec of a job; none where the framework or a single replica has no use for it.
    pub fn of(job: &Job<'_>) -> Option<Self> {
        if job.spec.framework != Framework::Tensorflow || job.replica_count() <= 1 {
            return None;
        }
        let addresses_of = |replica_type| -> Vec<_> {
            let replicas = job.replicas().filter(|replica| replica.replica_type == replica_type);
            replicas.map(|replica| address(job, replica)).collect()
        };
        let mut cluster = json!({ "worker": addresses_of(ReplicaType::Worker) });
        // The evaluator stands beside the cluster: the others do not know of it.
        for replica_type in [ReplicaType::ParameterServer, ReplicaType::Chief] {
            if job.count(replica_type) > 0 {
                cluster[replica_type.as_str()] = json!(addresses_of(replica_type));
            }
        }
        Some(Self(cluster.to_string()))
    }

    /// How many bytes `TF_CONFIG` has with its name, in the replica that has the most.
    pub fn variable_bytes(&self, job: &Job<'_>) -> usize {
        let of_replica = |replica| tf_config("", replica).len();
        "TF_CONFIG=".len() + self.0.len() + job.replicas().map(of_replica).max().unwrap_or_default() + 1
    }

    /// The variables of one replica.
    pub fn variables(&self, job: &Job<'_>, replica: ReplicaId) -> Vec<Value> {
        if !self.is_in_config_map(job) {
            return vec![variable("TF_CONFIG", &tf_config(&self.0, replica))];
        }
        let key = json!({ "configMapKeyRef": { "name": config_map_name(job), "key": CONFIG_MAP_KEY } });
        let reference = format!("$({CLUSTER_VARIABLE})");
        vec![
            json!({ "name": CLUSTER_VARIABLE, "valueFrom": key }),
            variable("TF_CONFIG", &tf_config(&reference, replica)),
        ]
    }

    /// The ConfigMap with the cluster spec, if it is too long to be in every Pod.
    pub fn config_map(&self, job: &Job<'_>) -> Option<Value> {
        self.is_in_config_map(job).then(|| {
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "name": config_map_name(job), "labels": labels::of_job(job) },
                "data": { CONFIG_MAP_KEY: self.0 },
            })
        })
    }

    fn is_in_config_map(&self, job: &Job<'_>) -> bool {
        is_shared(job, &self.0)
    }
}

fn config_map_name(job: &Job<'_>) -> String {
    job.child_name("cluster")
}

fn address(job: &Job<'_>, replica: ReplicaId) -> String {
    format!("{}.{}.{}.svc:{}", job.pod_name(replica), job.name, job.namespace, job.port())
}

/// The value of `TF_CONFIG`. It is put together as text, since `cluster` may be a reference to a variable and no JSON.
fn tf_config(cluster: &str, replica: ReplicaId) -> String {
    let task = json!({ "type": replica.replica_type.as_str(), "index": replica.index });
    format!(r#"{{"cluster":{cluster},"environment":"cloud","task":{task}}}"#)
}
