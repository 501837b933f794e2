//! Whether a job runs, and whether it has ended by itself with success. Pure.

use crate::api::ReplicaType;
use crate::failure::{Treatment, is_decisive, treatment};
use crate::job::{Job, SuccessRule};
use crate::replicas::{Replica, ReplicaState, Replicas};

/// Why the job has succeeded, if it has.
pub fn success(job: &Job<'_>, replicas: &Replicas<'_>) -> Option<String> {
    let has_succeeded = |replica: &Replica<'_>| replica.state == ReplicaState::Succeeded;
    let trainers = || replicas.all.iter().filter(|replica| is_trainer(replica));
    match job.success_rule() {
        SuccessRule::Chief => {
            let chief = replicas.get(job.chief()).filter(|chief| has_succeeded(chief))?;
            Some(format!("{} {} has succeeded", job.kind.role_name(chief.id.replica_type), chief.id.index))
        }
        SuccessRule::All => {
            trainers().all(has_succeeded).then(|| format!("{} workers have succeeded", trainers().count()))
        }
        SuccessRule::Any => {
            let first = trainers().find(|worker| has_succeeded(worker))?;
            Some(format!("{} {} has succeeded", job.kind.role_name(first.id.replica_type), first.id.index))
        }
    }
}

/// Whether one of the replicas that decide about the job runs, as the condition `Running` of Kubeflow's operator means it.
pub fn is_running(job: &Job<'_>, replicas: &Replicas<'_>) -> bool {
    let is_running = |replica: &Replica<'_>| replica.state == ReplicaState::Running;
    match job.success_rule() {
        SuccessRule::Chief => replicas.get(job.chief()).is_some_and(is_running),
        SuccessRule::All | SuccessRule::Any => replicas.workers().any(is_running),
    }
}

/// Whether all replicas run that the job needs to get on. An elastic job needs the smallest number of its workers; failures that are
/// tolerated are not waited for.
pub fn runs_fully(job: &Job<'_>, replicas: &Replicas<'_>) -> bool {
    let is_running_or_done = |replica: &&Replica<'_>| replica.runs || replica.state == ReplicaState::Succeeded;
    let has_failed_for_good = |replica: &Replica<'_>| {
        let is_final =
            replica.pod.is_some_and(|pod| treatment(job, replica.id.replica_type, pod) == Treatment::FailJob);
        replica.state == ReplicaState::Failed && is_final && !is_decisive(job, replica)
    };
    let is_needed = |replica: &&Replica<'_>| !has_failed_for_good(replica);
    match &job.spec.elastic {
        Some(elastic) => replicas.workers().filter(is_running_or_done).count() >= elastic.min_workers as usize,
        None => {
            let some_run = replicas.all.iter().any(|replica| replica.runs);
            some_run && replicas.all.iter().filter(is_needed).all(|replica| is_running_or_done(&replica))
        }
    }
}

/// Names of replicas with their exit codes: `mnist-worker-1 (exit code 137), mnist-worker-2 and 3 more`.
pub fn list_with_exit_codes(job: &Job<'_>, replicas: &[&Replica<'_>]) -> String {
    const SHOWN: usize = 5;
    let shown = replicas.iter().take(SHOWN).map(|replica| match exit_code(job, replica) {
        Some(code) => format!("{} (exit code {code})", replica.pod_name),
        None => replica.pod_name.clone(),
    });
    let list = shown.collect::<Vec<_>>().join(", ");
    match replicas.len().saturating_sub(SHOWN) {
        0 => list,
        more => format!("{list} and {more} more"),
    }
}

/// Whether a replica trains: a worker, or a chief beside workers.
fn is_trainer(replica: &Replica<'_>) -> bool {
    matches!(replica.id.replica_type, ReplicaType::Worker | ReplicaType::Chief)
}

fn exit_code(job: &Job<'_>, replica: &Replica<'_>) -> Option<i32> {
    replica.pod.and_then(|pod| pod.exit_code(job.container()))
}
