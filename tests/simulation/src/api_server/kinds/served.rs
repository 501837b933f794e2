//! The kinds that are served at a time: the built-in ones and those of the CustomResourceDefinitions that exist. Finds a kind for a
//! path.

use std::{
    cmp::Ordering,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;

use super::Kind;

/// The kinds, in the order of group, version and plural. A copy is cheap.
#[derive(Clone, Debug, Default)]
pub struct Served {
    kinds: Arc<Vec<Arc<Kind>>>,
    /// What was said about these kinds so far, by path.
    documents: Arc<Mutex<HashMap<String, Bytes>>>,
}

impl Served {
    /// A kind by its path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let index = self.kinds.binary_search_by(|kind| compare(kind, (group, version, plural))).ok()?;
        self.kinds.get(index)
    }

    /// All kinds of a group and version, by plural.
    pub fn of<'s>(&'s self, group: &'s str, version: &'s str) -> impl Iterator<Item = &'s Arc<Kind>> {
        self.iter().filter(move |kind| *kind.names.group == *group && *kind.names.version == *version)
    }

    /// All kinds.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter()
    }

    /// The version in which the objects of a kind are kept.
    pub fn stored(&self, resource: &str) -> Option<&Arc<Kind>> {
        self.iter().find(|kind| *kind.resource == *resource && kind.is_stored)
    }

    /// A kind by what objects say of themselves.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.iter().find(|known| *known.api_version == *api_version && *known.names.kind == *kind)
    }

    /// A document about the kinds, made once as long as the kinds stay the same; none if there is none.
    pub fn document(&self, path: &str, make: impl FnOnce() -> Option<Bytes>) -> Option<Bytes> {
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = documents.get(path) {
            return Some(known.clone());
        }
        let made = make()?;
        documents.insert(path.to_owned(), made.clone());
        Some(made)
    }

    /// Serves these versions of a resource, and no others of it.
    pub fn replace(&mut self, resource: &str, versions: impl IntoIterator<Item = Arc<Kind>>) {
        self.documents = Arc::default();
        let kinds = Arc::make_mut(&mut self.kinds);
        kinds.retain(|kind| *kind.resource != *resource);
        kinds.extend(versions);
        kinds.sort_by(|a, b| compare(a, (&b.names.group, &b.names.version, &b.names.plural)));
    }
}

fn compare(kind: &Kind, (group, version, plural): (&str, &str, &str)) -> Ordering {
    let names = &kind.names;
    (&*names.group, &*names.version, &*names.plural).cmp(&(group, version, plural))
}
