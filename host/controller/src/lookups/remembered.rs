//! The answers to lookups by labels, remembered until an object of the kind changes: many objects of one plugin often look up the same, and
//! to find out that nothing is new must not cost each of them a look at all that is there. What another answer needs is made of the one
//! before. Decides nothing about what may be looked up.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::{Fingerprint, contract::KindRef};

use crate::{cache::Store, object::Object, projection::Projection};

/// The bytes of what is remembered, for all kinds that one plugin looks up.
const MAX_BYTES: usize = 8 << 20;

/// The answers to the lookups of one plugin.
#[derive(Debug, Default)]
pub struct RememberedAnswers(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    by_query: HashMap<LabelQuery, Arc<Found>>,
    /// The bytes of all their texts, and of those of the lookups.
    bytes: usize,
}

/// A lookup by labels, by a plugin that may make it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelQuery {
    /// The kind.
    pub kind: KindRef,
    /// The namespace; none for all.
    pub namespace: Option<String>,
    /// The label selector.
    pub selector: String,
    /// The fields that are asked for; none for whole objects.
    pub fields: Vec<String>,
    /// The namespaces that count; none for all.
    pub served: Option<BTreeSet<Arc<str>>>,
}

/// What was found.
#[derive(Debug)]
pub struct Found {
    /// The version of the store in which it was found.
    version: u64,
    /// The bytes of the whole objects.
    pub whole_bytes: usize,
    /// The fields of each object that are asked for, in the order of the objects; nothing where whole objects are.
    pub texts: Vec<Arc<str>>,
    /// The bytes of these.
    pub bytes: usize,
    /// Another one for another answer.
    pub fingerprint: Fingerprint,
    /// Where the text of each state of an object is.
    places: HashMap<Fingerprint, usize>,
}

impl RememberedAnswers {
    /// What is there by now. `find` looks for the objects; none if they are too large, of which nothing is remembered.
    pub fn answer(
        &self,
        query: &LabelQuery,
        store: &Store,
        find: impl FnOnce() -> Option<Vec<Arc<Object>>>,
    ) -> Option<Arc<Found>> {
        // Before the objects are read: what changes meanwhile is at most found once more.
        let version = store.version();
        let known = self.lock().by_query.get(query).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.version == version) {
            return Some(known.clone());
        }
        let found = Arc::new(Found::of(query, version, &find()?, known.as_deref()));
        self.lock().remember(query.clone(), &found);
        Some(found)
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    fn remember(&mut self, query: LabelQuery, found: &Arc<Found>) {
        let asked = query.remembered_bytes();
        if let Some(before) = self.by_query.remove(&query) {
            self.bytes -= asked + before.remembered_bytes();
        }
        let more = asked + found.remembered_bytes();
        if self.bytes + more > MAX_BYTES {
            // Rarely: most lookups find few objects.
            self.by_query.clear();
            self.bytes = 0;
        }
        if more <= MAX_BYTES {
            self.bytes += more;
            self.by_query.insert(query, found.clone());
        }
    }
}

impl LabelQuery {
    /// What it takes to remember it.
    fn remembered_bytes(&self) -> usize {
        let namespace = self.namespace.as_ref().map_or(0, String::len);
        let fields: usize = self.fields.iter().map(|field| field.len() + 64).sum();
        let served = self.served.as_ref().map_or(0, BTreeSet::len) * 32;
        self.kind.api_version.len() + self.kind.kind.len() + namespace + self.selector.len() + fields + served + 256
    }
}

impl Found {
    /// Makes an answer that is not remembered.
    pub fn once(query: &LabelQuery, objects: &[Arc<Object>]) -> Self {
        Self::of(query, 0, objects, None)
    }

    /// Makes an answer; texts of objects that have not changed are those of the one before.
    fn of(query: &LabelQuery, version: u64, objects: &[Arc<Object>], before: Option<&Self>) -> Self {
        let whole_bytes = objects.iter().map(|object| object.text.len()).sum();
        let states: Vec<_> = objects.iter().map(|object| object.fingerprint()).collect();
        if query.fields.is_empty() {
            let fingerprint = Fingerprint::of(&states);
            return Self {
                version,
                whole_bytes,
                texts: Vec::new(),
                bytes: whole_bytes,
                fingerprint,
                places: HashMap::new(),
            };
        }
        let projection = Projection::showing(&query.fields);
        let known = |state| before.and_then(|before| before.texts.get(*before.places.get(state)?).cloned());
        let read = |object: &Object| Arc::from(projection.of(&object.text).text);
        let texts: Vec<Arc<str>> =
            states.iter().zip(objects).map(|(state, object)| known(state).unwrap_or_else(|| read(object))).collect();
        let bytes = texts.iter().map(|text| text.len()).sum();
        // Of the texts, not of the states: a change outside of the selected fields is no change for the plugin.
        let fingerprint = Fingerprint::of(&texts);
        let places = states.into_iter().enumerate().map(|(place, state)| (state, place)).collect();
        Self { version, whole_bytes, texts, bytes, fingerprint, places }
    }

