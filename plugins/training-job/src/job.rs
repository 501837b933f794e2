//! A job as the rest of the plugin sees it: the spec with its defaults filled in. It reads the object and nothing else.

use crate::api::{
    CleanPodPolicy, Framework, HangAction, PodFailureRule, ReplicaType, RestartPolicy, RestartScope, Role, RunPolicy,
    SuccessPolicy, TerminationTimeoutAction, TrainingJob, TrainingJobSpec,
};
use crate::desired_child::DesiredChild;
use crate::restart_policy::{pod_restart_policy, restart_scope};
use crate::termination::TerminationPolicy;
use pilothouse_sdk::Error;
use serde_json::{Map, Value};
use std::fmt::Debug;

/// How many restarts a job may have if its spec does not say it: the default of `batch/v1` Jobs.
const DEFAULT_BACKOFF_LIMIT: u32 = 6;

/// How many times in a row a job may be disrupted if its spec does not say it. With pauses of five minutes, that takes hours.
const DEFAULT_DISRUPTION_LIMIT: u32 = 100;

/// The port of SSH.
const SSH_PORT: u32 = 22;

/// The label of a job with the name of its LocalQueue in Kueue.
pub const QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// The label of a job with the name of its WorkloadPriorityClass in Kueue.
pub const PRIORITY_CLASS: &str = "kueue.x-k8s.io/priority-class";

/// One member of a job, whether it has a Pod or not.
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
    /// When the chief has.
    Chief,
    /// When all workers have.
    All,
    /// When one worker has.
    Any,
}

/// A kind of object that is a training job: its names and labels, its Pods, and the children beside those. It makes and names; when
/// something exists, and what happens next, is decided for all kinds alike.
pub trait JobKind: Debug {
    /// What replicas of a role are called in the names of their Pods.
    fn role_name(&self, replica_type: ReplicaType) -> &'static str;

    /// Which failures of a role are retried.
    fn restart_policy(&self, spec: &TrainingJobSpec, replica_type: ReplicaType) -> RestartPolicy;

    /// The fingerprint of what Pods are made from. Pods with another one are replaced.
    fn fingerprint(&self, spec: &TrainingJobSpec) -> String;

