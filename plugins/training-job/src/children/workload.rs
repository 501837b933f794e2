//! The Workload by which a job with a queue asks Kueue for its quota: what the Pods of each role need together, and how many there are. It
//! never says which job comes first, and never how many may run: Kueue does. Why a Workload and no group of Pods: decision 20.

use super::{labels, pod};
use crate::api::ReplicaType;
use crate::desired_child::DesiredChild;
use crate::job::{Job, JobChildren, ReplicaId};
use pilothouse_pods::hash::{FNV_OFFSET_BASIS, fnv_1a};
use pilothouse_pods::observed_pod::{ObservedPod, PodPhase};
use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The annotation with the fingerprint of what the Workload asks for.
const ASKS_FOR: &str = "ml.example.com/asks-for";

/// A Workload: what Kueue says of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Workload {
    metadata: Metadata,
    spec: WorkloadSpec,
    status: WorkloadStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WorkloadSpec {
    /// Somebody, or Kueue itself, may put a Workload aside.
    active: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    annotations: BTreeMap<String, String>,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WorkloadStatus {
    conditions: Vec<WorkloadCondition>,
    admission: Option<KueueAdmission>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WorkloadCondition {
    r#type: String,
    status: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KueueAdmission {
    pod_set_assignments: Vec<PodSetAssignment>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodSetAssignment {
    name: String,
    flavors: BTreeMap<String, String>,
}

impl Kind for Workload {
    const API_VERSION: &'static str = "kueue.x-k8s.io/v1beta1";
    const KIND: &'static str = "Workload";
}

impl Workload {
    fn condition(&self, condition_type: &str) -> Option<&WorkloadCondition> {
        self.status.conditions.iter().find(|condition| condition.r#type == condition_type)
    }

    fn is(&self, condition_type: &str) -> bool {
        self.condition(condition_type).is_some_and(|condition| condition.status == "True")
    }
}

/// Nodes of one kind, as Kueue knows them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResourceFlavor {
    spec: FlavorSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FlavorSpec {
    node_labels: Map<String, Value>,
    tolerations: Vec<Value>,
}

impl Kind for ResourceFlavor {
    const API_VERSION: &'static str = "kueue.x-k8s.io/v1beta1";
    const KIND: &'static str = "ResourceFlavor";
}

/// A priority by name, as Kueue has it.
#[derive(Debug, Default, Deserialize)]
pub struct WorkloadPriorityClass {
    value: i64,
}

impl Kind for WorkloadPriorityClass {
    const API_VERSION: &'static str = "kueue.x-k8s.io/v1beta1";
    const KIND: &'static str = "WorkloadPriorityClass";
}

/// Whether a job has the quota that it needs.
#[derive(Debug)]
pub enum Quota {
    /// It has no queue, and needs none.
    NotAsked,
    /// Kueue is not installed.
    NotInstalled,
    /// The job names a priority class that does not exist.
    NoPriorityClass,
    /// It waits, and this is why.
    Pending(String),
    /// It has it, on nodes of these flavors by role.
    Granted(BTreeMap<String, BTreeSet<String>>),
    /// It has to give it back, or needs another one now.
    Lost(String),
}

/// The quota of a job that has a Workload or not, and Pods or not. A job in a queue has no Pods without quota, whatever became of its
/// Workload or of its labels since they were made.
///
/// # Errors
/// A lookup fails.
pub fn quota(job: &Job<'_>, has_workload: bool, has_pods: bool) -> Result<Quota, Error> {
    if job.queue.is_none() {
        let left = || Quota::Lost("the job has left its queue".to_owned());
        return Ok(if has_workload { left() } else { Quota::NotAsked });
    }
    Ok(match quota_in_queue(job, has_workload)? {
        Quota::Pending(why) if has_pods && why.is_empty() => Quota::Lost("the job has no quota".to_owned()),
        Quota::Pending(why) if has_pods => Quota::Lost(format!("the job has no quota: {why}")),
        Quota::NoPriorityClass if has_pods => Quota::Lost("the job has no quota".to_owned()),
        quota => quota,
    })
}

/// A Workload of somebody else by the job's name says nothing of the job.
fn quota_in_queue(job: &Job<'_>, has_workload: bool) -> Result<Quota, Error> {
    let workload = match lookup::get::<Workload>(None, &name(job.name)) {
        Ok(workload) => workload,
        Err(Error::KindNotInstalled(_)) => return Ok(Quota::NotInstalled),
        Err(error) => return Err(error),
    };
    Ok(match workload {
        Some(workload) if has_workload => of_workload(job, &workload),
        _ if priority(job)?.is_none() => Quota::NoPriorityClass,
        _ => Quota::Pending(String::new()),
    })
}

fn of_workload(job: &Job<'_>, workload: &Workload) -> Quota {
    if workload.metadata.deletion_timestamp.is_some() {
        return Quota::Pending("the quota of before is being given back".to_owned());
    }
    if workload.spec.active == Some(false) {
        return Quota::Pending("its Workload is not active".to_owned());
    }
    if workload.is("Evicted") {
        let message = workload.condition("Evicted").map(|evicted| evicted.message.clone()).unwrap_or_default();
        return Quota::Lost(format!("Kueue takes the quota back: {message}"));
    }
    if workload.metadata.annotations.get(ASKS_FOR) != Some(&fingerprint(job)) {
        return Quota::Lost("the job needs another quota than it has".to_owned());
    }
    if !workload.is("Admitted") {
        let reserved = workload.condition("QuotaReserved");
        return Quota::Pending(reserved.map(|reserved| reserved.message.clone()).unwrap_or_default());
    }
    let assignments = workload.status.admission.iter().flat_map(|admission| &admission.pod_set_assignments);
    let flavors = |assignment: &PodSetAssignment| assignment.flavors.values().cloned().collect();
    Quota::Granted(assignments.map(|assignment| (assignment.name.clone(), flavors(assignment))).collect())
}

/// The name of the Workload of a job. Kueue gives those of its own jobs names with a hash at the end.
fn name(job: &str) -> String {
    format!("trainingjob-{job}")
}

/// The Workload of the job of this name, to be kept as it is.
pub fn kept(job: &str) -> DesiredChild {
    DesiredChild::kept(Workload::API_VERSION, Workload::KIND, &name(job))
}

/// The Workload of the job of this name that gives its quota back, if there is one: it stays until its Pods have ended, so that nobody is given
/// what they still use.
pub fn kept_while_used(job: &str, has_workload: bool, pods: &[ObservedPod]) -> Option<DesiredChild> {
    let still_runs = |pod: &ObservedPod| matches!(pod.phase(), PodPhase::Pending | PodPhase::Running);
    (has_workload && pods.iter().any(still_runs)).then(|| kept(job))
}

/// The desired Workload, if the job has a queue.
///
/// # Errors
/// A lookup fails.
pub fn workload(job: &Job<'_>, template: &dyn JobChildren) -> Result<Option<Value>, Error> {
    let (Some(queue), Some(priority)) = (job.queue, priority(job)?) else { return Ok(None) };
    let mut spec = json!({ "queueName": queue, "podSets": pod_sets(job, template), "priority": priority });
    if let Some(class) = job.priority_class {
        spec["priorityClassName"] = json!(class);
        spec["priorityClassSource"] = json!("kueue.x-k8s.io/workloadpriorityclass");
    }
    let annotations = json!({ ASKS_FOR: fingerprint(job) });
    Ok(Some(json!({
        "apiVersion": Workload::API_VERSION,
        "kind": Workload::KIND,
        "metadata": { "name": name(job.name), "labels": labels::of_job(job), "annotations": annotations },
        "spec": spec,
    })))
}

/// The Pods of each role. Kueue counts the requests of their containers, and looks at where they may run.
fn pod_sets(job: &Job<'_>, template: &dyn JobChildren) -> Vec<Value> {
    let roles = ReplicaType::ALL.into_iter().map(|replica_type| (replica_type, job.count(replica_type)));
    let pod_set = |(replica_type, count): (ReplicaType, u32)| {
        let mut spec = template.pod(ReplicaId { replica_type, index: 0 })["spec"].take();
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            pod::complete_requests(container);
        }
        json!({ "name": replica_type.as_str(), "count": count, "template": { "spec": spec } })
    };
    roles.filter(|(_, count)| *count > 0).map(pod_set).collect()
}

/// Sends a Pod to the nodes that Kueue has chosen for its role.
///
/// # Errors
/// A lookup fails.
pub fn place(pod: &mut Value, flavors: &BTreeSet<String>) -> Result<(), Error> {
    for name in flavors {
        let flavor = lookup::get::<ResourceFlavor>(None, name)?.unwrap_or_default().spec;
        for (label, value) in flavor.node_labels {
            pod["spec"]["nodeSelector"][label] = value;
        }
        if !flavor.tolerations.is_empty() {
            let mut all = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
            all.extend(
                flavor.tolerations.into_iter().filter(|toleration| !all.contains(toleration)).collect::<Vec<_>>(),
            );
            pod["spec"]["tolerations"] = json!(all);
        }
    }
    Ok(())
}

/// The priority of a job in its queue; none if its class does not exist.
fn priority(job: &Job<'_>) -> Result<Option<i64>, Error> {
    match job.priority_class {
        None => Ok(Some(0)),
        Some(class) => Ok(lookup::get::<WorkloadPriorityClass>(None, class)?.map(|class| class.value)),
    }
}

/// The fingerprint of what a job asks for. A Workload that has its quota cannot change.
fn fingerprint(job: &Job<'_>) -> String {
    let asks = json!([job.queue, job.priority_class, job.spec.workers, job.fingerprint]);
    format!("{:016x}", fnv_1a(FNV_OFFSET_BASIS, asks.to_string().as_bytes()))
}
