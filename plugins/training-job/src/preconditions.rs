//! What must be there before a job starts, so that no job is ever half made. It only looks.

use crate::children::config_maps::{self, ConfigMap, LARGEST};
use crate::children::pod_group::{Admission, admission};
use crate::job::Job;
use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;

/// How often what is missing is looked for, in seconds; its coming asks sooner.
const AGAIN: u32 = 300;

/// Why a job cannot start yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Shut {
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// When to look again, in seconds.
    pub seconds: u32,
    /// Whether everything but the Pods can be made already, for it is waited for an answer to that.
    pub prepares: bool,
}

/// A claim, of which it only matters that it is there.
#[derive(Deserialize)]
struct PersistentVolumeClaim {}

impl Kind for PersistentVolumeClaim {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "PersistentVolumeClaim";
}

/// What keeps a job from starting, if anything does.
///
/// # Errors
/// Something cannot be looked up.
pub fn gate(job: &Job<'_>) -> Result<Option<Shut>, Error> {
    Ok(match claims(job)? {
        Some(shut) => Some(shut),
        None => match config_maps(job)? {
            Some(shut) => Some(shut),
            None => scheduler(job)?,
        },
    })
}

fn shut(reason: &'static str, message: String) -> Shut {
    Shut { reason, message, seconds: AGAIN, prepares: false }
}

fn claims(job: &Job<'_>) -> Result<Option<Shut>, Error> {
    let data = job.spec.data_volume.iter().map(|volume| ("dataVolume", &volume.claim_name));
    let checkpoints = job.spec.checkpoint_volume.iter().map(|volume| ("checkpointVolume", &volume.claim_name));
    for (field, name) in data.chain(checkpoints) {
        if lookup::get::<PersistentVolumeClaim>(None, name)?.is_none() {
            let message = format!(
                "spec.{field} names the PersistentVolumeClaim '{name}', which namespace '{}' does not have; create it",
                job.namespace
            );
            return Ok(Some(shut("ClaimNotFound", message)));
        }
    }
    Ok(None)
}

fn config_maps(job: &Job<'_>) -> Result<Option<Shut>, Error> {
    let mut bytes = 0;
    for (name, is_optional) in config_maps::references(job) {
        match lookup::get::<ConfigMap>(None, name)? {
            Some(found) => bytes += found.size(),
            None if is_optional => {}
            None => {
                let message = format!(
                    "the spec refers to the ConfigMap '{name}', which namespace '{}' does not have; create it",
                    job.namespace
                );
                return Ok(Some(shut("ConfigMapNotFound", message)));
            }
        }
    }
    let message = format!(
        "the ConfigMaps that the spec refers to hold {} KiB, but at most {} KiB are copied; put big files on a volume",
        bytes >> 10,
        LARGEST >> 10
    );
    Ok((bytes > LARGEST).then(|| shut("ConfigMapsTooLarge", message)))
}

fn scheduler(job: &Job<'_>) -> Result<Option<Shut>, Error> {
    Ok(match admission(job)? {
        Admission::Open => None,
        Admission::Held => {
            let message = format!("waiting until the scheduler lets the PodGroup '{}' in", job.name);
            Some(Shut { prepares: true, ..shut("WaitingForPodGroup", message) })
        }
        Admission::NotInstalled(kind) => {
            let message = format!(
                "spec.gangScheduling needs {kind}, which is not installed in this cluster; install the scheduler, or \
                 remove spec.gangScheduling"
            );
            Some(shut("GangSchedulerNotInstalled", message))
        }
    })
}
