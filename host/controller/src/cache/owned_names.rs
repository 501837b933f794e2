//! The names of objects by their owner. Most owners have one object of a kind, and then nothing is allocated for its name.

use std::collections::{BTreeSet, HashMap};

use crate::object::ObjectRef;

/// Names of objects by the UID of their owner.
#[derive(Debug, Default)]
pub(super) struct NamesByOwner(HashMap<Box<str>, OwnedNames>);

impl NamesByOwner {
    /// Adds the name of an object of this owner.
    pub(super) fn insert(&mut self, uid: &str, name: &ObjectRef) {
        match self.0.get_mut(uid) {
            Some(names) => names.insert(name.clone()),
            None => {
                self.0.insert(uid.into(), OwnedNames::One(name.clone()));
            }
        }
    }

    /// Forgets the name of an object of this owner.
    pub(super) fn remove(&mut self, uid: &str, name: &ObjectRef) {
        if let Some((uid, names)) = self.0.remove_entry(uid)
            && let Some(left) = names.without(name)
        {
            self.0.insert(uid, left);
        }
    }

    /// The names of all objects of this owner, in order.
    pub(super) fn of(&self, uid: &str) -> impl Iterator<Item = &ObjectRef> {
        self.0.get(uid).into_iter().flat_map(OwnedNames::iter)
    }
}

/// At least one name.
#[derive(Debug)]
enum OwnedNames {
    /// One.
    One(ObjectRef),
    /// Any number, in order.
    Many(BTreeSet<ObjectRef>),
}

impl OwnedNames {
    /// Adds a name.
    fn insert(&mut self, name: ObjectRef) {
        match self {
            Self::One(known) if *known == name => {}
            Self::One(known) => *self = Self::Many(BTreeSet::from([known.clone(), name])),
            Self::Many(names) => {
                names.insert(name);
            }
        }
    }

    /// These names without this one; none if no other is left.
    fn without(self, name: &ObjectRef) -> Option<Self> {
        match self {
            Self::One(known) => (known != *name).then_some(Self::One(known)),
            Self::Many(mut names) => {
                names.remove(name);
                (!names.is_empty()).then_some(Self::Many(names))
            }
        }
    }

    /// The names, in order.
    fn iter(&self) -> impl Iterator<Item = &ObjectRef> {
        let (one, many) = match self {
            Self::One(name) => (Some(name), None),
            Self::Many(names) => (None, Some(names)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_and_go_in_order() {
        let name = |name: &str| ObjectRef::new("ns", name);
        let mut names = OwnedNames::One(name("b"));
        names.insert(name("b"));
        assert!(names.iter().eq([&name("b")]));
        names.insert(name("c"));
        names.insert(name("a"));
        assert!(names.iter().eq([&name("a"), &name("b"), &name("c")]));
        let left = ["a", "c", "b"].iter().try_fold(names, |names, gone| names.without(&name(gone)));
        assert!(left.is_none());
        assert!(OwnedNames::One(name("a")).without(&name("b")).is_some(), "another one");
    }

    #[test]
    fn an_owner_without_names_is_forgotten() {
        let (mut names, name) = (NamesByOwner::default(), ObjectRef::new("ns", "a"));
        names.insert("1", &name);
        names.remove("2", &name);
        assert!(names.of("1").eq([&name]) && names.of("2").next().is_none());
        names.remove("1", &name);
        assert!(names.0.is_empty());
    }
}
