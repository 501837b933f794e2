//! A job as the rest of the plugin sees it: the spec with its defaults filled in. It reads the object and nothing else.

use crate::api::{
    CleanPodPolicy, Framework, RestartPolicy, RestartScope, RunPolicy, SuccessPolicy, TrainingJob, TrainingJobSpec,
};
use crate::fingerprint::fingerprint;
use crate::restart_policy::{pod_restart_policy, restart_policy, restart_scope};

/// How many restarts a job may have if its spec does not say it: the default of `batch/v1` Jobs.
const DEFAULT_BACKOFF_LIMIT: u32 = 6;

/// What a replica does in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaType {
    /// It trains.
    Worker,
    /// It holds parameters for the workers.
    ParameterServer,
}

/// One worker or parameter server of a job, whether it has a Pod or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaId {
    /// What it does.
    pub replica_type: ReplicaType,
    /// Its number among the replicas of its type.
    pub index: u32,
}

/// When a job has succeeded. Unlike the field `successPolicy`, it has a value for elastic jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessRule {
    /// When worker 0 has.
    Chief,
    /// When all workers have.
    All,
    /// When one worker has.
    Any,
}

/// A job: its name, and its spec with defaults.
#[derive(Debug)]
pub struct Job<'o> {
    /// Its name.
    pub name: &'o str,
    /// Its namespace.
    pub namespace: &'o str,
    /// What the user asks for.
    pub spec: &'o TrainingJobSpec,
    /// Fingerprint of the part of the spec that its Pods are made from. Pods with another fingerprint must be replaced.
    pub fingerprint: String,
}

impl<'o> Job<'o> {
    /// The job of an object.
    pub fn of(object: &'o TrainingJob) -> Self {
        let spec = &object.spec;
        Self { name: object.name(), namespace: object.namespace(), spec, fingerprint: fingerprint(spec) }
    }

    /// All replicas: workers by number, then parameter servers.
    pub fn replicas(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        let workers = (0..self.spec.workers).map(ReplicaId::worker);
        workers.chain((0..self.spec.parameter_servers).map(ReplicaId::parameter_server))
    }

    /// How many replicas there are.
    pub fn replica_count(&self) -> u32 {
        self.spec.workers + self.spec.parameter_servers
    }

    /// The name of a replica's Pod, which is also its host name.
    pub fn pod_name(&self, replica: ReplicaId) -> String {
        format!("{}-{}-{}", self.name, replica.replica_type.as_str(), replica.index)
    }

    /// The name of a child that belongs to the job as a whole.
    pub fn child_name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    /// The port on which replicas meet.
    pub fn port(&self) -> u32 {
        self.spec.port.unwrap_or(match self.spec.framework {
            Framework::Pytorch => 29500,
            Framework::Tensorflow => 2222,
        })
    }

    /// Whether the user has suspended the job.
    pub fn is_suspended(&self) -> bool {
        self.run_policy(|policy| policy.suspend).unwrap_or_default()
    }

    /// Which failures are retried.
    pub fn restart_policy(&self) -> RestartPolicy {
        restart_policy(self.spec)
    }

    /// Whether a retry restarts the failed worker or the whole job.
    pub fn restart_scope(&self) -> RestartScope {
        restart_scope(self.spec)
    }

    /// `spec.restartPolicy` of the Pods.
    pub fn pod_restart_policy(&self) -> &'static str {
        pod_restart_policy(self.spec)
    }

    /// How many restarts the job may have before it fails.
    pub fn backoff_limit(&self) -> u32 {
        self.run_policy(|policy| policy.backoff_limit).unwrap_or(DEFAULT_BACKOFF_LIMIT)
    }

    /// How many seconds the job may run.
    pub fn active_deadline_seconds(&self) -> Option<u32> {
        self.run_policy(|policy| policy.active_deadline_seconds)
    }

    /// How many seconds after its end the job is deleted.
    pub fn ttl_seconds_after_finished(&self) -> Option<u32> {
        self.run_policy(|policy| policy.ttl_seconds_after_finished)
    }

    /// Which Pods are removed at the end.
    pub fn clean_pod_policy(&self) -> CleanPodPolicy {
        self.run_policy(|policy| policy.clean_pod_policy).unwrap_or(CleanPodPolicy::None)
    }

    /// When the job has succeeded.
    pub fn success_rule(&self) -> SuccessRule {
        match (self.spec.success_policy, self.spec.framework) {
            (Some(SuccessPolicy::ChiefWorker), _) | (None, Framework::Tensorflow) => SuccessRule::Chief,
            (Some(SuccessPolicy::AllWorkers), _) => SuccessRule::All,
            (None, Framework::Pytorch) if self.spec.elastic.is_some() => SuccessRule::Any,
            (None, Framework::Pytorch) => SuccessRule::All,
        }
    }

    fn run_policy<T>(&self, field: impl FnOnce(&'o RunPolicy) -> Option<T>) -> Option<T> {
        self.spec.run_policy.as_ref().and_then(field)
    }
}

impl ReplicaId {
    /// A worker.
    pub fn worker(index: u32) -> Self {
        Self { replica_type: ReplicaType::Worker, index }
    }

    /// A parameter server.
    pub fn parameter_server(index: u32) -> Self {
        Self { replica_type: ReplicaType::ParameterServer, index }
    }
}

impl ReplicaType {
    /// As it is in names and labels, and in `TF_CONFIG`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::ParameterServer => "ps",
        }
    }
}
