//! The RBAC rights that the host needs for a plugin, and those of the account that it works with, derived from the manifest. Pure; makes
//! no request.

use std::collections::{BTreeMap, BTreeSet};

use kube::{api::GroupVersionKind, core::ApiResource};
use pilothouse_engine::{Manifest, contract::KindRef};

/// All verbs that the host uses, in the order of display.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// The verbs for whatever the host watches.
const READ: [&str; 3] = ["get", "list", "watch"];

/// The verbs for children besides [`READ`].
const WRITE: [&str; 3] = ["create", "patch", "delete"];

/// Verbs on the objects of a kind, or on a subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// The kind.
    pub kind: KindRef,
    /// The subresource, such as `status`; none for the object itself.
    pub subresource: Option<&'static str>,
    /// The verbs.
    pub verbs: Vec<&'static str>,
}

impl Right {
    /// The resource in the notation of RBAC, given the plural of the kind: `deployments`, `appservices/status`.
    pub fn resource(&self, plural: &str) -> String {
        self.subresource.map_or_else(|| plural.to_owned(), |part| format!("{plural}/{part}"))
    }
}

/// With whose rights the children of a plugin are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Those of the host.
    Host,
    /// Those of the plugin's account.
    Account,
}

/// The rights that the host needs for a plugin, and no others. Each kind and subresource occurs once.
pub fn of_host(manifest: &Manifest, writer: Writer) -> Vec<Right> {
    let object = &manifest.reconciles;
    let mut required = VerbSets::default();
    required.add(object, None, &READ);
    // Finalizers are added and removed by a patch of the object itself.
    let has_finalizer = manifest.finalizes || manifest.orders_children;
    required.add(object, None, if has_finalizer { &["patch"] } else { &[] });
    required.add(object, None, if manifest.expires.is_some() { &["delete"] } else { &[] });
    // The status of an object that is decorated is somebody else's.
    required.add(object, Some("status"), if manifest.decorates.is_none() { &["patch"] } else { &[] });
    for kind in &manifest.children {
        required.add(kind, None, &READ);
    }
    if writer == Writer::Host {
        required.add_writes(manifest);
    }
    for lookup in &manifest.lookups {
        required.add(&lookup.kind, None, &READ);
    }
    // `get`: the host reads the count of an Event that it created before a restart.
    required.add(&KindRef::new("v1", "Event"), None, &["get", "create", "patch"]);
    required.rights()
}

/// The rights that the account of a plugin needs, and no others.
pub fn of_account(manifest: &Manifest) -> Vec<Right> {
    let mut required = VerbSets::default();
    required.add_writes(manifest);
    for kind in &manifest.children {
        // To see whose it is, when a name is taken.
        required.add(kind, None, &["get"]);
    }
    for lookup in &manifest.lookups {
        required.add(&lookup.kind, None, &["get", "list"]);
    }
    required.rights()
}

/// What the host asks of the API server in the name of a plugin's account, and nothing else: less than what the account may do. An apply is a
/// `patch`, also of a child that is not there yet; the API server then judges by itself whether the account may `create` it. Lookups are
/// answered by the host's caches. What is in no namespace is not among them ([`as_account_in_cluster`]).
pub fn as_account(manifest: &Manifest) -> Vec<Right> {
    let mut required = VerbSets::default();
    required.add(&manifest.reconciles, None, if manifest.decorates.is_some() { &["patch"] } else { &[] });
    for kind in &manifest.children {
        required.add(kind, None, &["get", "patch", "delete"]);
    }
    required.rights()
}

/// The same of what is in no namespace: what the account may do is asked in its own name.
pub fn as_account_in_cluster() -> Vec<Right> {
    let review = KindRef::new("authorization.k8s.io/v1", "SelfSubjectAccessReview");
    vec![Right { kind: review, subresource: None, verbs: vec!["create"] }]
}

