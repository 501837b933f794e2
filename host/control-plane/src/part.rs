//! The programs a control plane is made of, and the sets of them that can be asked for.
//! Names only: nothing here starts anything.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The store behind the API server.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager with its default controllers.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// kwok, which plays the kubelet of every node.
    Kwok,
}

impl Part {
    /// The name of the program's file, of its log, and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Part::Etcd => "etcd",
            Part::ApiServer => "kube-apiserver",
            Part::ControllerManager => "kube-controller-manager",
            Part::Scheduler => "kube-scheduler",
            Part::Kwok => "kwok",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How much of a control plane to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Parts {
    /// etcd and kube-apiserver: objects are stored and watched, nothing acts on them (no garbage collection;
    /// a deleted namespace stays Terminating).
    Api,
    /// `Api` and kube-controller-manager: garbage collection, Deployments make Pods, Pods stay Pending.
    Controllers,
    /// `Controllers`, kube-scheduler, kwok and one GPU node: Pods are scheduled, become ready, end.
    Full,
}

impl Parts {
    /// The parts of this set in the order in which they start.
    pub fn list(self) -> &'static [Part] {
        const ALL: &[Part] = &[Part::Etcd, Part::ApiServer, Part::ControllerManager, Part::Scheduler, Part::Kwok];
        match self {
            Parts::Api => &ALL[..2],
            Parts::Controllers => &ALL[..3],
            Parts::Full => ALL,
        }
    }

    /// Whether `part` belongs to this set.
    pub fn contains(self, part: Part) -> bool {
        self.list().contains(&part)
    }
}
