//! The record of child kinds: the kinds of which a plugin may have created children, for each custom resource. It is a ConfigMap in
//! the host's own namespace and is written before the first child of a kind is created. Children of a kind that a later version
//! no longer declares are therefore found and pruned, even after a restart. Decides nothing about children itself.

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

use super::{departed::Leaver, record_key::RecordKey};
use crate::{errors::chain, labels};

/// Name of the ConfigMap.
const NAME: &str = "pilothouse-kinds";

/// How often a failed read or write of the record is retried.
const RETRY: Duration = Duration::from_secs(1);

/// The record of child kinds.
pub struct KindsRecord {
    api: Api<ConfigMap>,
    namespace: String,
    /// The only namespace that the host watches. It is part of the key, so hosts for several namespaces can share a record.
    watched: Option<String>,
    problem: Mutex<Option<String>>,
}

impl KindsRecord {
    /// The record in `namespace`, for a host that watches one namespace or all. Makes no request yet.
    pub fn new(client: Client, namespace: &str, watched: Option<&str>) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, namespace: namespace.to_owned(), watched: watched.map(str::to_owned), problem: Mutex::default() }
    }

    /// The recorded child kinds of a custom resource that are not among these; none if nothing is recorded. Writes nothing.
    ///
    /// # Errors
    /// The error of the request.
    pub async fn former(
        &self,
        recorded: RecordKey<'_>,
        children: &[KindRef],
    ) -> Result<Option<BTreeSet<KindRef>>, kube::Error> {
        let known = self.read(recorded).await?;
        Ok(known.map(|known| former(&known, children).collect()))
    }

    /// Adds child kinds of a custom resource, and returns the recorded kinds that are not among them. Retries until the API server
    /// accepts it: without the record, children could be left behind for ever.
    pub async fn add(&self, recorded: RecordKey<'_>, children: &[KindRef]) -> BTreeSet<KindRef> {
        loop {
            match self.try_add(recorded, children).await {
                Ok(former) => {
                    self.replace_problem(None);
                    return former;
                }
                Err(error) => self.pause(&error).await,
            }
        }
    }

    /// Notes what has to be known of a plugin when it is gone. Retries until the API server accepts it: without the note, a host that
    /// starts without the plugin could not delete its children in their order.
    pub async fn add_leaver(&self, leaver: &Leaver) {
        while let Err(error) = self.try_add_leaver(leaver).await {
            self.pause(&error).await;
        }
        self.replace_problem(None);
    }

    /// The plugins that were noted, with the kinds of which they may have children. Retries until the API server answers.
    pub async fn leavers(&self) -> Vec<(Leaver, BTreeSet<KindRef>)> {
        let data = loop {
            match self.api.get_opt(NAME).await {
                Ok(found) => break found.and_then(|found| found.data).unwrap_or_default(),
                Err(error) => self.pause(&error).await,
            }
        };
        self.replace_problem(None);
        // Whatever somebody broke is left out, as in `parse`.
        let leavers = data.values().filter_map(|text| serde_json::from_str::<Leaver>(text).ok());
        let own = leavers.filter(|leaver| data.contains_key(&self.leaver_key(leaver)));
        own.map(|leaver| {
            let kinds =
                data.get(&self.key(leaver.recorded(&leaver.reconciles()))).map(|text| parse(text)).unwrap_or_default();
            (leaver, kinds)
        })
        .collect()
    }

    async fn try_add_leaver(&self, leaver: &Leaver) -> Result<(), kube::Error> {
        let (key, text) = (self.leaver_key(leaver), json!(leaver).to_string());
        let found = self.api.get_opt(NAME).await?.and_then(|found| found.data).unwrap_or_default();
        if found.get(&key) == Some(&text) {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"data": {key: text}}));
        self.api.patch(NAME, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Removes the note of a plugin of which nothing is left, and its kinds. Retries until the API server accepts it.
    pub async fn remove_leaver(&self, leaver: &Leaver) {
        let (reconciles, note) = (leaver.reconciles(), self.leaver_key(leaver));
        let kinds = self.key(leaver.recorded(&reconciles));
        let patch = Patch::Merge(json!({"data": {note: null, kinds: null}}));
        while let Err(error) = self.api.patch(NAME, &PatchParams::default(), &patch).await {
            self.pause(&error).await;
        }
        self.replace_problem(None);
    }

    /// The key of a note.
    fn leaver_key(&self, leaver: &Leaver) -> String {
        format!("{}_leaver", self.key(leaver.recorded(&leaver.reconciles())))
    }

    /// Removes kinds without children. Retries until the API server accepts it.
    pub async fn remove(&self, recorded: RecordKey<'_>, kinds: &BTreeSet<KindRef>) {
        while let Err(error) = self.try_remove(recorded, kinds).await {
            self.pause(&error).await;
        }
        self.replace_problem(None);
    }

    /// Why the record cannot be read or written at present.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the present problem, and returns whether it differs from the one before.
    fn replace_problem(&self, problem: Option<String>) -> bool {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *known != problem;
        *known = problem;
        changed
    }

    async fn try_add(&self, recorded: RecordKey<'_>, children: &[KindRef]) -> Result<BTreeSet<KindRef>, kube::Error> {
        let found = self.read(recorded).await?;
        let known = found.clone().unwrap_or_default();
        let former: BTreeSet<_> = former(&known, children).collect();
        // Former kinds stay in the record until `remove`: this version may end before it has pruned all of their children.
        let all = children.iter().chain(&former).cloned().collect();
        match found {
            None => self.create(recorded, &all).await?,
            Some(_) if all != known => self.write(recorded, &all).await?,
            Some(_) => {}
        }
        Ok(former)
    }

    async fn try_remove(&self, recorded: RecordKey<'_>, kinds: &BTreeSet<KindRef>) -> Result<(), kube::Error> {
        let known = self.read(recorded).await?.unwrap_or_default();
        self.write(recorded, &known.difference(kinds).cloned().collect()).await
    }

    /// Logs an error unless it is the same as before, and waits until the next attempt.
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

    /// The kinds recorded for a custom resource; none if the ConfigMap does not exist.
    async fn read(&self, recorded: RecordKey<'_>) -> Result<Option<BTreeSet<KindRef>>, kube::Error> {
        let Some(found) = self.api.get_opt(NAME).await? else { return Ok(None) };
        let data = found.data.unwrap_or_default();
        Ok(Some(data.get(&self.key(recorded)).map(|text| parse(text)).unwrap_or_default()))
    }

    async fn write(&self, recorded: RecordKey<'_>, kinds: &BTreeSet<KindRef>) -> Result<(), kube::Error> {
        // A merge patch changes this key only, so plugins that start at the same time do not undo each other's entries.
        let patch = Patch::Merge(json!({"data": {self.key(recorded): to_text(kinds)}}));
        self.api.patch(NAME, &PatchParams::default(), &patch).await.map(drop)
    }

    /// Creates the ConfigMap, or adds to it if another plugin has created it in the meantime.
    async fn create(&self, recorded: RecordKey<'_>, kinds: &BTreeSet<KindRef>) -> Result<(), kube::Error> {
        let data = BTreeMap::from([(self.key(recorded), to_text(kinds))]);
        let mut record = ConfigMap { data: Some(data), ..ConfigMap::default() };
        record.metadata.name = Some(NAME.to_owned());
        record.metadata.labels = Some([(labels::MANAGED_BY.to_owned(), labels::HOST.to_owned())].into());
        match self.api.create(&PostParams::default(), &record).await {
            Err(kube::Error::Api(status)) if status.code == 409 => self.write(recorded, kinds).await,
            result => result.map(drop),
        }
    }

    /// The key in the ConfigMap. The underscore separates unambiguously, because namespaces and kinds contain none.
    fn key(&self, recorded: RecordKey<'_>) -> String {
        let RecordKey { reconciles, decorator } = recorded;
        let decorator = decorator.map(|plugin| format!("_decorator-{plugin}")).unwrap_or_default();
        let kind = format!("{}.{}{decorator}", reconciles.kind, reconciles.group());
        self.watched.as_ref().map_or_else(|| kind.clone(), |namespace| format!("{namespace}_{kind}"))
    }
}

