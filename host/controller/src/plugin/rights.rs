//! Rights at the API server: those that the host needs for a plugin follow from its manifest. Pure; asks nobody.

use std::collections::{BTreeMap, BTreeSet};

use kube::{api::GroupVersionKind, core::ApiResource};
use pilothouse_engine::{Manifest, contract::KindRef};

/// All verbs that the host uses, in the order in which they are told.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// What the host does with whatever it watches.
const READ: [&str; 3] = ["get", "list", "watch"];

/// What it does with children besides.
const KEEP: [&str; 3] = ["create", "patch", "delete"];

/// Verbs on the objects of a kind, or on a part of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// The kind.
    pub kind: KindRef,
    /// The subresource, such as `status`; none for the objects themselves.
    pub subresource: Option<&'static str>,
    /// What is done to them.
    pub verbs: Vec<&'static str>,
}

impl Right {
    /// The resource as RBAC names it, given the kind's plural: `deployments`, `appservices/status`.
    pub fn resource(&self, plural: &str) -> String {
        self.subresource.map_or_else(|| plural.to_owned(), |part| format!("{plural}/{part}"))
    }
}

/// The rights that the host needs for a plugin, and no others (seed row H7). Every kind and part comes once.
pub fn needed(manifest: &Manifest) -> Vec<Right> {
    let object = &manifest.reconciles;
    let mut needed = Needed::default();
    needed.add(object, None, &READ);
    // The finalizer is put on and taken off by a patch of the object itself.
    needed.add(object, None, if manifest.finalizes { &["patch"] } else { &[] });
    needed.add(object, None, if manifest.expires.is_some() { &["delete"] } else { &[] });
    needed.add(object, Some("status"), &["patch"]);
    // Who sets an owner reference that blocks the owner's deletion has to be allowed to hold the owner (Kubernetes'
    // admission plugin OwnerReferencesPermissionEnforcement).
    needed.add(object, Some("finalizers"), &["update"]);
    for kind in &manifest.children {
        needed.add(kind, None, &READ);
        needed.add(kind, None, &KEEP);
    }
    for kind in &manifest.lookups {
        needed.add(kind, None, &READ);
    }
    needed.add(&KindRef::new("v1", "Event"), None, &["get", "create", "patch"]);
    needed.rights()
}

/// Verbs by kind and part.
#[derive(Default)]
struct Needed(BTreeMap<(KindRef, Option<&'static str>), BTreeSet<&'static str>>);

impl Needed {
    fn add(&mut self, kind: &KindRef, subresource: Option<&'static str>, verbs: &[&'static str]) {
        self.0.entry((kind.clone(), subresource)).or_default().extend(verbs);
    }

    fn rights(self) -> Vec<Right> {
        let right = |((kind, subresource), needed): ((_, _), BTreeSet<_>)| {
            let verbs = VERBS.into_iter().filter(|verb| needed.contains(verb)).collect();
            Right { kind, subresource, verbs }
        };
        self.0.into_iter().map(right).collect()
    }
}

/// The plural that a kind has by the API conventions: `networkpolicies` for `NetworkPolicy`.
pub fn usual_plural(kind: &KindRef) -> String {
    ApiResource::from_gvk(&GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind)).plural
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(manifest: &Manifest) -> Vec<String> {
        let shown = |right: Right| {
            let resource = right.resource(&usual_plural(&right.kind));
            format!("{} {resource}: {}", right.kind.group(), right.verbs.join(" "))
        };
        needed(manifest).into_iter().map(shown).collect()
    }

    #[test]
    fn rights_are_those_that_the_manifest_asks_for() {
        let mut manifest = Manifest::new("web", "1.0.0", KindRef::new("example.com/v1", "Web"));
        let basic = [
            "example.com webs: get list watch",
            "example.com webs/finalizers: update",
            "example.com webs/status: patch",
            " events: get create patch",
        ];
        assert_eq!(shown(&manifest), basic);
        manifest.finalizes = true;
        manifest.expires = Some("/status/expires".to_owned());
        assert_eq!(shown(&manifest)[0], "example.com webs: get list watch patch delete");
        manifest.children =
            vec![KindRef::new("networking.k8s.io/v1", "NetworkPolicy"), KindRef::new("v1", "ConfigMap")];
        manifest.lookups = vec![KindRef::new("v1", "ConfigMap"), KindRef::new("v1", "Secret")];
        let rest = [
            "networking.k8s.io networkpolicies: get list watch create patch delete",
            " configmaps: get list watch create patch delete",
            " events: get create patch",
            " secrets: get list watch",
        ];
        assert_eq!(shown(&manifest)[3..], rest);
    }
}
