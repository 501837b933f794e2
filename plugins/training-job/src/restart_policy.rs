//! The restart policy and scope of a spec, with the defaults of its framework. It reads the spec and nothing else.

use crate::api::{Framework, RestartPolicy, RestartScope, TrainingJobSpec};

/// Which failures are retried.
pub fn restart_policy(spec: &TrainingJobSpec) -> RestartPolicy {
    let given = spec.run_policy.as_ref().and_then(|policy| policy.restart_policy);
    given.unwrap_or(match spec.framework {
        Framework::Pytorch => RestartPolicy::OnFailure,
        Framework::Tensorflow => RestartPolicy::Never,
    })
}

/// Whether a retry restarts the failed worker or the whole job.
pub fn restart_scope(spec: &TrainingJobSpec) -> RestartScope {
    let given = spec.run_policy.as_ref().and_then(|policy| policy.restart_scope);
    given.unwrap_or(match spec.framework {
        // Without elastic training, PyTorch workers block in a collective operation as soon as one of them is gone.
        Framework::Pytorch if spec.elastic.is_none() => RestartScope::Job,
        _ => RestartScope::Worker,
    })
}

/// `spec.restartPolicy` of the Pods: which containers the kubelet restarts by itself.
///
/// The plugin sees no failure that the kubelet repairs within a Pod. So the kubelet restarts containers only where one
/// worker may restart without the others, or where the user wants containers to run for ever.
pub fn pod_restart_policy(spec: &TrainingJobSpec) -> &'static str {
    match (restart_policy(spec), restart_scope(spec)) {
        (RestartPolicy::Always, _) => "Always",
        (RestartPolicy::OnFailure, RestartScope::Worker) => "OnFailure",
        _ => "Never",
    }
}