    /// Finds the first mistake in a job.
    ///
    /// # Errors
    /// The mistake, of a type of the kind's own, as one sentence.
    fn validate(&self, job: &Job<'_>) -> Result<(), Box<dyn std::error::Error>>;

    /// The labels of children that belong to the job as a whole.
    fn labels(&self, job: &Job<'_>) -> Value;

    /// The labels by which Services and autoscalers find the Pod of a replica.
    fn found_by(&self, job: &Job<'_>, replica: ReplicaId) -> Vec<(&'static str, String)>;

    /// The compute resources of one replica.
    fn resources(&self, job: &Job<'_>, replica_type: ReplicaType) -> Value;

    /// What the gang scheduler is to keep free, where the user says it.
    fn min_resources(&self) -> Option<&Map<String, Value>> {
        None
    }

    /// The children of an active job.
    fn children<'j>(&'j self, job: &'j Job<'j>) -> Box<dyn JobChildren + 'j>;

    /// The names of the Services that stay when the job has ended, with the Pods of these names.
    fn remaining_services(&self, job: &Job<'_>, policy: CleanPodPolicy, pods: &[&str]) -> Vec<String>;
}

/// The children of an active job.
pub trait JobChildren {
    /// The Pod of one replica.
    fn pod(&self, replica: ReplicaId) -> Value;

    /// All others, but for what schedulers and queues need. `config_maps` are the names of those that exist.
    ///
    /// # Errors
    /// A lookup fails.
    fn others(&self, config_maps: &[&str]) -> Result<Vec<DesiredChild>, Error>;
}

/// A job: its name, and its spec with defaults.
#[derive(Debug)]
pub struct Job<'o> {
    /// Its name.
    pub name: &'o str,
    /// Its namespace.
    pub namespace: &'o str,
    /// Its queue, if it waits in one.
    pub queue: Option<&'o str>,
    /// Its priority in that queue.
    pub priority_class: Option<&'o str>,
    /// What the user asks for.
    pub spec: &'o TrainingJobSpec,
    /// The kind of its object.
    pub kind: &'o dyn JobKind,
    /// Fingerprint of the part of the spec that its Pods are made from. Pods with another fingerprint must be replaced.
    pub fingerprint: String,
}

impl<'o> Job<'o> {
    /// The job of an object. An object of another kind than `TrainingJob` is first made one.
    pub fn of(object: &'o TrainingJob, kind: &'o dyn JobKind) -> Self {
        let spec = &object.spec;
        let label = |name: &str| object.metadata.labels.get(name).map(String::as_str).filter(|value| !value.is_empty());
        Self {
            name: object.name(),
            namespace: object.namespace(),
            queue: label(QUEUE),
            priority_class: label(PRIORITY_CLASS),
            spec,
            kind,
            fingerprint: kind.fingerprint(spec),
        }
    }

    /// All replicas: workers by number, then those of the other roles.
    pub fn replicas(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        let counts = ReplicaType::ALL.map(|replica_type| (replica_type, self.count(replica_type)));
        let ids = |(replica_type, count)| (0..count).map(move |index| ReplicaId { replica_type, index });
        counts.into_iter().flat_map(ids)
    }

    /// How many replicas a role has.
    pub fn count(&self, replica_type: ReplicaType) -> u32 {
        match replica_type {
            ReplicaType::Worker => self.spec.workers,
            ReplicaType::ParameterServer => self.spec.parameter_servers,
            ReplicaType::Chief | ReplicaType::Evaluator => u32::from(self.role(replica_type).is_some()),
            ReplicaType::Launcher => u32::from(self.spec.framework == Framework::Mpi),
        }
    }

    /// How many replicas there are.
    pub fn replica_count(&self) -> u32 {
        ReplicaType::ALL.into_iter().map(|replica_type| self.count(replica_type)).sum()
    }

    /// What the spec says of a role.
    pub fn role(&self, replica_type: ReplicaType) -> Option<&'o Role> {
        self.spec.roles.iter().find(|role| role.name == replica_type)
    }

    /// How many GPUs each replica of a role has. Parameter servers compute nothing, nor does a chief that coordinates them or a
    /// launcher.
    pub fn gpus(&self, replica_type: ReplicaType) -> u32 {
        let default = match replica_type {
            ReplicaType::ParameterServer | ReplicaType::Launcher => 0,
            ReplicaType::Chief if self.spec.parameter_servers > 0 => 0,
            _ => self.spec.gpu_per_worker,
        };
        self.role(replica_type).and_then(|role| role.gpus).unwrap_or(default)
    }

    /// The replica that leads: the chief or the launcher, or else worker 0.
    pub fn chief(&self) -> ReplicaId {
        let leaders = [ReplicaType::Chief, ReplicaType::Launcher];
        let leader = leaders.into_iter().find(|leader| self.count(*leader) > 0);
        ReplicaId { replica_type: leader.unwrap_or(ReplicaType::Worker), index: 0 }
    }

    /// Whether workers go on when one of them is gone for good. Without parameter servers or elastic training, each waits for
    /// all others; `ChiefWorker` in the spec says that this job does not mind.
    pub fn tolerates_failed_workers(&self) -> bool {
        let is_given = self.spec.success_policy == Some(SuccessPolicy::ChiefWorker);
        self.success_rule() == SuccessRule::Chief && (is_given || self.spec.parameter_servers > 0)
    }

    /// The name of the container that trains.
    pub fn container(&self) -> &'static str {
        self.spec.framework.as_str()
    }

    /// The name of a replica's Pod, which is also its host name.
    pub fn pod_name(&self, replica: ReplicaId) -> String {
        format!("{}-{}-{}", self.name, self.kind.role_name(replica.replica_type), replica.index)
    }

