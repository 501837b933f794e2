//! A `PyTorchJob` as a `TrainingJob`: the same numbers, limits and policies. What its Pods look like is said elsewhere.

use crate::api::{PyTorchJob, PyTorchJobSpec};
use crate::config::Config;
use pilothouse_sdk::{Metadata, Object};
use training_job::TrainingJob;
use training_job::api::{
    CleanPodPolicy, Elastic, Framework, GangScheduling, ReplicaType, RestartScope, Role, RunPolicy, TrainingJobSpec,
};

/// The `TrainingJob`. It has no labels: those of Kueue's queues are for Kueue, which knows `PyTorchJob` itself.
pub fn training_job(object: &PyTorchJob, config: &Config) -> TrainingJob {
    let Metadata { name, namespace, uid, .. } = object.metadata.clone();
    Object {
        metadata: Metadata { name, namespace, uid, ..Metadata::default() },
        spec: spec(&object.spec, config),
        status: None,
    }
}

fn spec(spec: &PyTorchJobSpec, config: &Config) -> TrainingJobSpec {
    let elastic = spec.elastic_bounds().map(|(min_workers, max_workers)| Elastic {
        min_workers,
        max_workers,
        max_restarts: None,
        rendezvous_conf: std::collections::BTreeMap::new(),
    });
    let scheduling = spec.run_policy.scheduling_policy.clone().unwrap_or_default();
    let gang = config.gang_scheduler.map(|scheduler| GangScheduling {
        scheduler,
        scheduler_name: None,
        min_member: scheduling.min_available,
        queue: scheduling.queue.clone(),
        schedule_timeout_seconds: scheduling.schedule_timeout_seconds,
    });
    TrainingJobSpec {
        framework: Framework::Pytorch,
        workers: spec.count(ReplicaType::Worker),
        roles: spec.has_master().then(master).into_iter().collect(),
        elastic,
        gang_scheduling: gang,
        priority_class_name: scheduling.priority_class,
        run_policy: Some(run_policy(spec)),
        ..TrainingJobSpec::default()
    }
}

fn master() -> Role {
    Role {
        name: ReplicaType::Chief,
        image: None,
        command: Vec::new(),
        args: Vec::new(),
        resources: None,
        gpus: None,
        pod_template: None,
    }
}

fn run_policy(spec: &PyTorchJobSpec) -> RunPolicy {
    let given = &spec.run_policy;
    RunPolicy {
        // Each replica is restarted alone, most by the kubelet.
        restart_scope: Some(RestartScope::Worker),
        backoff_limit: Some(given.backoff_limit.unwrap_or(u32::MAX)),
        active_deadline_seconds: given.active_deadline_seconds,
        clean_pod_policy: Some(match given.clean_pod_policy.as_deref() {
            Some("All") => CleanPodPolicy::All,
            Some("Running") => CleanPodPolicy::Running,
            _ => CleanPodPolicy::None,
        }),
        suspend: given.suspend,
        ..RunPolicy::default()
    }
}
