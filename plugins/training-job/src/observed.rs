//! What exists of a job in the cluster. It only holds it.

use crate::children::config_maps::ConfigMap;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_sdk::{RefusedChild, Request};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// What exists of a job.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Its Pods.
    pub pods: &'a [ObservedPod],
    /// Its ConfigMaps.
    pub config_maps: &'a [ConfigMap],
    /// Whether it has a Workload in Kueue.
    pub has_workload: bool,
    /// Its children that could not be written.
    pub refused: &'a [RefusedChild],
    /// By which Pods are deleted at once.
    pub deletions: &'a dyn Deletions,
}

/// Deletes what does not go.
pub trait Deletions: Debug {
    /// Has Pods that are being deleted go at once, without their nodes.
    fn force(&self, pods: &BTreeSet<&str>);
}

impl<O: Debug> Deletions for Request<O> {
    fn force(&self, pods: &BTreeSet<&str>) {
        self.force_deletions::<ObservedPod>(pods);
    }
}
