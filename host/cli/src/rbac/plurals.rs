//! The plurals by which RBAC names kinds: those of the cluster where it is asked, else the usual ones.

use std::collections::BTreeMap;

use kube::{Client, core::GroupVersionKind, discovery};
use pilothouse_controller::plugin::rights::{Right, usual_plural};
use pilothouse_engine::contract::KindRef;

/// The plurals of kinds.
#[derive(Default)]
pub struct Plurals(BTreeMap<KindRef, String>);

impl Plurals {
    /// Asks a cluster for the plurals of the kinds that rights are about. A kind that is not installed gets the usual one.
    pub async fn of_cluster(client: &Client, rights: &[Right]) -> Self {
        let mut known = BTreeMap::new();
        for Right { kind, .. } in rights {
            if known.contains_key(kind) {
                continue;
            }
            let wanted = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
            if let Ok((found, _)) = discovery::pinned_kind(client, &wanted).await {
                known.insert(kind.clone(), found.plural);
            }
        }
        Self(known)
    }

    /// The plural of a kind.
    pub fn of(&self, kind: &KindRef) -> String {
        self.0.get(kind).cloned().unwrap_or_else(|| usual_plural(kind))
    }
}
