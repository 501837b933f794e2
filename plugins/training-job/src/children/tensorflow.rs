//! The environment of a TensorFlow member: `TF_CONFIG`, which names all members and says which one this is.

use super::{labels, variable::variable};
use crate::api::Framework;
use crate::job::{Job, Role};
use serde_json::{Value, json};

/// The most bytes that all Pods together spend on naming each other. Where there are more, as in a big job with long
/// names, the list is in a ConfigMap, once.
const INLINE: usize = 500_000;

/// The key of that ConfigMap.
const KEY: &str = "cluster.json";

/// The variable that holds the list for `TF_CONFIG` to refer to.
const CLUSTER: &str = "TF_CLUSTER";

/// All members of a job and where they are, as JSON text.
pub struct Cluster(String);

impl Cluster {
    /// The members of a job; none where a framework or a single member has no use for them.
    pub fn of(job: &Job<'_>) -> Option<Self> {
        let needs_one = job.spec.framework == Framework::Tensorflow && job.size() > 1;
        needs_one.then(|| {
            let mut cluster = json!({ "worker": endpoints(job, Role::Worker, job.spec.workers) });
            if job.spec.parameter_servers > 0 {
                cluster["ps"] = json!(endpoints(job, Role::ParameterServer, job.spec.parameter_servers));
            }
            Self(cluster.to_string())
        })
    }

    /// The variables of one member.
    pub fn variables(&self, job: &Job<'_>, role: Role, index: u32) -> Vec<Value> {
        if !self.is_shared(job) {
            return vec![variable("TF_CONFIG", &config(&self.0, role, index))];
        }
        let from = json!({ "configMapKeyRef": { "name": name(job), "key": KEY } });
        let refer = format!("$({CLUSTER})");
        vec![json!({ "name": CLUSTER, "valueFrom": from }), variable("TF_CONFIG", &config(&refer, role, index))]
    }

    /// The ConfigMap with the list, if it is too long for every Pod to have its own.
    pub fn config_map(&self, job: &Job<'_>) -> Option<Value> {
        self.is_shared(job).then(|| {
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "name": name(job), "labels": labels::of_job(job) },
                "data": { KEY: self.0 },
            })
        })
    }

    fn is_shared(&self, job: &Job<'_>) -> bool {
        self.0.len().saturating_mul(usize::try_from(job.size()).unwrap_or(usize::MAX)) > INLINE
    }
}

fn name(job: &Job<'_>) -> String {
    job.child_name("cluster")
}

fn endpoints(job: &Job<'_>, role: Role, count: u32) -> Vec<String> {
    let address = |index| format!("{}.{}.{}.svc:{}", job.pod_name(role, index), job.name, job.namespace, job.port());
    (0..count).map(address).collect()
}

fn config(cluster: &str, role: Role, index: u32) -> String {
    let task = json!({ "type": role.word(), "index": index });
    format!(r#"{{"cluster":{cluster},"environment":"cloud","task":{task}}}"#)
}
