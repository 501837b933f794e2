//! The kinds that are served at a time: the built-in ones and those of the CustomResourceDefinitions that exist. Finds a kind for a
//! path.

use std::{collections::BTreeMap, sync::Arc};

use super::Kind;

/// A group, a version and a plural.
type Place = (Arc<str>, Arc<str>, Arc<str>);

/// The kinds by group, version and plural. A copy is cheap.
#[derive(Clone, Debug, Default)]
pub struct Served {
    kinds: Arc<BTreeMap<Place, Arc<Kind>>>,
}

impl Served {
    /// A kind by its path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.kinds.get(&(group.into(), version.into(), plural.into()))
    }

    /// All kinds of a group and version, by plural.
    pub fn of<'s>(&'s self, group: &'s str, version: &'s str) -> impl Iterator<Item = &'s Arc<Kind>> {
        self.iter().filter(move |kind| *kind.names.group == *group && *kind.names.version == *version)
    }

    /// All kinds.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }

    /// The version in which the objects of a kind are kept.
    pub fn stored(&self, resource: &str) -> Option<&Arc<Kind>> {
        self.iter().find(|kind| *kind.resource == *resource && kind.is_stored)
    }

    /// A kind by what objects say of themselves.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.iter().find(|known| *known.api_version == *api_version && *known.names.kind == *kind)
    }

    /// Serves these versions of a resource, and no others of it.
    pub fn replace(&mut self, resource: &str, versions: impl IntoIterator<Item = Arc<Kind>>) {
        let kinds = Arc::make_mut(&mut self.kinds);
        kinds.retain(|_, kind| *kind.resource != *resource);
        for kind in versions {
            let names = &kind.names;
            kinds.insert((names.group.clone(), names.version.clone(), names.plural.clone()), kind);
        }
    }
}
