//! The active version of a plugin: its reconciler and the informers that it uses. Immutable; a swap creates a new one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pilothouse_engine::{ContractSeries, Lookup, Manifest, Reconciler, contract::KindRef};

use super::{Division, PluginSettings, called::Called, new_version::NewVersionWindow, settings::Presence};
use crate::{
    cache::{Caches, Informer, WatchScope, WatchState},
    identity::Account,
    labels,
    leader::Permit,
    lookups::{LookedUpKind, RememberedAnswers},
    object::{Object, ObjectRef},
    observable::Observable,
    projection::Projections,
    readiness::ReadinessRules,
    served_namespaces::ServedNamespaces,
};

/// A version of a plugin with everything that its reconciles need.
pub struct ActivePlugin {
    /// The plugin itself.
    pub reconciler: Arc<dyn Reconciler>,
    /// Its name.
    pub name: Arc<str>,
    /// Its field manager.
    pub field_manager: String,
    /// Its configuration as JSON text; `null` if it has none.
    pub config: Arc<str>,
    /// The fields of objects and children that it reads.
    pub projections: Projections,
    /// By which its children are judged.
    pub readiness: ReadinessRules,
    /// The informer of the kind that it reconciles.
    pub objects: Arc<Informer>,
    /// The informers of its child kinds.
    pub children: BTreeMap<KindRef, Arc<Informer>>,
    /// The informers of former child kinds: declared by earlier versions but not by this one.
    pub former: BTreeMap<KindRef, Arc<Informer>>,
    /// Whether this version is no longer active.
    superseded: Observable<bool>,
    /// Guards the first minute of this version.
    pub new_version: NewVersionWindow,
    /// The kinds that it looks up.
    pub lookups: BTreeMap<KindRef, LookedUpKind>,
    /// The account that it works with; none for the host's own.
    pub account: Option<Account>,
    /// How many of its objects are reconciled at once; none for what the host says.
    pub concurrency: Option<usize>,
    /// The namespaces that it works in; none for all.
    pub namespaces: Option<Arc<ServedNamespaces>>,
    /// Whether it is there.
    pub presence: Presence,
    /// The name of its `Plugin`; none if it comes from elsewhere.
    pub said_by: Option<Arc<str>>,
    /// Which objects it answers; none for all.
    pub division: Option<Arc<Division>>,
    /// The finalizers of the plugin's versions, which objects may have because of another one.
    pub other_finalizers: Arc<BTreeSet<String>>,
    /// What its writes need beside the host's permission, where hosts share the work.
    pub permit: Option<Permit>,
}

impl ActivePlugin {
    /// Starts the informers that a plugin needs, or shares those that run already.
    pub fn new(reconciler: Arc<dyn Reconciler>, settings: PluginSettings, caches: &Caches) -> Self {
        let PluginSettings { config, grants: _, account, limits, namespaces, presence, said_by } = settings;
        let manifest = reconciler.manifest();
        let start_all = |kinds: &[KindRef], scope: WatchScope| {
            kinds.iter().map(|kind| (kind.clone(), caches.informer(kind, scope.clone()))).collect::<BTreeMap<_, _>>()
        };
        // One for all kinds: a manifest may have a hundred of them.
        let answers = Arc::<RememberedAnswers>::default();
        let looked_up = |declared: &Lookup| {
            let informer = caches.informer(&declared.kind, WatchScope::of_lookup(declared));
            let answers = answers.clone();
            (declared.kind.clone(), LookedUpKind { declared: declared.clone(), informer, answers })
        };
        Self {
            name: manifest.name.as_str().into(),
            field_manager: labels::field_manager(&manifest.name),
            // The contract has no optional configuration, so none is the JSON `null`.
            config: config.unwrap_or_else(|| "null".into()),
            projections: Projections::declared(manifest),
            readiness: ReadinessRules::declared(manifest),
            objects: caches.informer(&manifest.reconciles, WatchScope::All),
            children: start_all(&manifest.children, WatchScope::Children),
            former: BTreeMap::new(),
            superseded: Observable::new(false),
            new_version: NewVersionWindow::begin([]),
            lookups: manifest.lookups.iter().map(looked_up).collect(),
            account,
            concurrency: limits.concurrency,
            namespaces: namespaces.map(|selector| Arc::new(ServedNamespaces::follow(selector, caches))),
            presence,
            said_by,
            division: None,
            other_finalizers: Arc::default(),
            permit: None,
            reconciler,
        }
    }

