//! The group of Pods that a gang scheduler starts together. Only one scheduler's kind is ever returned, and only where it
//! is installed.

use super::{labels, pod, quantity::times};
use crate::api::{GangScheduler, GangScheduling};
use crate::job::{Job, Role};
use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Volcano's group, as far as it tells how it is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Volcano {
    status: GroupStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupStatus {
    phase: String,
}

impl Kind for Volcano {
    const API_VERSION: &'static str = "scheduling.volcano.sh/v1beta1";
    const KIND: &'static str = "PodGroup";
}

/// The scheduler-plugins' group, of which it only matters that its kind is there.
#[derive(Debug, Deserialize)]
pub struct Coscheduling {}

impl Kind for Coscheduling {
    const API_VERSION: &'static str = "scheduling.x-k8s.io/v1alpha1";
    const KIND: &'static str = "PodGroup";
}

/// Whether a job's Pods can be made.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// They can.
    Open,
    /// The scheduler has not let the group in yet.
    Held,
    /// The scheduler's kind, which is named, is not installed.
    NotInstalled(&'static str),
}

/// Whether a job's scheduler is there and lets its Pods be made.
///
/// # Errors
/// The group cannot be looked up.
pub fn admission(job: &Job<'_>) -> Result<Admission, Error> {
    match job.spec.gang_scheduling.as_ref().map(|gang| gang.scheduler) {
        None => Ok(Admission::Open),
        Some(GangScheduler::Volcano) => {
            // Volcano lets a group in when its queue has room; Pods before that would only wait.
            Ok(match find::<Volcano>(job)? {
                None => Admission::NotInstalled("scheduling.volcano.sh/v1beta1 PodGroup"),
                Some(Some(group)) if !matches!(&*group.status.phase, "" | "Pending") => Admission::Open,
                Some(_) => Admission::Held,
            })
        }
        Some(GangScheduler::SchedulerPlugins) => Ok(match find::<Coscheduling>(job)? {
            None => Admission::NotInstalled("scheduling.x-k8s.io/v1alpha1 PodGroup"),
            Some(_) => Admission::Open,
        }),
    }
}

/// The group that shall exist, if the job wants one.
pub fn pod_group(job: &Job<'_>) -> Option<Value> {
    let gang = job.spec.gang_scheduling.as_ref()?;
    let members = min_member(job, gang);
    let mut spec = json!({ "minMember": members });
    let least = min_resources(job, members);
    if !least.is_empty() {
        spec["minResources"] = Value::Object(least);
    }
    let api_version = match gang.scheduler {
        GangScheduler::Volcano => {
            spec["queue"] = json!(gang.queue.as_deref().unwrap_or("default"));
            if let Some(class) = &job.spec.priority_class_name {
                spec["priorityClassName"] = json!(class);
            }
            Volcano::API_VERSION
        }
        GangScheduler::SchedulerPlugins => {
            if let Some(seconds) = gang.schedule_timeout_seconds {
                spec["scheduleTimeoutSeconds"] = json!(seconds);
            }
            Coscheduling::API_VERSION
        }
    };
    let metadata = json!({ "name": job.name, "labels": labels::of_job(job) });
    Some(json!({ "apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec }))
}

/// The group, if its kind is installed and it exists.
fn find<K: Kind + DeserializeOwned>(job: &Job<'_>) -> Result<Option<Option<K>>, Error> {
    match lookup::get::<K>(None, job.name) {
        Ok(found) => Ok(Some(found)),
        Err(Error::KindNotInstalled(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn min_member(job: &Job<'_>, gang: &GangScheduling) -> u32 {
    let all = job.spec.elastic.as_ref().map_or(job.size(), |elastic| elastic.min_workers + job.spec.parameter_servers);
    gang.min_member.unwrap_or(all).min(job.size())
}

/// What so many members need together: their requests, and their limits where nothing is requested.
fn min_resources(job: &Job<'_>, members: u32) -> Map<String, Value> {
    let (worker, server) = (needs(job, Role::Worker), needs(job, Role::ParameterServer));
    let all = worker.into_iter().map(|(name, amount)| {
        let count = if server.contains_key(&name) { members } else { members.min(job.spec.workers) };
        let amount = times(&amount, count);
        (name, amount)
    });
    all.collect()
}

fn needs(job: &Job<'_>, role: Role) -> Map<String, Value> {
    let resources = pod::resources(job, role);
    let amounts = |field| resources.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut needs = amounts("limits");
    needs.extend(amounts("requests"));
    needs
}