/// The recorded kinds that are not declared. All versions of a kind serve the same objects, so the version does not matter.
fn former(known: &BTreeSet<KindRef>, declared: &[KindRef]) -> impl Iterator<Item = KindRef> {
    known.iter().filter(move |known| !declared.iter().any(|declared| known.is_same_kind(declared))).cloned()
}

/// One kind per line: `apps/v1 Deployment`.
fn to_text(kinds: &BTreeSet<KindRef>) -> String {
    kinds.iter().map(|kind| format!("{} {}\n", kind.api_version, kind.kind)).collect()
}

/// Parses the text of [`to_text`]. Malformed lines are skipped, because users can edit the ConfigMap.
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
        assert_eq!(parse(&to_text(&kinds)), kinds);
        assert_eq!(parse("v1 Secret\nnonsense\n\na/b/c Kind\n"), BTreeSet::from([KindRef::new("v1", "Secret")]));
    }

    #[test]
    fn another_version_of_a_kind_is_the_same_kind() {
        let known = BTreeSet::from([KindRef::new("apps/v1beta1", "Deployment"), KindRef::new("v1", "Secret")]);
        let left = former(&known, &[KindRef::new("apps/v1", "Deployment")]).collect::<Vec<_>>();
        assert_eq!(left, [KindRef::new("v1", "Secret")]);
    }
}