    /// What it takes to remember it: its texts, and for each a place in the list and in the map.
    fn remembered_bytes(&self) -> usize {
        let texts: usize = self.texts.iter().map(|text| text.len()).sum();
        texts + self.texts.len() * 64 + 256
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectRef;

    fn object(name: &str, version: &str, phase: &str) -> Object {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}},"status":{{"phase":"{phase}"}}}}"#
        );
        Object {
            name: ObjectRef::new("ns", name),
            uid: name.into(),
            resource_version: version.into(),
            text: text.into(),
            ..Object::sample("ns", name)
        }
    }

    fn asking_for(fields: &[&str]) -> LabelQuery {
        let fields = fields.iter().map(ToString::to_string).collect();
        let kind = KindRef::new("v1", "Pod");
        LabelQuery { kind, namespace: Some("ns".to_owned()), selector: String::new(), fields, served: None }
    }

    #[test]
    fn an_answer_is_found_once_for_each_state_of_the_store() {
        let (store, answers) = (Store::default(), RememberedAnswers::default());
        store.on_watch_apply(object("a", "1", "Pending"));
        let looks = std::cell::Cell::new(0);
        let answer = || {
            answers.answer(&asking_for(&["/status/phase"]), &store, || {
                looks.set(looks.get() + 1);
                Some(store.select(Some("ns"), |_| true))
            })
        };
        let fingerprint = || answer().map(|found| found.fingerprint);
        let first = fingerprint();
        assert_eq!((fingerprint(), looks.get()), (first, 1));
        store.on_watch_apply(object("a", "2", "Pending"));
        assert_eq!((fingerprint(), looks.get()), (first, 2), "nothing that is asked for has changed");
        store.on_watch_apply(object("b", "3", "Pending"));
        store.on_watch_apply(object("a", "4", "Running"));
        assert_ne!(fingerprint(), first);
        let texts: Vec<_> =
            answer().map(|found| found.texts.iter().map(ToString::to_string).collect()).unwrap_or_default();
        assert_eq!(
            texts,
            [
                r#"{"metadata":{"name":"a"},"status":{"phase":"Running"}}"#,
                r#"{"metadata":{"name":"b"},"status":{"phase":"Pending"}}"#
            ]
        );
        store.clear();
        assert_eq!(answer().map(|found| found.texts.len()), Some(0));
    }

    #[test]
    fn what_is_asked_counts_as_well_as_what_is_found() {
        let (store, answers) = (Store::default(), RememberedAnswers::default());
        let fields = vec!["/f".repeat(2_000); 100];
        for number in 0..100 {
            let asked = LabelQuery { selector: format!("n={number}"), fields: fields.clone(), ..asking_for(&[]) };
            assert!(answers.answer(&asked, &store, || Some(Vec::new())).is_some());
        }
        let remembered = answers.lock().by_query.len();
        assert!(remembered * 400_000 <= MAX_BYTES, "{remembered} are remembered, of 400 kB each");
    }

    #[test]
    fn what_is_too_large_is_not_remembered() {
        let (store, answers) = (Store::default(), RememberedAnswers::default());
        let large = "x".repeat(MAX_BYTES / 2);
        for name in ["a", "b"] {
            store.on_watch_apply(object(name, "1", &large));
            let selector = name.to_owned();
            let asked = LabelQuery { selector, ..asking_for(&["/status/phase"]) };
            let of_name = || Some(store.select(Some("ns"), |object| *object.name.name == *name));
            assert!(answers.answer(&asked, &store, of_name).is_some());
            assert_eq!(answers.lock().by_query.len(), 1, "both together are more than there is room for");
        }
        assert!(answers.answer(&asking_for(&[]), &store, || None).is_none());
    }
}
