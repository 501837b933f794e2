//! `PyTorchJob` of `kubeflow.org/v1`: the fields that this plugin reads, with the training operator's defaults. It checks nothing.

use pilothouse_sdk::{Kind, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use training_job::api::{ReplicaType, RestartPolicy};

/// The container that trains.
pub const CONTAINER: &str = "pytorch";

/// The name of the port on which replicas meet.
pub const PORT_NAME: &str = "pytorchjob-port";

/// The port on which replicas meet, where the container names none.
const DEFAULT_PORT: u32 = 23456;

/// The replica type that leads.
pub const MASTER: &str = "Master";

/// The replica type of all others.
pub const WORKER: &str = "Worker";

/// A `PyTorchJob` as the API serves it.
pub type PyTorchJob = Object<PyTorchJobSpec, PyTorchJobStatus>;

/// What the user asks for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PyTorchJobSpec {
    /// Limits and cleanup.
    pub run_policy: RunPolicy,
    /// Makes the number of workers elastic.
    pub elastic_policy: Option<ElasticPolicy>,
    /// The replicas, by type. The case of the types does not matter.
    pub pytorch_replica_specs: BTreeMap<String, ReplicaSpec>,
    /// How many processes run in each replica: a number, `auto`, `cpu` or `gpu`.
    pub nproc_per_node: Option<String>,
}

impl Kind for PyTorchJobSpec {
    const API_VERSION: &'static str = "kubeflow.org/v1";
    const KIND: &'static str = "PyTorchJob";
}

/// Limits and cleanup.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunPolicy {
    /// Which Pods go at the end: `None`, `Running` or `All`.
    pub clean_pod_policy: Option<String>,
    /// How many seconds the job may run.
    pub active_deadline_seconds: Option<u32>,
    /// How many restarts the job may have. Without it, as many as it takes.
    pub backoff_limit: Option<u32>,
    /// Whether the job is suspended.
    pub suspend: Option<bool>,
    /// What the gang scheduler is told.
    pub scheduling_policy: Option<SchedulingPolicy>,
}

/// What the gang scheduler is told.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingPolicy {
    /// How many Pods must start together.
    pub min_available: Option<u32>,
    /// The queue (Volcano).
    pub queue: Option<String>,
    /// What all of them need together. Without it, what the containers that train request.
    pub min_resources: Option<Map<String, Value>>,
    /// The priority class of the group (Volcano).
    pub priority_class: Option<String>,
    /// How long the scheduler tries (scheduler-plugins).
    pub schedule_timeout_seconds: Option<u32>,
}

/// The bounds and the rendezvous of an elastic job.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ElasticPolicy {
    /// The smallest number of workers.
    pub min_replicas: Option<u32>,
    /// The largest number of workers.
    pub max_replicas: Option<u32>,
    /// The backend of the rendezvous. Default: `c10d`.
    pub rdzv_backend: Option<String>,
    /// Its port. Default: that of the workers.
    pub rdzv_port: Option<u32>,
    /// Its host. Default: worker 0.
    pub rdzv_host: Option<String>,
    /// Its id.
    pub rdzv_id: Option<String>,
    /// Its settings, in this order.
    pub rdzv_conf: Vec<RdzvConf>,
    /// Whether each replica is a rendezvous of its own.
    pub standalone: Option<bool>,
    /// The older name of `nprocPerNode`.
    #[serde(rename = "nProcPerNode")]
    pub nproc_per_node: Option<u32>,
    /// How many times torchrun restarts the processes of a replica.
    pub max_restarts: Option<u32>,
    /// The metrics of the autoscaler. Without them there is none.
    pub metrics: Option<Vec<Value>>,
}

/// A setting of the rendezvous.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct RdzvConf {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// The replicas of one type.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSpec {
    /// How many. Default: one.
    pub replicas: Option<u32>,
    /// Their Pods.
    pub template: Value,
    /// Which failures are retried. Default: `OnFailure`.
    pub restart_policy: Option<String>,
}

/// The status, as far as it tells of a job that another controller has served.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PyTorchJobStatus {
    /// The conditions.
    pub conditions: Vec<training_job::api::StatusCondition>,
    /// When it started.
    pub start_time: Option<String>,
    /// When it ended.
    pub completion_time: Option<String>,
    /// When something happened last of which there is an Event or a measurement.
    pub last_reconcile_time: Option<String>,
}

impl PyTorchJobSpec {
    /// The replicas of a type.
    pub fn replica_spec(&self, replica_type: ReplicaType) -> Option<&ReplicaSpec> {
        let name = if replica_type == ReplicaType::Chief { MASTER } else { WORKER };
        self.pytorch_replica_specs.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, spec)| spec)
    }

    /// How many replicas of a type there are.
    pub fn count(&self, replica_type: ReplicaType) -> u32 {
        self.replica_spec(replica_type).map_or(0, |spec| spec.replicas.unwrap_or(1))
    }

    /// Whether a master leads.
    pub fn has_master(&self) -> bool {
        self.replica_spec(ReplicaType::Chief).is_some()
    }

    /// The smallest and the largest number of workers of an elastic job: where one is missing it is the other, where both are, the
    /// number of workers.
    pub fn elastic_bounds(&self) -> Option<(u32, u32)> {
        let ElasticPolicy { min_replicas, max_replicas, .. } = self.elastic_policy.as_ref()?;
        let workers = self.count(ReplicaType::Worker);
        let (min, max) = (min_replicas.or(*max_replicas), max_replicas.or(*min_replicas));
        Some((min.unwrap_or(workers), max.unwrap_or(workers)))
    }

    /// How many processes run in each replica, as torchrun reads it; none if the elastic policy says it.
    pub fn nproc_per_node(&self) -> Option<&str> {
        let is_elsewhere = self.elastic_policy.as_ref().is_some_and(|policy| policy.nproc_per_node.is_some());
        self.nproc_per_node.as_deref().or((!is_elsewhere).then_some("auto"))
    }
}

impl ReplicaSpec {
    /// Which failures are retried.
    pub fn restart_policy(&self) -> RestartPolicy {
        match self.restart_policy.as_deref() {
            Some("Always") => RestartPolicy::Always,
            Some("Never") => RestartPolicy::Never,
            Some("ExitCode") => RestartPolicy::ExitCode,
            _ => RestartPolicy::OnFailure,
        }
    }

    /// The containers of its Pods.
    pub fn containers(&self) -> &[Value] {
        self.template["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The container that trains.
    pub fn container(&self) -> Option<&Value> {
        self.containers().iter().find(|container| container["name"] == CONTAINER)
    }

    /// The ports of that container by name, with the one on which replicas meet.
    pub fn ports(&self) -> BTreeMap<String, u32> {
        let given = self.container().and_then(|container| container["ports"].as_array()).into_iter().flatten();
        let named = given.filter_map(|port| {
            let number = port["containerPort"].as_u64().and_then(|number| u32::try_from(number).ok())?;
            Some((port["name"].as_str()?.to_owned(), number))
        });
        let mut ports: BTreeMap<_, _> = named.collect();
        ports.entry(PORT_NAME.to_owned()).or_insert(DEFAULT_PORT);
        ports
    }

    /// The port on which replicas meet.
    pub fn port(&self) -> u32 {
        self.ports().get(PORT_NAME).copied().unwrap_or(DEFAULT_PORT)
    }
}
