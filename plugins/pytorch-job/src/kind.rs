//! The kind `PyTorchJob`: its names, labels, Pods and the children beside those, as the training operator makes them. It decides nothing
//! about a job.

use crate::api::PyTorchJobSpec;
use crate::children::{hpa, labels, pod, service};
use crate::config::Config;
use crate::validate::validate;
use pilothouse_pods::hash::{FNV_OFFSET_BASIS, fnv_1a};
use pilothouse_sdk::Error;
use serde_json::{Map, Value, json};
use training_job::api::{CleanPodPolicy, ReplicaType, RestartPolicy, TrainingJobSpec};
use training_job::{DesiredChild, Job, JobChildren, JobKind, ReplicaId};

/// A `PyTorchJob`, and what the plugin is configured to add.
#[derive(Debug)]
pub struct PyTorchJobKind<'o> {
    /// What the user asks for.
    pub spec: &'o PyTorchJobSpec,
    /// The configuration.
    pub config: &'o Config,
}

impl JobKind for PyTorchJobKind<'_> {
    fn role_name(&self, replica_type: ReplicaType) -> &'static str {
        if replica_type == ReplicaType::Chief { "master" } else { replica_type.as_str() }
    }

    fn restart_policy(&self, _: &TrainingJobSpec, replica_type: ReplicaType) -> RestartPolicy {
        self.spec.replica_spec(replica_type).map_or(RestartPolicy::OnFailure, |spec| spec.restart_policy())
    }

    fn fingerprint(&self, _: &TrainingJobSpec) -> String {
        let mut spec = json!(self.spec);
        // No Pod is made from these, nor from the number of workers of an elastic job.
        spec["runPolicy"].take();
        spec["elasticPolicy"]["metrics"].take();
        if self.spec.elastic_policy.is_some() {
            for replica_spec in
                spec["pytorchReplicaSpecs"].as_object_mut().into_iter().flat_map(|specs| specs.values_mut())
            {
                replica_spec["replicas"].take();
            }
        }
        format!("{:016x}", fnv_1a(FNV_OFFSET_BASIS, spec.to_string().as_bytes()))
    }

    fn validate(&self, job: &Job<'_>) -> Result<(), Box<dyn std::error::Error>> {
        Ok(validate(job, self.spec)?)
    }

    fn labels(&self, job: &Job<'_>) -> Value {
        labels::of_job(job)
    }

    fn found_by(&self, job: &Job<'_>, replica: ReplicaId) -> Vec<(&'static str, String)> {
        labels::found_by(job, replica)
    }

    fn resources(&self, _: &Job<'_>, replica_type: ReplicaType) -> Value {
        let container = self.spec.replica_spec(replica_type).and_then(|spec| spec.container());
        container.map(|container| container["resources"].clone()).unwrap_or_default()
    }

    fn min_resources(&self) -> Option<&Map<String, Value>> {
        self.spec.run_policy.scheduling_policy.as_ref()?.min_resources.as_ref()
    }

    fn children<'j>(&'j self, job: &'j Job<'j>) -> Box<dyn JobChildren + 'j> {
        Box::new(PyTorchChildren { kind: self, job })
    }

    /// A Service goes with its Pod.
    fn remaining_services(&self, job: &Job<'_>, policy: CleanPodPolicy, pods: &[&str]) -> Vec<String> {
        match policy {
            CleanPodPolicy::None => job.replicas().map(|replica| job.pod_name(replica)).collect(),
            CleanPodPolicy::Running => pods.iter().map(|pod| (*pod).to_owned()).collect(),
            CleanPodPolicy::All => Vec::new(),
        }
    }
}

struct PyTorchChildren<'j> {
    kind: &'j PyTorchJobKind<'j>,
    job: &'j Job<'j>,
}

impl JobChildren for PyTorchChildren<'_> {
    fn pod(&self, replica: ReplicaId) -> Value {
        pod::pod(self.job, self.kind.spec, self.kind.config, replica)
    }

    fn others(&self, _: &[&str]) -> Result<Vec<DesiredChild>, Error> {
        let services = self.job.replicas().map(|replica| service::service(self.job, self.kind.spec, replica));
        let autoscaler = hpa::hpa(self.job, self.kind.spec);
        Ok(services.chain(autoscaler).map(|child| DesiredChild::applied(&child)).collect())
    }
}
