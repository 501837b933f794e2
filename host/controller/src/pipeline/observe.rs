//! Stage 2: reads the object and its children from the caches. Makes no request and decides nothing.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pilothouse_engine::{
    ContractSeries,
    contract::{self, KindRef, Readiness, RefusedChild, Request},
};

use crate::{
    cache::{Informer, WatchState},
    kinds::KnownKind,
    object::{Object, ObjectRef, describe},
    plugin::ActivePlugin,
    projection::Projected,
    readiness::ReadinessRules,
    schema::Schema,
};

/// An object and its children, as the caches have them.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The kind of the object.
    pub kind: KindRef,
    /// The object.
    pub object: Arc<Object>,
    /// The part of the object that the plugin reads; none if it reads all of it.
    pub projection: Option<String>,
    /// Its children of declared kinds.
    pub children: Vec<LiveChild>,
    /// Its children of former kinds, which the plugin no longer declares. The plugin does not see them.
    pub former: Vec<LiveChild>,
    /// The child kinds that are installed.
    pub kinds: BTreeMap<KindRef, KnownKind>,
    /// The schema of the object's kind.
    pub schema: Option<Schema>,
    /// The namespaces that a cluster-scoped object may have children in; none for all.
    pub namespaces: Option<BTreeSet<Arc<str>>>,
    /// By which the children are judged.
    pub readiness: ReadinessRules,
}

/// A child that exists.
#[derive(Clone, Debug)]
pub struct LiveChild {
    /// Its kind.
    pub kind: KindRef,
    /// The child.
    pub object: Arc<Object>,
    /// The part of it that the plugin reads.
    pub projection: Projected,
}

/// Why an object cannot be reconciled now.
#[derive(Clone, Debug, PartialEq)]
pub enum ObserveError {
    /// The object does not exist: it was deleted.
    Gone,
    /// An informer has not synced yet. When it does, it triggers a reconcile.
    NotSynced,
    /// The API server refuses to list the children of a kind.
    Unknown {
        /// The kind.
        kind: KindRef,
        /// The error of the informer.
        why: String,
    },
}

/// Reads an object and its children.
///
/// # Errors
/// [`ObserveError`]. The caller must not write or delete anything then: a child that is not in the cache may exist.
pub fn observe(plugin: &ActivePlugin, name: &ObjectRef) -> Result<Observed, ObserveError> {
    let object = plugin.objects.store().get(name).ok_or(ObserveError::Gone)?;
    let owned = |kind: &KindRef, watched: &Informer| {
        let live = |object: Arc<Object>| {
            let projection = plugin.projections.of_child(kind, &object);
            LiveChild { kind: kind.clone(), object, projection }
        };
        // An object in a namespace has no children elsewhere, whatever their labels say.
        let is_in_reach =
            |child: &Arc<Object>| object.name.namespace.is_empty() || child.name.namespace == object.name.namespace;
        let owned = watched.store().owned_by(&object.uid).into_iter().filter(|child| plugin.has_child(child));
        owned.filter(is_in_reach).map(live).collect::<Vec<_>>()
    };
    let (mut children, mut kinds) = (Vec::new(), BTreeMap::new());
    for (kind, watched) in &plugin.children {
        match watched.state() {
            WatchState::Synced => {}
            // A kind that is not installed has no objects, so nothing is unknown. If the plugin returns such a child, the check
            // refuses it.
            WatchState::NotInstalled => continue,
            WatchState::Failing(failure) => {
                return Err(ObserveError::Unknown { kind: kind.clone(), why: failure.why });
            }
            WatchState::Starting => return Err(ObserveError::NotSynced),
        }
        children.extend(owned(kind, watched));
        let known = |installed| KnownKind { installed, schema: watched.schema() };
        kinds.extend(watched.installed().map(|installed| (kind.clone(), known(installed))));
    }
    // A former kind is only needed for pruning, which can wait. A reconcile does not wait for its informer.
    let synced = plugin.former.iter().filter(|(_, watched)| watched.state() == WatchState::Synced);
    let former = synced.flat_map(|(kind, watched)| owned(kind, watched)).collect();
    let projection = plugin.projections.of_object(&object);
    let (kind, schema) = (plugin.objects.kind().clone(), plugin.objects.schema());
    let served = plugin.namespaces.as_ref().filter(|_| object.name.namespace.is_empty());
    let namespaces = served.map(|served| served.all());
    let readiness = plugin.readiness.clone();
    Ok(Observed { kind, object, projection, children, former, kinds, schema, namespaces, readiness })
}

