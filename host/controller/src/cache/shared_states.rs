//! What the stores of one kind share: a state of an object that several of them hold is in memory once, and objects are packed beside one
//! text. A kind may be one plugin's own and another one's children. Makes no request, and puts nothing into a store.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::object::{Object, ObjectRef};

/// The text beside which others are packed has at most so many bytes: all of it is read for each of them.
const MOST_LIKE: usize = 32 << 10;

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
    /// A text that is like those of most objects of the kind.
    like: Mutex<Arc<str>>,
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
        let is_this = |known: &Arc<Object>| known.text.is_packed() == object.text.is_packed() && **known == object;
        let known = holders.iter().filter_map(|holder| holder.held(&object.name)).find(is_this);
        known.unwrap_or_else(|| Arc::new(object))
    }

    /// The same state in less memory; none if packing would save little, or it is packed. A caller holds no lock that [`Holder::held`] takes.
    pub(super) fn pack(&self, object: &Object) -> Option<Arc<Object>> {
        if object.text.is_packed() {
            return None;
        }
        let packed = object.text.packed_beside(&self.like());
        if packed.as_ref().is_none_or(|packed| packed.size() > packed.len() / 3) {
            self.take_for_like(object);
        }
        packed.map(|packed| self.share(object.with_text(packed)))
    }

    fn like(&self) -> Arc<str> {
        self.like.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Packs what comes later beside the text of this object, if that has a quarter more than the one before: others have more as well by now,
    /// such as a status. What is packed beside an earlier text keeps that in memory, so there must be few of them: twenty-odd at most.
    fn take_for_like(&self, object: &Object) {
        let text = object.text.read();
        let mut like = self.like.lock().unwrap_or_else(PoisonError::into_inner);
        if like.len() + like.len() / 4 < text.len() && text.len() <= MOST_LIKE {
            *like = text.into();
        }
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
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::object_text::{ObjectText, put_together};

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
    fn later_objects_are_packed_beside_earlier_ones() {
        let states = SharedStates::default();
        let object = |name: &str, status: usize| {
            let text = json!({"metadata": {"name": name}, "spec": numbers(40), "status": numbers(status)});
            Object { text: put_together(&text), ..Object::sample("ns", name) }
        };
        let packed = |object: Object| {
            let packed = states.pack(&object)?;
            assert_eq!(*packed, object);
            Some(object.text.len() / packed.text.size())
        };
        assert_eq!(packed(object("a", 0)), None, "nothing is known that is like it");
        assert!(packed(object("b", 0)) > Some(10), "it is like the one before");
        assert!(packed(object("a", 90)) < Some(3), "a status is new");
        assert!(packed(object("b", 90)) > Some(10) && packed(object("c", 0)) > Some(10));
    }

    #[test]
    fn texts_that_grow_and_grow_leave_few_earlier_ones_in_memory() {
        let states = SharedStates::default();
        let mut random = fastrand::Rng::with_seed(1);
        let mut beside = BTreeSet::new();
        for length in (300..MOST_LIKE).step_by(10) {
            let noise: String = (0..length).map(|_| random.alphanumeric()).collect();
            let text = ObjectText::from(format!("{{\"noise\":\"{noise}\"}}").as_str());
            states.pack(&Object { text, ..Object::sample("ns", "a") });
            beside.insert(states.like().len());
        }
        assert!((10..25).contains(&beside.len()), "{beside:?}");
    }

    /// Of these nothing comes again within a text.
    fn numbers(many: usize) -> Vec<usize> {
        (1..=many).map(|number| number * 7_919 * 104_729).collect()
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
