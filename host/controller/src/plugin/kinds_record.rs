//! The record of child kinds: which kinds the plugins of a custom resource have ever made children of. It lives in a
//! ConfigMap in the host's own namespace and is written before the first child of a kind, so that children of a kind
//! which a later version no longer declares are still found and pruned, whatever was restarted in between. Decides
//! nothing about children itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use pilothouse_engine::contract::KindRef;
use serde_json::json;

use crate::{errors::chain, labels};

/// Name of the ConfigMap.
const NAME: &str = "pilothouse-kinds";

/// How often a record that cannot be read or written is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The record.
pub struct KindsRecord {
    api: Api<ConfigMap>,
    namespace: String,
    /// The only namespace that the host watches: hosts of several namespaces can share a record.
    watched: Option<String>,
    problem: Mutex<Option<String>>,
}

impl KindsRecord {
    /// The record in a namespace, for a host that watches one namespace or all. Asks for nothing yet.
    pub fn new(client: Client, namespace: &str, watched: Option<&str>) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, namespace: namespace.to_owned(), watched: watched.map(str::to_owned), problem: Mutex::default() }
    }

    /// Adds child kinds of a custom resource and tells those that were recorded before and are not among them. Tries until
    /// the API server has taken it: without the record, children could be left behind for ever.
    pub async fn add(&self, reconciles: &KindRef, children: &[KindRef]) -> BTreeSet<KindRef> {
        loop {
            match self.try_add(reconciles, children).await {
                Ok(former) => {
                    self.replace_problem(None);
                    return former;
                }
                Err(error) => self.pause(&error).await,
            }
        }
    }

    /// Takes kinds off that have no children any more. Tries until the API server has taken it.
    pub async fn remove(&self, reconciles: &KindRef, kinds: &BTreeSet<KindRef>) {
        while let Err(error) = self.try_remove(reconciles, kinds).await {
            self.pause(&error).await;
        }
        self.replace_problem(None);
    }

    /// Why the record cannot be read or written now, if so.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether this is another problem than before.
    fn replace_problem(&self, problem: Option<String>) -> bool {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *known != problem;
        *known = problem;
        changed
    }

    async fn try_add(&self, reconciles: &KindRef, children: &[KindRef]) -> Result<BTreeSet<KindRef>, kube::Error> {
        let found = self.read(reconciles).await?;
        let known = found.clone().unwrap_or_default();
        let former: BTreeSet<_> = former(&known, children).collect();
        let all = children.iter().chain(&former).cloned().collect();
        match found {
            None => self.create(reconciles, &all).await?,
            Some(_) if all != known => self.write(reconciles, &all).await?,
            Some(_) => {}
        }
        Ok(former)
    }

    async fn try_remove(&self, reconciles: &KindRef, kinds: &BTreeSet<KindRef>) -> Result<(), kube::Error> {
        let known = self.read(reconciles).await?.unwrap_or_default();
        self.write(reconciles, &known.difference(kinds).cloned().collect()).await
    }

    /// Tells what is wrong, once as long as it stays the same, and waits for the next try.
    async fn pause(&self, error: &kube::Error) {
        let problem = format!(
            "the record of child kinds (ConfigMap '{NAME}' in the host's own namespace '{}') cannot be read or written; the \
             host needs get, create and patch on configmaps there: {}",
            self.namespace,
            chain(error)
        );
        if self.replace_problem(Some(problem.clone())) {
            tracing::warn!("{problem}");
        }
        tokio::time::sleep(RETRY).await;
    }

    /// The kinds recorded for a custom resource; none if there is no record of any.
    async fn read(&self, reconciles: &KindRef) -> Result<Option<BTreeSet<KindRef>>, kube::Error> {
        let Some(found) = self.api.get_opt(NAME).await? else { return Ok(None) };
        let data = found.data.unwrap_or_default();
        Ok(Some(data.get(&self.key(reconciles)).map(|text| parse(text)).unwrap_or_default()))
    }

    async fn write(&self, reconciles: &KindRef, kinds: &BTreeSet<KindRef>) -> Result<(), kube::Error> {
        let patch = Patch::Merge(json!({"data": {self.key(reconciles): print(kinds)}}));
        self.api.patch(NAME, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Makes the record, or adds to it where another plugin was quicker.
    async fn create(&self, reconciles: &KindRef, kinds: &BTreeSet<KindRef>) -> Result<(), kube::Error> {
        let data = BTreeMap::from([(self.key(reconciles), print(kinds))]);
        let mut record = ConfigMap { data: Some(data), ..ConfigMap::default() };
        record.metadata.name = Some(NAME.to_owned());
        record.metadata.labels = Some([(labels::MANAGED_BY.to_owned(), labels::HOST.to_owned())].into());
        match self.api.create(&PostParams::default(), &record).await {
            Err(kube::Error::Api(status)) if status.code == 409 => self.write(reconciles, kinds).await,
            result => result.map(drop),
        }
    }

    /// A key of a ConfigMap: neither namespaces nor kinds have an underscore.
    fn key(&self, reconciles: &KindRef) -> String {
        let kind = format!("{}.{}", reconciles.kind, reconciles.group());
        self.watched.as_ref().map_or_else(|| kind.clone(), |namespace| format!("{namespace}_{kind}"))
    }
}

/// The known kinds that are not among the declared ones. Versions of a group have the same objects.
fn former(known: &BTreeSet<KindRef>, declared: &[KindRef]) -> impl Iterator<Item = KindRef> {
    known.iter().filter(move |known| !declared.iter().any(|declared| known.is_same_kind(declared))).cloned()
}

/// One kind per line: `apps/v1 Deployment`.
fn print(kinds: &BTreeSet<KindRef>) -> String {
    kinds.iter().map(|kind| format!("{} {}\n", kind.api_version, kind.kind)).collect()
}

/// Reads what [`print`] wrote; a line that names no kind is left out.
fn parse(text: &str) -> BTreeSet<KindRef> {
    let kinds = text.lines().filter_map(|line| line.split_once(' '));
    kinds.map(|(api_version, kind)| KindRef::new(api_version, kind)).filter(KindRef::is_well_formed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_somebody_broke_is_left_out() {
        let kinds = BTreeSet::from([KindRef::new("apps/v1", "Deployment"), KindRef::new("v1", "Secret")]);
        assert_eq!(parse(&print(&kinds)), kinds);
        assert_eq!(parse("v1 Secret\nnonsense\n\na/b/c Kind\n"), BTreeSet::from([KindRef::new("v1", "Secret")]));
    }

    #[test]
    fn another_version_of_a_kind_is_the_same_kind() {
        let known = BTreeSet::from([KindRef::new("apps/v1beta1", "Deployment"), KindRef::new("v1", "Secret")]);
        let left = former(&known, &[KindRef::new("apps/v1", "Deployment")]).collect::<Vec<_>>();
        assert_eq!(left, [KindRef::new("v1", "Secret")]);
    }
}
