//! The objects and their history: one counter of revisions, every change with who made it, and what was compacted. Judges nothing.

mod object;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

pub use self::object::{Object, ObjectRef};

/// The counter of changes. Every change of any object raises it by one.
pub type Revision = u64;

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The revision that it made.
    pub revision: Revision,
    /// Who made it.
    pub user: Arc<str>,
    /// With which verb.
    pub verb: &'static str,
    /// The object before; none if it is new.
    pub before: Option<Arc<Object>>,
    /// The object after; none if it is gone.
    pub after: Option<Arc<Object>>,
    /// What a watch says of an object that is gone: its last state, with the revision of its end.
    pub last: Option<Arc<Object>>,
}

impl Change {
    /// The object that changed, in its newest state.
    pub fn object(&self) -> Option<&Arc<Object>> {
        self.after.as_ref().or(self.last.as_ref())
    }
}

/// Who makes a change.
#[derive(Clone, Debug)]
pub struct Cause {
    /// The user.
    pub user: Arc<str>,
    /// The verb.
    pub verb: &'static str,
}

/// The objects of one kind by key.
type Objects = BTreeMap<Arc<str>, Arc<Object>>;

/// All objects and all changes.
#[derive(Clone, Debug)]
pub struct Store {
    objects: HashMap<Arc<str>, Objects>,
    /// All changes in order. The first one made revision `first`.
    changes: Vec<Change>,
    first: Revision,
    /// What is at or before this revision cannot be read any more.
    compacted: Revision,
}

impl Default for Store {
    fn default() -> Self {
        // No object has the revision 1 in a real server, where it is etcd's own.
        Self { objects: HashMap::new(), changes: Vec::new(), first: 2, compacted: 0 }
    }
}

impl Store {
    /// The present revision.
    pub fn revision(&self) -> Revision {
        self.first + self.changes.len() as Revision - 1
    }

    /// The revision up to which the history is gone.
    pub fn compacted(&self) -> Revision {
        self.compacted
    }

    /// Forgets the history up to a revision.
    pub fn compact(&mut self, up_to: Revision) {
        self.compacted = self.compacted.max(up_to.min(self.revision()));
    }

    /// An object by the resource of its kind and its key.
    pub fn get(&self, resource: &str, key: &str) -> Option<&Arc<Object>> {
        self.objects.get(resource)?.get(key)
    }

    /// The objects of a kind, in the order of their keys.
    pub fn list(&self, resource: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.get(resource).into_iter().flat_map(BTreeMap::values)
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Object>> {
        let mut resources: Vec<_> = self.objects.iter().collect();
        resources.sort_by_key(|(resource, _)| *resource);
        resources.into_iter().flat_map(|(_, objects)| objects.values())
    }

    /// The objects of a kind as they were at a revision.
    pub fn list_at(&self, resource: &str, revision: Revision) -> Vec<Arc<Object>> {
        let mut objects = self.objects.get(resource).cloned().unwrap_or_default();
        for change in self.since(revision).iter().rev() {
            let Some(object) = change.object().filter(|object| *object.kind.resource == *resource) else { continue };
            match &change.before {
                Some(before) => drop(objects.insert(before.key.clone(), before.clone())),
                None => drop(objects.remove(&object.key)),
            }
        }
        objects.into_values().collect()
    }

    /// The changes after a revision.
    pub fn since(&self, revision: Revision) -> &[Change] {
        let start = (revision + 1).saturating_sub(self.first);
        self.changes.get(usize::try_from(start).unwrap_or(usize::MAX)..).unwrap_or_default()
    }

    /// Puts an object in its place, which raises the revision.
    pub fn put(&mut self, object: Object, cause: &Cause) -> Arc<Object> {
        let revision = self.revision() + 1;
        let object = Arc::new(object.at(revision));
        let objects = self.objects.entry(object.kind.resource.clone()).or_default();
        let before = objects.insert(object.key.clone(), object.clone());
        self.note(cause, before, Some(object.clone()), None);
        object
    }

    /// Takes an object away, which raises the revision.
    pub fn remove(&mut self, resource: &str, key: &str, cause: &Cause) -> Option<Arc<Object>> {
        let before = self.objects.get_mut(resource)?.remove(key)?;
        let last = Arc::new((*before).clone().at(self.revision() + 1));
        self.note(cause, Some(before), None, Some(last.clone()));
        Some(last)
    }

    fn note(
        &mut self,
        cause: &Cause,
        before: Option<Arc<Object>>,
        after: Option<Arc<Object>>,
        last: Option<Arc<Object>>,
    ) {
        let (revision, user) = (self.revision() + 1, cause.user.clone());
        self.changes.push(Change { revision, user, verb: cause.verb, before, after, last });
    }
}

impl Store {
    /// Lets the objects of a resource belong to other schemas of the versions in which they are kept. That is no change of the objects.
    pub fn replace_kinds(&mut self, resource: &str, versions: &[Arc<super::kinds::Kind>]) {
        for object in self.objects.get_mut(resource).into_iter().flat_map(BTreeMap::values_mut) {
            let kind = versions.iter().find(|kind| kind.names.version == object.kind.names.version);
            if let Some(kind) = kind {
                let mut moved = (**object).clone();
                moved.kind = kind.clone();
                *object = Arc::new(moved);
            }
        }
    }
}