impl LiveChild {
    /// The text that the plugin gets; none if it reads nothing of this child.
    pub fn shown(&self) -> Option<Cow<'_, str>> {
        match &self.projection {
            Projected::All => Some(self.object.text.read()),
            Projected::Part(text) => Some(Cow::Borrowed(text)),
            Projected::Nothing => None,
        }
    }
}

impl Observed {
    /// The namespaces that have children of the object and that the plugin does not work in any more.
    pub fn unserved_namespaces(&self) -> BTreeSet<&str> {
        let Some(served) = &self.namespaces else { return BTreeSet::new() };
        let of_children = self.all_children().map(|child| &child.object.name.namespace);
        let elsewhere = of_children.filter(|namespace| !namespace.is_empty() && !served.contains(*namespace));
        elsewhere.map(|namespace| &**namespace).collect()
    }

    /// The request of a call of a plugin that speaks this version of the contract.
    pub fn request(&self, contract: ContractSeries, refused: Vec<RefusedChild>, config: &str) -> Request {
        let shown = |child: &LiveChild| {
            let object = child.shown()?.into_owned();
            // To read the readiness is to parse the child, which is not done for who cannot be told.
            let readiness = if contract.has_readiness() { self.readiness_of(child) } else { Readiness::current() };
            Some(contract::LiveChild { object, readiness })
        };
        Request {
            object: self.projection.clone().unwrap_or_else(|| self.object.text.read().into_owned()),
            children: self.shown_children().filter_map(shown).collect(),
            refused,
            config: config.to_owned(),
        }
    }

    /// The children of declared kinds, without those that garbage collection released.
    pub fn own_children(&self) -> impl Iterator<Item = &LiveChild> {
        self.children.iter().filter(|child| !self.is_released(&child.object))
    }

    /// The children in a request, in its order.
    pub fn shown_children(&self) -> impl Iterator<Item = &LiveChild> {
        self.own_children().filter(|child| child.projection != Projected::Nothing)
    }

    /// How far a child is.
    pub fn readiness_of(&self, child: &LiveChild) -> Readiness {
        self.readiness.readiness(&child.kind, &child.object)
    }

    /// The children that are not as their specs say, each in words. Those that are left, by their UIDs, do not count: the plugin no
    /// longer wants them.
    pub fn unready(&self, left: &BTreeSet<Box<str>>) -> Vec<String> {
        let counted = self.own_children().filter(|child| !left.contains(&child.object.uid));
        let unready = counted.filter_map(|LiveChild { kind, object, .. }| {
            let why = self.readiness.obstacle(kind, object)?;
            Some(format!("{}: {why}", describe(kind, &object.name)))
        });
        unready.collect()
    }

    /// All children, including those of former kinds.
    pub fn all_children(&self) -> impl Iterator<Item = &LiveChild> {
        self.children.iter().chain(&self.former)
    }

    /// Whether garbage collection released a child from its deleted owner (`kubectl delete --cascade=orphan`). It belongs to nobody
    /// now and must stay as it is.
    pub fn is_released(&self, child: &Object) -> bool {
        self.object.deleting && child.controller.is_none() && !child.is_kept()
    }

    /// The schema of a child kind.
    pub fn schema_of(&self, kind: &KindRef) -> Option<&Schema> {
        self.kinds.get(kind).and_then(|known| known.schema.as_ref())
    }

    /// The identities of the child kinds' schemas, without the built-in ones, which never change.
    pub fn schemas(&self) -> impl Iterator<Item = (&KindRef, usize)> {
        let others = self.kinds.iter().filter(|(kind, _)| !Schema::is_built_in(&kind.api_version, &kind.kind));
        others.filter_map(|(kind, known)| Some((kind, known.schema.as_ref()?.address())))
    }

    /// The children of declared kinds by kind, namespace and name. A manifest declares each kind in one version only, so the
    /// version is no obstacle.
    pub fn children_by_name(&self) -> BTreeMap<(&KindRef, &ObjectRef), &Arc<Object>> {
        self.children.iter().map(|child| ((&child.kind, &child.object.name), &child.object)).collect()
    }
}