    /// The name by which other replicas reach one.
    pub fn host_name(&self, replica: ReplicaId) -> String {
        format!("{}.{}", self.pod_name(replica), self.name)
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
            Framework::Jax => 6666,
            Framework::Mpi => SSH_PORT,
        })
    }

    /// Whether the user has suspended the job.
    pub fn is_suspended(&self) -> bool {
        self.run_policy(|policy| policy.suspend).unwrap_or_default()
    }

    /// Which failures of a role are retried.
    pub fn restart_policy(&self, replica_type: ReplicaType) -> RestartPolicy {
        self.kind.restart_policy(self.spec, replica_type)
    }

    /// Whether a retry restarts the failed worker or the whole job.
    pub fn restart_scope(&self) -> RestartScope {
        restart_scope(self.spec)
    }

    /// `spec.restartPolicy` of the Pods of a role.
    pub fn pod_restart_policy(&self, replica_type: ReplicaType) -> &'static str {
        pod_restart_policy(self.spec, self.restart_policy(replica_type))
    }

    /// How many restarts the job may have before it fails.
    pub fn backoff_limit(&self) -> u32 {
        self.run_policy(|policy| policy.backoff_limit).unwrap_or(DEFAULT_BACKOFF_LIMIT)
    }

    /// The rules for failed Pods that go before the restart policy.
    pub fn failure_rules(&self) -> &'o [PodFailureRule] {
        let policy = self.spec.run_policy.as_ref().and_then(|policy| policy.pod_failure_policy.as_ref());
        policy.map(|policy| policy.rules.as_slice()).unwrap_or_default()
    }

    /// After how many seconds of undisturbed training restarts no longer count.
    pub fn backoff_reset_seconds(&self) -> Option<u32> {
        self.run_policy(|policy| policy.backoff_reset_seconds)
    }

    /// How many times in a row the job may be disrupted before it fails.
    pub fn disruption_limit(&self) -> u32 {
        self.run_policy(|policy| policy.disruption_limit).unwrap_or(DEFAULT_DISRUPTION_LIMIT)
    }

    /// How many seconds the job may take to start.
    pub fn start_deadline_seconds(&self) -> Option<u32> {
        self.run_policy(|policy| policy.start_deadline_seconds)
    }

    /// How long a Pod that is being deleted may still exist, and what happens then.
    pub fn termination_policy(&self) -> TerminationPolicy {
        let on_timeout = self.run_policy(|policy| policy.on_termination_timeout);
        TerminationPolicy {
            timeout_seconds: self.run_policy(|policy| policy.termination_timeout_seconds),
            on_timeout: on_timeout.unwrap_or(TerminationTimeoutAction::Fail),
        }
    }

    /// After how many seconds without progress the training hangs.
    pub fn progress_deadline_seconds(&self) -> Option<u32> {
        self.run_policy(|policy| policy.progress_deadline_seconds)
    }

    /// What becomes of a training that hangs.
    pub fn on_hang(&self) -> HangAction {
        self.run_policy(|policy| policy.on_hang).unwrap_or(HangAction::Report)
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
        self.run_policy(|policy| policy.clean_pod_policy).unwrap_or(match self.spec.framework {
            // Its workers wait for a launcher and never end by themselves.
            Framework::Mpi => CleanPodPolicy::Running,
            _ => CleanPodPolicy::None,
        })
    }

    /// When the job has succeeded.
    pub fn success_rule(&self) -> SuccessRule {
        match (self.spec.success_policy, self.spec.framework) {
            (Some(SuccessPolicy::ChiefWorker), _) | (None, Framework::Tensorflow | Framework::Mpi) => {
                SuccessRule::Chief
            }
            (Some(SuccessPolicy::AllWorkers), _) => SuccessRule::All,
            (None, Framework::Pytorch) if self.count(ReplicaType::Chief) > 0 => SuccessRule::Chief,
            (None, Framework::Pytorch) if self.spec.elastic.is_some() => SuccessRule::Any,
            (None, Framework::Pytorch | Framework::Jax) => SuccessRule::All,
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
}
