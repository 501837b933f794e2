//! The kind `TrainingJob`: its names, labels, Pods and the children beside those. It decides nothing about a job.

use crate::api::{CleanPodPolicy, ReplicaType, RestartPolicy, TrainingJobSpec};
use crate::children::{config_maps, labels, mpi, pod, pod::PodTemplate, service};
use crate::desired_child::DesiredChild;
use crate::fingerprint::fingerprint;
use crate::job::{Job, JobChildren, JobKind, ReplicaId};
use crate::restart_policy::restart_policy;
use crate::validate::validate;
use pilothouse_sdk::Error;
use serde_json::Value;

/// `TrainingJob`.
#[derive(Debug)]
pub struct TrainingJobKind;

impl JobKind for TrainingJobKind {
    fn role_name(&self, replica_type: ReplicaType) -> &'static str {
        replica_type.as_str()
    }

    fn restart_policy(&self, spec: &TrainingJobSpec, _: ReplicaType) -> RestartPolicy {
        restart_policy(spec)
    }

    fn fingerprint(&self, spec: &TrainingJobSpec) -> String {
        fingerprint(spec)
    }

    fn validate(&self, job: &Job<'_>) -> Result<(), Box<dyn std::error::Error>> {
        Ok(validate(job)?)
    }

    fn labels(&self, job: &Job<'_>) -> Value {
        labels::of_job(job)
    }

    fn found_by(&self, job: &Job<'_>, replica: ReplicaId) -> Vec<(&'static str, String)> {
        labels::found_by(job, replica.replica_type)
    }

    fn resources(&self, job: &Job<'_>, replica_type: ReplicaType) -> Value {
        pod::resources(job, replica_type)
    }

    fn children<'j>(&'j self, job: &'j Job<'j>) -> Box<dyn JobChildren + 'j> {
        Box::new(PodTemplate::of(job))
    }

    fn remaining_services(&self, job: &Job<'_>, policy: CleanPodPolicy, _: &[&str]) -> Vec<String> {
        if policy == CleanPodPolicy::None { vec![job.name.to_owned()] } else { Vec::new() }
    }
}

impl JobChildren for PodTemplate<'_, '_> {
    fn pod(&self, replica: ReplicaId) -> Value {
        Self::pod(self, replica)
    }

    fn others(&self, existing: &[&str]) -> Result<Vec<DesiredChild>, Error> {
        let job = self.job();
        let mut list = vec![DesiredChild::applied(&service::service(job))];
        list.extend(config_maps::hyperparameters(job).as_ref().map(DesiredChild::applied));
        list.extend(self.config_map().as_ref().map(DesiredChild::applied));
        list.extend(mpi::hostfile(job).as_ref().map(DesiredChild::applied));
        list.extend(config_maps::snapshots(job, existing)?);
        Ok(list)
    }
}
