//! The PodGroup of a job: the Pods that a gang scheduler starts together. It is of one scheduler's kind, and only returned
//! where that kind is installed.

use super::quantity::multiply;
use crate::api::{GangScheduler, GangScheduling, ReplicaType};
use crate::job::Job;
use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A PodGroup of Volcano: the field that says whether it is admitted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolcanoPodGroup {
    status: VolcanoPodGroupStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VolcanoPodGroupStatus {
    phase: String,
}

impl Kind for VolcanoPodGroup {
    const API_VERSION: &'static str = "scheduling.volcano.sh/v1beta1";
    const KIND: &'static str = "PodGroup";
}

/// A PodGroup of scheduler-plugins, of which only its kind matters: whether it is installed.
#[derive(Debug, Deserialize)]
pub struct SchedulerPluginsPodGroup {}

impl Kind for SchedulerPluginsPodGroup {
    const API_VERSION: &'static str = "scheduling.x-k8s.io/v1alpha1";
    const KIND: &'static str = "PodGroup";
}

/// Whether the gang scheduler lets the Pods of a job be created.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// It does, or the job has no gang scheduler.
    Admitted,
    /// It has not admitted the PodGroup yet.
    Pending,
    /// Its PodGroup kind, named here, is not installed.
    NotInstalled(&'static str),
}

/// Whether the gang scheduler of a job is installed and admits its Pods.
///
/// # Errors
/// The lookup of the PodGroup fails.
pub fn admission(job: &Job<'_>) -> Result<Admission, Error> {
    Ok(match job.spec.gang_scheduling.as_ref().map(|gang| gang.scheduler) {
        None => Admission::Admitted,
        Some(GangScheduler::Volcano) => match look_up::<VolcanoPodGroup>(job)? {
            PodGroup::KindNotInstalled => Admission::NotInstalled("scheduling.volcano.sh/v1beta1 PodGroup"),
            PodGroup::Missing => Admission::Pending,
            // Volcano admits a PodGroup when its queue has room. Pods that exist earlier would only wait.
            PodGroup::Found(group) => match group.status.phase.as_str() {
                "" | "Pending" => Admission::Pending,
                _ => Admission::Admitted,
            },
        },
        Some(GangScheduler::SchedulerPlugins) => match look_up::<SchedulerPluginsPodGroup>(job)? {
            PodGroup::KindNotInstalled => Admission::NotInstalled("scheduling.x-k8s.io/v1alpha1 PodGroup"),
            // The coscheduling plugin needs the Pods to decide about a PodGroup.
            PodGroup::Missing | PodGroup::Found(_) => Admission::Admitted,
        },
    })
}

/// The desired PodGroup, if the job has a gang scheduler.
pub fn pod_group(job: &Job<'_>) -> Option<Value> {
    let gang = job.spec.gang_scheduling.as_ref()?;
    let min_member = min_member(job, gang);
    let mut spec = json!({ "minMember": min_member });
    let given = job.kind.min_resources().cloned();
    let min_resources = given.unwrap_or_else(|| min_resources(job, min_member));
    if !min_resources.is_empty() {
        spec["minResources"] = Value::Object(min_resources);
    }
    let api_version = match gang.scheduler {
        GangScheduler::Volcano => {
            spec["queue"] = json!(gang.queue.as_deref().unwrap_or("default"));
            if let Some(class) = &job.spec.priority_class_name {
                spec["priorityClassName"] = json!(class);
            }
            VolcanoPodGroup::API_VERSION
        }
        GangScheduler::SchedulerPlugins => {
            if let Some(seconds) = gang.schedule_timeout_seconds {
                spec["scheduleTimeoutSeconds"] = json!(seconds);
            }
            SchedulerPluginsPodGroup::API_VERSION
        }
    };
    let metadata = json!({ "name": job.name, "labels": job.kind.labels(job) });
    Some(json!({ "apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec }))
}

/// What a lookup of the job's PodGroup found.
enum PodGroup<K> {
    KindNotInstalled,
    Missing,
    Found(K),
}

fn look_up<K: Kind + DeserializeOwned>(job: &Job<'_>) -> Result<PodGroup<K>, Error> {
    match lookup::get::<K>(None, job.name) {
        Ok(Some(group)) => Ok(PodGroup::Found(group)),
        Ok(None) => Ok(PodGroup::Missing),
        Err(Error::KindNotInstalled(_)) => Ok(PodGroup::KindNotInstalled),
        Err(error) => Err(error),
    }
}

fn min_member(job: &Job<'_>, gang: &GangScheduling) -> u32 {
    let elastic = job.spec.elastic.as_ref();
    // A launcher is created once the workers run, so they must not wait for it.
    let all_at_first = job.replica_count() - job.count(ReplicaType::Launcher);
    let default = elastic.map_or(all_at_first, |elastic| elastic.min_workers);
    gang.min_member.unwrap_or(default).min(all_at_first)
}

/// The resources that so many replicas need together: the workers first, then those of the other roles. A resource of which roles
/// need different amounts is left out, for quantities in different units do not add up; the scheduler sees it on the Pods.
fn min_resources(job: &Job<'_>, replicas: u32) -> Map<String, Value> {
    let mut left = replicas;
    let mut total = BTreeMap::<String, (Value, u32)>::new();
    let mut unequal = BTreeSet::new();
    for replica_type in ReplicaType::ALL {
        let count = job.count(replica_type).min(left);
        left -= count;
        if count == 0 {
            continue;
        }
        for (name, quantity) in effective_requests(job, replica_type) {
            let (of_others, sum) = total.entry(name.clone()).or_insert_with(|| (quantity.clone(), 0));
            *sum += count;
            if *of_others != quantity {
                unequal.insert(name);
            }
        }
    }
    let equal = total.into_iter().filter(|(name, _)| !unequal.contains(name));
    equal.map(|(name, (quantity, count))| (name, multiply(&quantity, count))).collect()
}

/// The requests of one replica, with its limits for resources without a request, as the API server fills them in.
fn effective_requests(job: &Job<'_>, replica_type: ReplicaType) -> Map<String, Value> {
    let resources = job.kind.resources(job, replica_type);
    let quantities = |field| resources.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut requests = quantities("limits");
    requests.extend(quantities("requests"));
    requests
}
