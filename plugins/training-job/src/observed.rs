//! What exists of a job in the cluster. It only holds it.

use crate::children::config_maps::ConfigMap;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_sdk::RefusedChild;

/// What exists of a job.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Its Pods.
    pub pods: &'a [ObservedPod],
    /// Its ConfigMaps.
    pub config_maps: &'a [ConfigMap],
    /// Its children that could not be written.
    pub refused: &'a [RefusedChild],
}
