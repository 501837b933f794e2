//! A job as the rest of the plugin asks about it: the spec with what it means where it says nothing. It reads nothing else.

use crate::TrainingJob;
use crate::api::{CleanPodPolicy, Framework, RestartPolicy, RestartScope, RunPolicy, SuccessPolicy, TrainingJobSpec};
use crate::fingerprint::fingerprint;
use crate::restart_policy::{pod_restart_policy, restart_policy, restart_scope};

/// How many restarts there may be if the job does not say it.
const BACKOFF_LIMIT: u32 = 6;

/// What a member of the job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It trains.
    Worker,
    /// It holds parameters for the workers.
    ParameterServer,
}

/// When a job has succeeded, elastic ones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessRule {
    /// Worker 0 has.
    Chief,
    /// All workers have.
    All,
    /// One worker has.
    Any,
}

/// A job: names, and the spec with its defaults.
#[derive(Debug)]
pub struct Job<'o> {
    /// Its name.
    pub name: &'o str,
    /// Its namespace.
    pub namespace: &'o str,
    /// What the user asks for.
    pub spec: &'o TrainingJobSpec,
    /// Names the form of its Pods: another one means other Pods.
    pub fingerprint: String,
}

impl<'o> Job<'o> {
    /// The job that an object is.
    pub fn of(object: &'o TrainingJob) -> Self {
        let spec = &object.spec;
        Self { name: object.name(), namespace: object.namespace(), spec, fingerprint: fingerprint(spec) }
    }

    /// All members: workers by number, then parameter servers.
    pub fn members(&self) -> impl Iterator<Item = (Role, u32)> + use<> {
        let workers = (0..self.spec.workers).map(|index| (Role::Worker, index));
        workers.chain((0..self.spec.parameter_servers).map(|index| (Role::ParameterServer, index)))
    }

    /// How many members there are.
    pub fn size(&self) -> u32 {
        self.spec.workers + self.spec.parameter_servers
    }

    /// The name of a member's Pod, which is also its host name.
    pub fn pod_name(&self, role: Role, index: u32) -> String {
        format!("{}-{}-{index}", self.name, role.word())
    }

    /// The name of an object that belongs to the job as a whole.
    pub fn child_name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.name)
    }

    /// The port on which members meet.
    pub fn port(&self) -> u32 {
        self.spec.port.unwrap_or(match self.spec.framework {
            Framework::Pytorch => 29500,
            Framework::Tensorflow => 2222,
        })
    }

    /// Whether the job shall not run for now.
    pub fn is_suspended(&self) -> bool {
        self.run_policy(|policy| policy.suspend).unwrap_or_default()
    }

    /// Which failures are retried.
    pub fn restart_policy(&self) -> RestartPolicy {
        restart_policy(self.spec)
    }

    /// What a retry restarts.
    pub fn restart_scope(&self) -> RestartScope {
        restart_scope(self.spec)
    }

    /// The restart policy of the Pods: what the kubelet does without asking.
    pub fn pod_restart_policy(&self) -> &'static str {
        pod_restart_policy(self.spec)
    }

    /// How many restarts there may be.
    pub fn backoff_limit(&self) -> u32 {
        self.run_policy(|policy| policy.backoff_limit).unwrap_or(BACKOFF_LIMIT)
    }

    /// How many seconds the job may run.
    pub fn deadline(&self) -> Option<u32> {
        self.run_policy(|policy| policy.active_deadline_seconds)
    }

    /// How many seconds after its end what it made is removed.
    pub fn time_to_live(&self) -> Option<u32> {
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

impl Role {
    /// As it is in names and labels.
    pub fn word(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::ParameterServer => "ps",
        }
    }
}
