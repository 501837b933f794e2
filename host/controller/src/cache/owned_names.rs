//! The names of the objects of one owner. Most owners have one object of a kind, and then nothing is allocated.

use std::collections::BTreeSet;

use crate::object::ObjectRef;

/// At least one name.
#[derive(Debug)]
pub(super) enum OwnedNames {
    /// One.
    One(ObjectRef),
    /// Any number, in order.
    Many(BTreeSet<ObjectRef>),
}

impl OwnedNames {
    /// Adds a name.
    pub(super) fn insert(&mut self, name: ObjectRef) {
        match self {
            Self::One(known) if *known == name => {}
            Self::One(known) => *self = Self::Many(BTreeSet::from([known.clone(), name])),
            Self::Many(names) => {
                names.insert(name);
            }
        }
    }

    /// These names without this one; none if no other is left.
    pub(super) fn without(self, name: &ObjectRef) -> Option<Self> {
        match self {
            Self::One(known) => (known != *name).then_some(Self::One(known)),
            Self::Many(mut names) => {
                names.remove(name);
                (!names.is_empty()).then_some(Self::Many(names))
            }
        }
    }

    /// The names, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ObjectRef> {
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
}
