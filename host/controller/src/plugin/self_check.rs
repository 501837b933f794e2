//! What the host lacks of the rights that a plugin needs: asked when a version of it starts, so that whoever runs the host reads
//! all of it at once, and before the first object suffers. Never gives itself a right, and keeps nobody waiting.

use std::{fmt, sync::Arc};

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;
use pilothouse_engine::{Manifest, contract::KindRef};
use tokio::sync::Semaphore;

use super::{
    ActivePlugin,
    rights::{Right, needed, usual_plural},
};
use crate::{
    access::is_allowed,
    cache::{Informer, WatchState},
    errors::chain,
    metrics::Metrics,
};

/// Asks the API server for the host's own access.
pub struct SelfCheck {
    client: Client,
    /// The only namespace that the host watches.
    namespace: Option<String>,
    metrics: Arc<Metrics>,
    /// One review at a time: a start has more urgent requests.
    turn: Semaphore,
}

impl SelfCheck {
    /// A check for a host that watches one namespace or all. Asks for nothing yet.
    pub fn new(client: Client, namespace: Option<&str>, metrics: Arc<Metrics>) -> Arc<Self> {
        let turn = Semaphore::new(1);
        Arc::new(Self { client, namespace: namespace.map(str::to_owned), metrics, turn })
    }

    /// Checks a plugin's rights in the background. What is missing is logged and counted.
    pub fn start(self: &Arc<Self>, plugin: &ActivePlugin) {
        let (check, manifest) = (self.clone(), plugin.manifest().clone());
        let watches = plugin.informers().cloned().collect::<Vec<_>>();
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
        self.metrics.plugins.rights_missing(name, rights);
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

    async fn missing(&self, manifest: &Manifest, watches: &[Arc<Informer>]) -> Result<Vec<Missing>, kube::Error> {
        let mut missing = Vec::new();
        for right in needed(manifest) {
            let (plural, namespaced) = served(&right.kind, watches).await;
            let namespace = self.namespace.as_deref().filter(|_| namespaced);
            let mut verbs = Vec::new();
            for verb in &right.verbs {
                if !self.has(&right, verb, &plural, namespace).await? {
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

    async fn has(&self, right: &Right, verb: &str, plural: &str, namespace: Option<&str>) -> Result<bool, kube::Error> {
        let _turn = self.turn.acquire().await;
        let attributes = ResourceAttributes {
            group: Some(right.kind.group().to_owned()),
            namespace: namespace.map(str::to_owned),
            resource: Some(plural.to_owned()),
            subresource: right.subresource.map(str::to_owned),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        is_allowed(&self.client, attributes).await
    }
}

/// The plural of a kind, and whether its objects live in namespaces. Of what is not installed, and of what the host does not
/// watch (Events), the conventions say it.
async fn served(kind: &KindRef, watches: &[Arc<Informer>]) -> (String, bool) {
    let informer = watches.iter().find(|informer| informer.kind() == kind);
    if let Some(informer) = informer {
        informer.until(|state| *state != WatchState::Starting).await;
    }
    let installed = informer.and_then(|informer| informer.installed());
    installed.map_or_else(|| (usual_plural(kind), true), |found| (found.resource.plural.clone(), found.namespaced))
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
