//! What exists of a job in the cluster. It only holds it.

use crate::children::config_maps::ConfigMap;
use crate::children::pod_group::{SchedulerPluginsPodGroup, VolcanoPodGroup};
use crate::children::service::Service;
use crate::desired_child::Referent;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_sdk::{Kind, RefusedChild, Request};
use std::borrow::Cow;
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
    /// What else has to be there before Pods are made: where what is known of the job is kept, if that is not its status.
    pub needs: &'a [Referent],
    /// All of its children.
    pub children: &'a dyn LiveChildren,
}

/// The children of a job in the cluster.
pub trait LiveChildren: Debug {
    /// Those to which Pods refer by name.
    fn referents(&self) -> BTreeSet<Referent>;

    /// Has Pods that are being deleted go at once, without their nodes.
    fn force(&self, pods: &BTreeSet<&str>);
}

impl<O: Debug> LiveChildren for Request<O> {
    fn referents(&self) -> BTreeSet<Referent> {
        let of_all = [
            referents::<ConfigMap, O>(self),
            referents::<Service, O>(self),
            referents::<VolcanoPodGroup, O>(self),
            referents::<SchedulerPluginsPodGroup, O>(self),
        ];
        of_all.into_iter().flatten().collect()
    }

    fn force(&self, pods: &BTreeSet<&str>) {
        self.force_deletions::<ObservedPod>(pods);
    }
}

fn referents<K: Kind, O>(request: &Request<O>) -> Vec<Referent> {
    let referent = |name: Cow<'_, str>| (K::API_VERSION.to_owned(), K::KIND.to_owned(), name.into_owned());
    request.names::<K>().map(referent).collect()
}
