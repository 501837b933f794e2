//! The resources by which RBAC names kinds, and whether their objects are in namespaces: as the cluster says where it is asked, else as is usual
//! and as the arguments say.

use std::collections::{BTreeMap, BTreeSet};

use kube::{
    Client,
    core::GroupVersionKind,
    discovery::{self, Scope},
};
use pilothouse_controller::plugin::rights::{Right, usual_plural};
use pilothouse_engine::contract::KindRef;

use crate::kind_name::kind_name;

/// The resources of kinds.
#[derive(Default)]
pub struct Resources {
    plurals: BTreeMap<KindRef, String>,
    /// The names of the kinds whose objects are in no namespace.
    cluster_scoped: BTreeSet<String>,
}

impl Resources {
    /// The usual ones, but that the objects of these kinds are in no namespace. They are named `KIND.GROUP`.
    pub fn usual(cluster_scoped: &[String]) -> Self {
        Self { plurals: BTreeMap::new(), cluster_scoped: cluster_scoped.iter().cloned().collect() }
    }

    /// Asks a cluster about the kinds that rights are about. A kind that is not installed stays as it is known.
    pub async fn asked(mut self, client: &Client, rights: &[Right]) -> Self {
        for Right { kind, .. } in rights {
            if self.plurals.contains_key(kind) {
                continue;
            }
            let wanted = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
            let Ok((found, capabilities)) = discovery::pinned_kind(client, &wanted).await else { continue };
            self.plurals.insert(kind.clone(), found.plural);
            match capabilities.scope {
                Scope::Cluster => self.cluster_scoped.insert(kind_name(kind)),
                Scope::Namespaced => self.cluster_scoped.remove(&kind_name(kind)),
            };
        }
        self
    }

    /// The plural of a kind.
    pub fn plural(&self, kind: &KindRef) -> String {
        self.plurals.get(kind).cloned().unwrap_or_else(|| usual_plural(kind))
    }

    /// Whether the objects of a kind are in no namespace.
    pub fn is_cluster_scoped(&self, kind: &KindRef) -> bool {
        self.cluster_scoped.contains(&kind_name(kind))
    }
}