    /// Also watches former child kinds, to prune their children.
    pub fn watch_former(&mut self, kinds: &BTreeSet<KindRef>, caches: &Caches) {
        self.former = kinds.iter().map(|kind| (kind.clone(), caches.informer(kind, WatchScope::Children))).collect();
    }

    /// Starts the guarded first minute, with all objects that exist now and that it answers.
    pub fn begin_work(&mut self) {
        let answered = match &self.division {
            None => self.objects.store().names(),
            Some(_) => self.answered_objects().iter().map(|object| object.name.clone()).collect(),
        };
        self.new_version = NewVersionWindow::begin(answered);
    }

    /// How many objects it answers.
    pub fn answered(&self) -> usize {
        match (&self.division, &self.manifest().decorates) {
            (None, None) => self.objects.store().len(),
            _ => self.answered_objects().len(),
        }
    }

    /// The objects that it answers.
    pub fn answered_objects(&self) -> Vec<Arc<Object>> {
        self.objects.store().select(None, |object| self.selects(object) && self.answers(object))
    }

    /// Whether this is the version that answers an object.
    pub fn answers(&self, object: &Object) -> bool {
        self.division.as_ref().is_none_or(|division| division.digest_for(object) == self.reconciler.digest())
    }

    /// Marks this version as no longer active.
    pub fn supersede(&self) {
        self.superseded.set(true);
    }

    /// Waits until this version is no longer active.
    pub async fn until_superseded(&self) {
        self.superseded.wait_for(|superseded| *superseded).await;
    }

    /// The digest, shortened for people who have to copy it.
    pub fn short_digest(&self) -> &str {
        let digest = self.reconciler.digest();
        &digest[..digest.floor_char_boundary(12)]
    }

    /// The `kubectl` command that annotates one of its objects.
    pub fn how_to_annotate(&self, object: &Object, annotation: &str) -> String {
        let kind = self.objects.kind();
        let installed = self.objects.installed();
        let plural = installed.map_or_else(|| kind.kind.to_lowercase(), |found| found.resource.plural.clone());
        let ObjectRef { namespace, name } = &object.name;
        let namespace = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
        format!("kubectl annotate{namespace} {plural}.{} {name} {annotation}", kind.group())
    }

    /// Stops watching the former child kinds without children left to prune, and returns them.
    pub fn drop_pruned(&mut self) -> BTreeSet<KindRef> {
        let is_left = |child: &Object| {
            let is_decorators = self.manifest().decorates.is_some();
            let of_plugin = child.labels.get(labels::PLUGIN).is_some_and(|plugin| *plugin == *self.name);
            let reconciles = self.objects.kind();
            let of_kind = child.controller.as_ref().is_some_and(|owner| *owner.kind == *reconciles.kind);
            (is_decorators || of_plugin || of_kind) && self.may_delete(child)
        };
        let is_pruned = |informer: &Informer| match informer.state() {
            WatchState::Synced => informer.store().select(None, is_left).is_empty(),
            WatchState::NotInstalled => true,
            // What is not known may exist, so the kind stays in the record.
            WatchState::Starting | WatchState::Failing(_) => false,
        };
        let pruned: BTreeSet<_> =
            self.former.iter().filter(|(_, informer)| is_pruned(informer)).map(|(kind, _)| kind.clone()).collect();
        self.former.retain(|kind, _| !pruned.contains(kind));
        pruned
    }

    /// The informer of a present or former child kind.
    pub fn child_watch(&self, kind: &KindRef) -> Option<&Arc<Informer>> {
        self.children.get(kind).or_else(|| self.former.get(kind))
    }

    /// Whether it reconciles objects of this namespace; empty for cluster-scoped objects.
    pub fn serves(&self, namespace: &str) -> bool {
        namespace.is_empty() || self.namespaces.as_ref().is_none_or(|namespaces| namespaces.contains(namespace))
    }

    /// Whether it owns the objects of a kind.
    pub fn owns(&self, kind: &KindRef) -> bool {
        self.manifest().decorates.is_none() && self.objects.kind().is_same_kind(kind)
    }

    /// Whether a child of one of its objects is its own: an object may have children of several plugins, of which one at most owns it.
    pub fn has_child(&self, child: &Object) -> bool {
        match (child.labels.get(labels::DECORATOR), &self.manifest().decorates) {
            (Some(decorator), Some(_)) => *decorator == *self.name,
            (by, decorates) => by.is_none() && decorates.is_none(),
        }
    }