/// Verbs by kind and subresource.
#[derive(Default)]
struct VerbSets(BTreeMap<(KindRef, Option<&'static str>), BTreeSet<&'static str>>);

impl VerbSets {
    fn add(&mut self, kind: &KindRef, subresource: Option<&'static str>, verbs: &[&'static str]) {
        self.0.entry((kind.clone(), subresource)).or_default().extend(verbs);
    }

    /// What it takes to write the children.
    fn add_writes(&mut self, manifest: &Manifest) {
        // An owner reference with `blockOwnerDeletion` requires this right, where the admission plugin
        // OwnerReferencesPermissionEnforcement is enabled.
        self.add(&manifest.reconciles, Some("finalizers"), &["update"]);
        // Labels and annotations. The API server knows no right on these alone.
        self.add(&manifest.reconciles, None, if manifest.decorates.is_some() { &["patch"] } else { &[] });
        for kind in &manifest.children {
            self.add(kind, None, &WRITE);
        }
    }

    fn rights(self) -> Vec<Right> {
        let right = |((kind, subresource), needed): ((_, _), BTreeSet<_>)| {
            let verbs: Vec<_> = VERBS.into_iter().filter(|verb| needed.contains(verb)).collect();
            Right { kind, subresource, verbs }
        };
        self.0.into_iter().map(right).filter(|right| !right.verbs.is_empty()).collect()
    }
}

/// The plural of a kind by convention: `networkpolicies` for `NetworkPolicy`.
pub fn usual_plural(kind: &KindRef) -> String {
    ApiResource::from_gvk(&GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind)).plural
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::Decorates;

    use super::*;

    fn shown(rights: Vec<Right>) -> Vec<String> {
        let shown = |right: Right| {
            let resource = right.resource(&usual_plural(&right.kind));
            format!("{} {resource}: {}", right.kind.group(), right.verbs.join(" "))
        };
        rights.into_iter().map(shown).collect()
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
        assert_eq!(shown(of_host(&manifest, Writer::Host)), basic);
        manifest.finalizes = true;
        manifest.expires = Some("/status/expires".to_owned());
        assert_eq!(shown(of_host(&manifest, Writer::Host))[0], "example.com webs: get list watch patch delete");
        manifest.children =
            vec![KindRef::new("networking.k8s.io/v1", "NetworkPolicy"), KindRef::new("v1", "ConfigMap")];
        manifest.lookups = ["ConfigMap", "Secret"].map(|kind| KindRef::new("v1", kind).into()).to_vec();
        let rest = [
            "networking.k8s.io networkpolicies: get list watch create patch delete",
            " configmaps: get list watch create patch delete",
            " events: get create patch",
            " secrets: get list watch",
        ];
        assert_eq!(shown(of_host(&manifest, Writer::Host))[3..], rest);
    }

    #[test]
    fn with_an_account_the_host_only_watches_and_the_account_writes() {
        let mut manifest = Manifest::new("web", "1.0.0", KindRef::new("example.com/v1", "Web"));
        manifest.children = vec![KindRef::new("v1", "ConfigMap")];
        manifest.lookups = vec![KindRef::new("v1", "Secret").into()];
        let host = [
            "example.com webs: get list watch",
            "example.com webs/status: patch",
            " configmaps: get list watch",
            " events: get create patch",
            " secrets: get list watch",
        ];
        assert_eq!(shown(of_host(&manifest, Writer::Account)), host);
        let account =
            ["example.com webs/finalizers: update", " configmaps: get create patch delete", " secrets: get list"];
        assert_eq!(shown(of_account(&manifest)), account);
        assert_eq!(shown(as_account(&manifest)), [" configmaps: get patch delete"]);
    }

    #[test]
    fn in_the_name_of_the_account_the_host_asks_for_less_than_it_may() {
        let mut manifest = Manifest::new("web", "1.0.0", KindRef::new("apps/v1", "StatefulSet"));
        assert_eq!(shown(as_account(&manifest)), Vec::<String>::new());
        manifest.decorates = Some(Decorates::default());
        manifest.children = vec![KindRef::new("v1", "Service")];
        manifest.lookups = vec![KindRef::new("v1", "Secret").into()];
        let asked = shown(as_account(&manifest));
        assert_eq!(asked, ["apps statefulsets: patch", " services: get patch delete"]);
        assert_eq!(shown(as_account_in_cluster()), ["authorization.k8s.io selfsubjectaccessreviews: create"]);
        // The account may do all of it.
        let may = shown(of_account(&manifest)).join("\n");
        for line in asked {
            let (resource, verbs) = line.split_once(": ").unwrap_or_default();
            let granted = may.lines().find_map(|it| it.strip_prefix(&format!("{resource}: "))).unwrap_or_default();
            assert!(verbs.split(' ').all(|verb| granted.split(' ').any(|it| it == verb)), "{line}: {may}");
        }
    }
}
