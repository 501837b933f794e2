//! What must exist before a job starts, so that no job is ever half created. It only reads.

use crate::children::config_maps::{self, ConfigMap, MAX_SNAPSHOT_BYTES};
use crate::children::pod_group::{Admission, admission};
use crate::children::workload::Quota;
use crate::job::{Job, PRIORITY_CLASS, QUEUE};
use pilothouse_pods::claim::{self, CLAIM_NOT_FOUND, ClaimRef};
use pilothouse_sdk::{Error, lookup};

/// How often an unmet precondition is checked again, in seconds. The host calls earlier when an object appears that a lookup
/// asked for.
pub const RECHECK_SECONDS: u32 = 300;

/// Why a job cannot start yet.
#[derive(Debug, PartialEq, Eq)]
pub struct UnmetPrecondition {
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// Whether only the Pods have to wait. The other children must exist already: the scheduler admits a PodGroup that exists.
    pub blocks_only_pods: bool,
}

/// The first precondition of a job that is not met.
///
/// # Errors
/// A lookup fails.
pub fn unmet_precondition(job: &Job<'_>, quota: &Quota) -> Result<Option<UnmetPrecondition>, Error> {
    if let Some(unmet) = missing_claim(job)? {
        return Ok(Some(unmet));
    }
    if let Some(unmet) = missing_or_too_large_config_maps(job)? {
        return Ok(Some(unmet));
    }
    unmet_admission(job, quota)
}

fn blocks_everything(reason: &'static str, message: String) -> UnmetPrecondition {
    UnmetPrecondition { reason, message, blocks_only_pods: false }
}

fn missing_claim(job: &Job<'_>) -> Result<Option<UnmetPrecondition>, Error> {
    let claim_ref = |field, name| ClaimRef { field, name };
    let data = job.spec.data_volume.iter().map(|volume| claim_ref("dataVolume", volume.claim_name.as_str()));
    let checkpoints = job.spec.checkpoint_volume.iter().map(|it| claim_ref("checkpointVolume", it.claim_name.as_str()));
    let missing = claim::missing(data.chain(checkpoints), job.namespace)?;
    Ok(missing.map(|message| blocks_everything(CLAIM_NOT_FOUND, message)))
}

fn missing_or_too_large_config_maps(job: &Job<'_>) -> Result<Option<UnmetPrecondition>, Error> {
    let mut bytes = 0;
    for reference in config_maps::references(job) {
        match lookup::get::<ConfigMap>(None, reference.name)? {
            Some(config_map) => bytes += config_map.size(),
            None if reference.is_optional => {}
            None => {
                let message = format!(
                    "the spec refers to the ConfigMap '{}', which namespace '{}' does not have; create it",
                    reference.name, job.namespace
                );
                return Ok(Some(blocks_everything("ConfigMapNotFound", message)));
            }
        }
    }
    if bytes <= MAX_SNAPSHOT_BYTES {
        return Ok(None);
    }
    let message = format!(
        "the ConfigMaps that the spec refers to hold {} KiB, but at most {} KiB are copied; put big files on a volume",
        bytes >> 10,
        MAX_SNAPSHOT_BYTES >> 10
    );
    Ok(Some(blocks_everything("ConfigMapsTooLarge", message)))
}

/// Why Kueue or the gang scheduler keeps a job from starting, if it does.
///
/// # Errors
/// A lookup fails.
pub fn unmet_admission(job: &Job<'_>, quota: &Quota) -> Result<Option<UnmetPrecondition>, Error> {
    if let Some(unmet) = unmet_quota(job, quota) {
        return Ok(Some(unmet));
    }
    Ok(match admission(job)? {
        Admission::Admitted => None,
        Admission::Pending => Some(UnmetPrecondition {
            reason: "WaitingForPodGroup",
            message: format!("waiting until the scheduler lets the PodGroup '{}' in", job.name),
            blocks_only_pods: true,
        }),
        Admission::NotInstalled(kind) => {
            let message = format!(
                "spec.gangScheduling needs {kind}, which is not installed in this cluster; install the scheduler, or \
                 remove spec.gangScheduling"
            );
            Some(blocks_everything("GangSchedulerNotInstalled", message))
        }
    })
}

fn unmet_quota(job: &Job<'_>, quota: &Quota) -> Option<UnmetPrecondition> {
    let (queue, class) = (job.queue.unwrap_or_default(), job.priority_class.unwrap_or_default());
    match quota {
        Quota::NotAsked | Quota::Granted(_) => None,
        Quota::NotInstalled => Some(blocks_everything(
            "QueueNotInstalled",
            format!(
                "the label {QUEUE} needs Kueue, which is not installed in this cluster; install it, or remove the label"
            ),
        )),
        Quota::NoPriorityClass => Some(blocks_everything(
            "PriorityClassNotFound",
            format!(
                "the label {PRIORITY_CLASS} names the WorkloadPriorityClass '{class}', which does not exist; create it, or \
                     remove the label"
            ),
        )),
        Quota::Pending(why) | Quota::Lost(why) => {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let message = format!("waiting in the queue '{queue}' for quota{why}");
            Some(UnmetPrecondition { reason: "WaitingForQuota", message, blocks_only_pods: true })
        }
    }
}