    /// Whether a child is its own, and goes once it is no longer wanted.
    fn may_delete(&self, child: &Object) -> bool {
        self.has_child(child) && !child.is_kept()
    }

    /// Whether it works on an object: a decorator works on those that it selects, until it is gone.
    pub fn selects(&self, object: &Object) -> bool {
        let Some(decorates) = &self.manifest().decorates else { return true };
        self.presence == Presence::AtWork && decorates.selects(|key| object.labels.get(key), || object.annotations())
    }

    /// Whether an object has labels or annotations of this decorator.
    pub fn is_decorated(&self, object: &Object) -> bool {
        self.manifest().decorates.is_some() && object.annotation(&labels::decoration(&self.name)).is_some()
    }

    /// Whether anything is left that it has made as a decorator, or may be.
    pub fn has_decorations_left(&self) -> bool {
        let mut kinds = self.children.values().chain(self.former.values());
        let has_children = |informer: &Arc<Informer>| match informer.state() {
            WatchState::Synced => !informer.store().select(None, |child| self.may_delete(child)).is_empty(),
            WatchState::NotInstalled => false,
            WatchState::Starting | WatchState::Failing(_) => true,
        };
        let is_left = |object: &Object| self.is_decorated(object) && !object.deleting;
        kinds.any(has_children) || !self.objects.store().select(None, is_left).is_empty()
    }

    /// What the plugin declares.
    pub fn manifest(&self) -> &Manifest {
        self.reconciler.manifest()
    }

    /// What tells calls of it from calls of others.
    pub fn called(&self) -> Called<'_> {
        Called { digest: self.reconciler.digest(), contract: self.contract(), config: &self.config }
    }

    /// The version of the contract that it speaks.
    pub fn contract(&self) -> ContractSeries {
        self.manifest().series()
    }

    /// The informers that it cannot work without. A kind that it looks up is optional, even if it is a child kind too, because the
    /// lookup tells the plugin that the kind is not installed. Former kinds are optional as well.
    pub fn required(&self) -> impl Iterator<Item = &Arc<Informer>> {
        let is_optional = |kind: &KindRef, informer: &Informer| {
            self.lookups.contains_key(kind) && informer.state() == WatchState::NotInstalled
        };
        let children = self.children.iter().filter(move |(kind, informer)| !is_optional(kind, informer));
        let namespaces = self.namespaces.iter().map(|namespaces| namespaces.informer());
        std::iter::once(&self.objects).chain(children.map(|(_, informer)| informer)).chain(namespaces)
    }

    /// The informers of all kinds that it declares.
    pub fn informers(&self) -> impl Iterator<Item = &Arc<Informer>> {
        let lookups = self.lookups.values().map(|lookup| &lookup.informer);
        let namespaces = self.namespaces.iter().map(|namespaces| namespaces.informer());
        std::iter::once(&self.objects).chain(self.children.values()).chain(lookups).chain(namespaces)
    }

    /// Logs which of its kinds are not installed. Kinds that it only looks up are optional.
    pub async fn log_missing_kinds(&self) {
        let (plugin, objects) = (&*self.name, std::iter::once(&self.objects));
        let children = self.children.iter().filter(|(kind, _)| !self.lookups.contains_key(*kind));
        for informer in objects.chain(children.map(|(_, informer)| informer)) {
            informer.until(|state| *state != WatchState::Starting).await;
            if informer.state() == WatchState::NotInstalled {
                let kind = informer.kind();
                tracing::warn!(plugin, %kind, "the kind is not installed; apply its CustomResourceDefinition. Waiting for it");
            }
        }
        for (kind, LookedUpKind { informer, .. }) in &self.lookups {
            informer.until(|state| *state != WatchState::Starting).await;
            if informer.state() == WatchState::NotInstalled {
                tracing::info!(plugin, %kind, "a kind that the plugin looks up is not installed; it goes on without");
            }
        }
    }

    /// Waits until reconciling can start: the cache of its objects is synced, and each other cache is synced or has reported why
    /// it is not.
    pub async fn until_ready(&self) {
        self.objects.until(|state| *state == WatchState::Synced).await;
        for informer in self.informers().chain(self.former.values()) {
            informer.until(|state| *state != WatchState::Starting).await;
        }
    }
}
