//! Stage 2: what is there. Reads the object and its children from the caches, at one moment, without a request.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::contract::{KindRef, Request};

use crate::{
    cache::{Informer, WatchState},
    kinds::KnownKind,
    object::{Object, ObjectRef},
    plugin::{ActivePlugin, projection::Projected},
    schema::Schema,
};

/// An object and its children as the caches know them.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The kind of the object.
    pub kind: KindRef,
    /// The object.
    pub object: Arc<Object>,
    /// What the plugin is shown of the object, where that is not everything.
    pub projection: Option<String>,
    /// Its children, by kind and name.
    pub children: Vec<LiveChild>,
    /// Its children of kinds that the plugin no longer declares. The plugin does not see them.
    pub former: Vec<LiveChild>,
    /// What is known of the child kinds that are installed.
    pub kinds: BTreeMap<KindRef, KnownKind>,
    /// The schema of the object's kind.
    pub schema: Option<Schema>,
}

/// A child that is there.
#[derive(Clone, Debug)]
pub struct LiveChild {
    /// Its kind.
    pub kind: KindRef,
    /// The child.
    pub object: Arc<Object>,
    /// What the plugin is shown of it.
    pub projection: Projected,
}

/// Why nothing can be decided now.
#[derive(Clone, Debug, PartialEq)]
pub enum Unobserved {
    /// The object is not there: it was deleted.
    Gone,
    /// The children of a kind are not known yet; their cache asks for the object once they are.
    NotSynced,
    /// The children of a kind are not known, for the API server does not tell them.
    Unknown {
        /// The kind.
        kind: KindRef,
        /// Why.
        why: String,
    },
}

/// Reads an object and its children.
///
/// # Errors
/// [`Unobserved`]; nothing may be written or deleted then.
pub fn observe(plugin: &ActivePlugin, name: &ObjectRef) -> Result<Observed, Unobserved> {
    let object = plugin.objects.store().get(name).ok_or(Unobserved::Gone)?;
    let owned = |kind: &KindRef, watched: &Informer| {
        let live = |object: Arc<Object>| {
            let projection = plugin.projections.of_child(kind, &object);
            LiveChild { kind: kind.clone(), object, projection }
        };
        watched.store().owned_by(&object.uid).into_iter().map(live).collect::<Vec<_>>()
    };
    let (mut children, mut kinds) = (Vec::new(), BTreeMap::new());
    for (kind, watched) in &plugin.children {
        match watched.state() {
            WatchState::Synced => {}
            WatchState::NotInstalled => continue,
            WatchState::Failing(why) => return Err(Unobserved::Unknown { kind: kind.clone(), why }),
            WatchState::Starting => return Err(Unobserved::NotSynced),
        }
        children.extend(owned(kind, watched));
        let known = |installed| KnownKind { installed, schema: watched.schema() };
        kinds.extend(watched.installed().map(|installed| (kind.clone(), known(installed))));
    }
    // Nothing waits for a former kind: what is not known of it is pruned later.
    let synced = plugin.former.iter().filter(|(_, watched)| watched.state() == WatchState::Synced);
    let former = synced.flat_map(|(kind, watched)| owned(kind, watched)).collect();
    let projection = plugin.projections.of_object(&object);
    let (kind, schema) = (plugin.objects.kind().clone(), plugin.objects.schema());
    Ok(Observed { kind, object, projection, children, former, kinds, schema })
}

impl LiveChild {
    /// What the plugin is shown of it; none: nothing of it.
    pub fn shown(&self) -> Option<&str> {
        match &self.projection {
            Projected::All => Some(&self.object.text),
            Projected::Part(text) => Some(text),
            Projected::Nothing => None,
        }
    }
}

impl Observed {
    /// The request that the plugin gets.
    pub fn request(&self, config: &str) -> Request {
        let shown = self.children.iter().filter(|child| !self.is_released(&child.object));
        Request {
            object: self.projection.as_deref().unwrap_or(&self.object.text).to_owned(),
            children: shown.filter_map(|child| child.shown().map(str::to_owned)).collect(),
            config: config.to_owned(),
        }
    }

    /// All children that are there: also those of former kinds.
    pub fn all_children(&self) -> impl Iterator<Item = &LiveChild> {
        self.children.iter().chain(&self.former)
    }

    /// Whether a child was released, for its object is deleted without it: it is nobody's now, and stays as it is.
    pub fn is_released(&self, child: &Object) -> bool {
        self.object.deleting && child.controller.is_none() && !child.is_kept()
    }

    /// The schema of a child kind.
    pub fn schema_of(&self, kind: &KindRef) -> Option<&Schema> {
        self.kinds.get(kind).and_then(|known| known.schema.as_ref())
    }

    /// Names the schemas by which children are checked, but for those that a table has: these do not change.
    pub fn schemas(&self) -> impl Iterator<Item = (&KindRef, usize)> {
        let others = self.kinds.iter().filter(|(kind, _)| !Schema::is_built_in(&kind.api_version, &kind.kind));
        others.filter_map(|(kind, known)| Some((kind, known.schema.as_ref()?.address())))
    }

    /// The child of that kind, namespace and name. All of a kind are of the one version that the manifest declares.
    pub fn child(&self, kind: &KindRef, name: &ObjectRef) -> Option<&Arc<Object>> {
        let is_it = |child: &&LiveChild| child.kind == *kind && child.object.name == *name;
        self.children.iter().find(is_it).map(|child| &child.object)
    }
}
