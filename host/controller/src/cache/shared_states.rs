//! What the stores of one kind share: a state of an object that several of them hold is in memory once. A kind may be one plugin's own
//! and another one's children. Makes no request, and puts nothing into a store.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::object::{Object, ObjectRef};

/// What holds objects of the kind.
pub(super) trait Holder: Debug + Send + Sync {
    /// The state of an object that it holds.
    fn held(&self, name: &ObjectRef) -> Option<Arc<Object>>;
}

/// All that hold objects of one kind and version.
#[derive(Debug, Default)]
pub(super) struct SharedStates {
    /// Weak, because each of them holds this.
    holders: Mutex<Vec<Weak<dyn Holder>>>,
}

impl SharedStates {
    /// Looks into this one, too, for as long as it is there.
    pub(super) fn add(&self, holder: Weak<dyn Holder>) {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        holders.retain(|holder| holder.strong_count() > 0);
        holders.push(holder);
    }

    /// This state as somebody holds it already, or as it is given. A caller holds no lock that [`Holder::held`] takes.
    pub(super) fn share(&self, object: Object) -> Arc<Object> {
        let holders = self.several();
        // Two states with one resource version may differ: some hold metadata only, and one may know already that the object is deleted.
        let known = holders.iter().filter_map(|holder| holder.held(&object.name)).find(|known| **known == object);
        known.unwrap_or_else(|| Arc::new(object))
    }

    /// All holders; none where there is one alone, as of most kinds: that is the one that asks.
    fn several(&self) -> Vec<Arc<dyn Holder>> {
        match &**self.holders.lock().unwrap_or_else(PoisonError::into_inner) {
            [] | [_] => Vec::new(),
            several => several.iter().filter_map(Weak::upgrade).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct One(Arc<Object>);

    impl Holder for One {
        fn held(&self, name: &ObjectRef) -> Option<Arc<Object>> {
            Some(self.0.clone()).filter(|object| object.name == *name)
        }
    }

    fn holder(states: &SharedStates, object: Object) -> Arc<One> {
        let one = Arc::new(One(Arc::new(object)));
        let weak = Arc::downgrade(&one);
        states.add(weak);
        one
    }

    #[test]
    fn only_the_same_state_is_shared() {
        let states = SharedStates::default();
        let object = |name: &str, version: &str, text: &str| Object {
            resource_version: version.into(),
            text: text.into(),
            ..Object::sample("ns", name)
        };
        let (a, b) = (holder(&states, object("a", "1", "{}")), holder(&states, object("b", "1", "{}")));
        let shared_with = |given: Object| {
            let shared = states.share(given);
            [&a, &b].iter().position(|one| Arc::ptr_eq(&one.0, &shared))
        };
        assert_eq!(shared_with(object("b", "1", "{}")), Some(1));
        assert_eq!(shared_with(object("b", "2", "{}")), None, "another version");
        assert_eq!(shared_with(object("b", "1", "{\"metadata\":{}}")), None, "a part of it");
        assert_eq!(shared_with(Object { deleting: true, ..object("b", "1", "{}") }), None, "known to be deleted");
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let states = SharedStates::default();
        let first = holder(&states, Object::sample("ns", "a"));
        drop(holder(&states, Object::sample("ns", "b")));
        let last = holder(&states, Object::sample("ns", "c"));
        assert_eq!(states.holders.lock().map(|holders| holders.len()).ok(), Some(2));
        drop((first, last));
    }
}
