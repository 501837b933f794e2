//! Rights at the API server: those that the host needs for a plugin, by its manifest, and those of them that it lacks. Asks
//! for nothing but reviews of its own access, and never gives itself a right.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{
    Api, Client,
    api::{GroupVersionKind, PostParams},
    core::ApiResource,
};
use pilothouse_engine::{Manifest, contract::KindRef};
use tokio::sync::Semaphore;

use crate::{
    cache::{State, Watched},
    client::chain,
    metrics::Metrics,
    plugin::ActivePlugin,
};

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

/// Asks which rights the host lacks, when a version of a plugin starts: whoever runs the host reads all of them at once, and
/// before the first object suffers.
pub struct SelfCheck {
    reviews: Api<SelfSubjectAccessReview>,
    /// The only namespace that the host watches.
    namespace: Option<String>,
    metrics: Arc<Metrics>,
    /// One review at a time: a start has more urgent requests.
    turn: Semaphore,
}

impl SelfCheck {
    /// A check for a host that watches one namespace or all. Asks for nothing yet.
    pub fn new(client: Client, namespace: Option<&str>, metrics: Arc<Metrics>) -> Arc<Self> {
        let (reviews, turn) = (Api::all(client), Semaphore::new(1));
        Arc::new(Self { reviews, namespace: namespace.map(str::to_owned), metrics, turn })
    }

    /// Checks a plugin's rights in the background, those on kinds that are installed. What is missing is logged and counted.
    pub fn start(self: &Arc<Self>, plugin: &ActivePlugin) {
        let (check, manifest) = (self.clone(), plugin.manifest().clone());
        let watches = plugin.watches().cloned().collect::<Vec<_>>();
        tokio::spawn(async move {
            match check.missing(&manifest, &watches).await {
                Ok(missing) => check.tell(&manifest, &missing),
                Err(error) => tracing::warn!(
                    plugin = manifest.name,
                    "failed to ask the API server whether the host has the rights that the plugin needs: {}",
                    chain(&error)
                ),
            }
        });
    }

    fn tell(&self, manifest: &Manifest, missing: &[Missing]) {
        let (name, rights) = (&manifest.name, missing.iter().map(|missing| missing.verbs.len()).sum());
        self.metrics.rights_missing(name, rights);
        if rights == 0 {
            tracing::info!(plugin = manifest.name, "the host has all rights that the plugin needs");
        } else {
            let rights: Vec<_> = missing.iter().map(ToString::to_string).collect();
            tracing::warn!(
                plugin = manifest.name,
                version = manifest.version,
                "the host lacks rights that the plugin needs: {}; `pilothouse rbac` with the plugin's file prints a role that \
                 has them",
                rights.join("; ")
            );
        }
    }

    async fn missing(&self, manifest: &Manifest, watches: &[Arc<Watched>]) -> Result<Vec<Missing>, kube::Error> {
        let mut missing = Vec::new();
        for right in needed(manifest) {
            let Some((plural, namespaced)) = served(&right.kind, watches).await else { continue };
            let namespace = self.namespace.as_deref().filter(|_| namespaced);
            let mut verbs = Vec::new();
            for verb in &right.verbs {
                if !self.is_allowed(&right, verb, &plural, namespace).await? {
                    verbs.push(*verb);
                }
            }
            if !verbs.is_empty() {
                missing.push(Missing {
                    verbs,
                    resource: right.resource(&plural),
                    group: right.kind.group().to_owned(),
                });
            }
        }
        Ok(missing)
    }

    async fn is_allowed(
        &self,
        right: &Right,
        verb: &str,
        plural: &str,
        namespace: Option<&str>,
    ) -> Result<bool, kube::Error> {
        let _turn = self.turn.acquire().await;
        let attributes = ResourceAttributes {
            group: Some(right.kind.group().to_owned()),
            namespace: namespace.map(str::to_owned),
            resource: Some(plural.to_owned()),
            subresource: right.subresource.map(str::to_owned),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let answer = self.reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

/// The plural of a kind and whether its objects live in namespaces; none if it is not installed. Of what the host does not
/// watch (Events) the conventions say it.
async fn served(kind: &KindRef, watches: &[Arc<Watched>]) -> Option<(String, bool)> {
    let Some(watched) = watches.iter().find(|watched| watched.kind() == kind) else {
        return Some((usual_plural(kind), true));
    };
    watched.until(|state| *state != State::Starting).await;
    watched.installed().map(|installed| (installed.resource.plural.clone(), installed.namespaced))
}

/// Verbs that the host may not use on a resource.
struct Missing {
    verbs: Vec<&'static str>,
    resource: String,
    group: String,
}

impl fmt::Display for Missing {
    /// `create, patch on deployments in the group 'apps'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.verbs.join(", "), self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, " in the group '{}'", self.group) }
    }
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
