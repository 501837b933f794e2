//! The restart policy and scope of a spec, with the defaults of its framework. It reads the spec and nothing else.

use crate::api::{Framework, RestartPolicy, RestartScope, TrainingJobSpec};

/// Which failures are retried.
pub fn restart_policy(spec: &TrainingJobSpec) -> RestartPolicy {
    let given = spec.run_policy.as_ref().and_then(|policy| policy.restart_policy);
    given.unwrap_or(match spec.framework {
        Framework::Tensorflow => RestartPolicy::Never,
        Framework::Pytorch | Framework::Jax | Framework::Mpi => RestartPolicy::OnFailure,
    })
}

/// Whether a retry restarts the failed worker or the whole job.
pub fn restart_scope(spec: &TrainingJobSpec) -> RestartScope {
    let given = spec.run_policy.as_ref().and_then(|policy| policy.restart_scope);
    given.unwrap_or(match spec.framework {
        Framework::Pytorch if spec.elastic.is_some() => RestartScope::Worker,
        // Parameters outlive the worker, and another one may go on with them.
        Framework::Tensorflow if spec.parameter_servers > 0 => RestartScope::Worker,
        // Workers block in a collective operation as soon as one of them is gone.
        _ => RestartScope::Job,
    })
}

/// `spec.restartPolicy` of the Pods: which containers the kubelet restarts by itself.
///
/// The plugin sees no failure that the kubelet repairs within a Pod. So the kubelet restarts containers only where one
/// worker may restart without the others, and where no rule has to judge the failure first.
pub fn pod_restart_policy(spec: &TrainingJobSpec, restart_policy: RestartPolicy) -> &'static str {
    let run_policy = spec.run_policy.as_ref();
    let has_rules =
        run_policy.and_then(|policy| policy.pod_failure_policy.as_ref()).is_some_and(|it| !it.rules.is_empty());
    match (restart_policy, restart_scope(spec)) {
        _ if has_rules => "Never",
        (RestartPolicy::Always, RestartScope::Worker) => "Always",
        (RestartPolicy::OnFailure, RestartScope::Worker) => "OnFailure",
        _ => "Never",
    }
}
