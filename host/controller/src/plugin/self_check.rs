//! Checks whether the host has the rights that a plugin needs. The check runs when a version starts, so that an administrator sees
//! all missing rights at once and before an object fails. Never grants rights, and delays nothing.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;
use pilothouse_engine::{Manifest, contract::KindRef};
use tokio::{sync::Semaphore, task::AbortHandle};

use super::{
    ActivePlugin,
    rights::{Right, Writer, of_host, usual_plural},
};
use crate::{
    access::is_allowed,
    cache::{Informer, WatchState},
    errors::chain,
    metrics::Metrics,
};

/// Checks the host's own rights at the API server.
pub struct SelfCheck {
    client: Client,
    /// The only namespace that the host watches.
    namespace: Option<String>,
    metrics: Arc<Metrics>,
    /// Allows one review at a time, because a starting host has more urgent requests.
    limit: Semaphore,
    /// The checks that go on, by the plugin.
    running: Mutex<BTreeMap<Arc<str>, Vec<AbortHandle>>>,
}

impl SelfCheck {
    /// A check for a host that watches one namespace or all. Makes no request yet.
    pub fn new(client: Client, namespace: Option<&str>, metrics: Arc<Metrics>) -> Arc<Self> {
        let limit = Semaphore::new(1);
        Arc::new(Self { client, namespace: namespace.map(str::to_owned), metrics, limit, running: Mutex::default() })
    }

    /// Checks the rights for a plugin in the background. Missing rights are logged and counted.
    pub fn start(self: &Arc<Self>, plugin: &ActivePlugin) {
        let (check, manifest) = (self.clone(), plugin.manifest().clone());
        let writer = if plugin.account.is_some() { Writer::Account } else { Writer::Host };
        let informers = plugin.informers().cloned().collect::<Vec<_>>();
        // A plugin begins its work without waiting for this: a right that is missing shows at the write, too, and this may take a second for
        // each kind.
        let task = tokio::spawn(async move {
            match check.missing(&manifest, writer, &informers).await {
                Ok(missing) => check.report(&manifest, &missing),
                Err(error) => tracing::warn!(
                    plugin = manifest.name,
                    "failed to ask the API server whether the host has the rights that the plugin needs: {}",
                    chain(&error)
                ),
            }
        });
        let mut running = self.running();
        let checks = running.entry(plugin.name.clone()).or_default();
        checks.retain(|check| !check.is_finished());
        checks.push(task.abort_handle());
    }

    /// Ends the checks for a plugin that is gone: their results are nobody's.
    pub fn stop(&self, plugin: &str) {
        self.running().remove(plugin).iter().flatten().for_each(AbortHandle::abort);
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Vec<AbortHandle>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, manifest: &Manifest, missing: &[MissingRight]) {
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

    async fn missing(
        &self,
        manifest: &Manifest,
        writer: Writer,
        informers: &[Arc<Informer>],
    ) -> Result<Vec<MissingRight>, kube::Error> {
        let mut missing = Vec::new();
        for right in of_host(manifest, writer) {
            let served = ServedKind::find(&right.kind, informers).await;
            let namespace = self.namespace.as_deref().filter(|_| served.namespaced);
            let mut verbs = Vec::new();
            for verb in &right.verbs {
                if !self.has(&right, verb, &served.plural, namespace).await? {
                    verbs.push(*verb);
                }
            }
            if !verbs.is_empty() {
                missing.push(MissingRight {
                    verbs,
                    resource: right.resource(&served.plural),
                    group: right.kind.group().to_owned(),
                });
            }
        }
        Ok(missing)
    }

    async fn has(&self, right: &Right, verb: &str, plural: &str, namespace: Option<&str>) -> Result<bool, kube::Error> {
        // Acquiring fails only after `close`, which nobody calls.
        let _permit = self.limit.acquire().await;
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

/// How the API server serves a kind, as far as a review needs it.
struct ServedKind {
    plural: String,
    namespaced: bool,
}

impl ServedKind {
    /// Asks the informer of the kind. A kind that is not installed or not watched (Events) gets the conventional plural.
    async fn find(kind: &KindRef, informers: &[Arc<Informer>]) -> Self {
        let informer = informers.iter().find(|informer| informer.kind() == kind);
        if let Some(informer) = informer {
            informer.until(|state| *state != WatchState::Starting).await;
        }
        match informer.and_then(|informer| informer.installed()) {
            Some(found) => Self { plural: found.resource.plural.clone(), namespaced: found.namespaced },
            None => Self { plural: usual_plural(kind), namespaced: true },
        }
    }
}

/// Verbs that the host may not use on a resource.
struct MissingRight {
    verbs: Vec<&'static str>,
    resource: String,
    group: String,
}

impl fmt::Display for MissingRight {
    /// `create, patch on deployments in the group 'apps'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.verbs.join(", "), self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, " in the group '{}'", self.group) }
    }
}
