//! Answers one object's lookups from the caches. Makes no request and remembers nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::{
    Answer, Fingerprint, Lookup, Lookups, Query, Scope, Selector, Target,
    contract::{KindRef, LookupError},
    lookups::fingerprint_of,
};

use super::{
    contents::{Contents, Place, ToRead},
    reader::{Read, Reader},
    remembered::{Found, LabelQuery, RememberedAnswers},
};
use crate::{
    cache::{Informer, WatchState, is_read_when_looked_up},
    identity::Question,
    object::{Object, ObjectRef},
    projection::Projection,
    served_namespaces::ServedNamespaces,
};

/// Answers the lookups of one object from the caches of the kinds that its plugin declares.
#[derive(Clone)]
pub struct CachedLookups {
    /// The namespace of the object being reconciled; empty if it is cluster-scoped.
    pub namespace: Arc<str>,
    /// The declared kinds.
    pub kinds: BTreeMap<KindRef, LookedUpKind>,
    /// The namespaces that the plugin works in; none for all.
    pub served: Option<Arc<ServedNamespaces>>,
    /// The account whose permissions count; none for the host's own.
    pub reader: Option<Reader>,
    /// What is in the objects of which only the metadata is watched.
    pub contents: Arc<Contents>,
    /// Which of these objects the lookups of a call needed.
    pub needed: Arc<Needed>,
}

/// The objects of which only the metadata is watched and that the lookups of a call needed whole.
#[derive(Default)]
pub struct Needed(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    used: BTreeSet<Place>,
    to_read: BTreeMap<Place, ToRead>,
}

/// How many objects are read before a call is made again: what a lookup finds has a bound in bytes, which is known when they are read.
const READ_AT_ONCE: usize = 100;

impl Needed {
    /// Those that were there.
    pub fn used(&self) -> BTreeSet<Place> {
        self.lock().used.clone()
    }

    /// Those that are to be read, and then the call is to be made again.
    pub fn to_read(&self) -> Vec<ToRead> {
        self.lock().to_read.values().take(READ_AT_ONCE).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kind that a plugin may look up.
#[derive(Clone)]
pub struct LookedUpKind {
    /// What the manifest says of it.
    pub declared: Lookup,
    /// Its informer.
    pub informer: Arc<Informer>,
    /// The answers so far to lookups by labels.
    pub answers: Arc<RememberedAnswers>,
}

/// A lookup by labels that may be made.
struct Selection<'a> {
    kind: &'a LookedUpKind,
    selector: Selector,
    query: LabelQuery,
}

impl Selection<'_> {
    /// The objects, if they have no more than `limit` bytes together.
    fn find(&self, limit: usize) -> Option<Vec<Arc<Object>>> {
        let LabelQuery { namespace, served, .. } = &self.query;
        let accepts = |object: &Object| {
            let is_served = served.as_ref().is_none_or(|served| served.contains(&object.name.namespace));
            is_served && self.selector.matches(|key| object.labels.get(key))
        };
        self.kind.informer.store().select_within(namespace.as_deref(), accepts, limit)
    }
}

impl CachedLookups {
    /// The objects that a lookup finds, whole and shared with the cache, if they have no more than `limit` bytes together.
    fn find(&self, query: &Query, limit: usize) -> Result<Vec<Arc<Object>>, LookupError> {
        match &query.target {
            Target::Name(name) => {
                let LookedUpKind { declared, informer, .. } = self.kind(query)?;
                let namespace = if is_namespaced(informer) { self.namespace_of_name(query, declared)? } else { "" };
                self.check_permission(informer, Read { verb: "get", namespace, name: Some(name) })?;
                let found = informer.store().get(&ObjectRef::new(namespace, name));
                let found = self.whole(declared, informer, found.into_iter().collect(), limit)?;
                let Some(found) = found else { return Err(too_large(query)) };
                // An object that is there and too large is an error, never "none": the plugin would delete what depends on it.
                match found.first().is_some_and(|found| found.text.len() > limit) {
                    true => Err(too_large(query)),
                    false => Ok(found),
                }
            }
            Target::Labels(selector) => {
                let selection = self.selection(query, selector)?;
                self.find_whole(&selection, limit)?.ok_or_else(|| too_large(query))
            }
        }
    }

    /// What a selection finds; none if that is more than `limit` bytes.
    fn find_whole(&self, selection: &Selection<'_>, limit: usize) -> Result<Option<Vec<Arc<Object>>>, LookupError> {
        let LookedUpKind { declared, informer, .. } = selection.kind;
        match selection.find(limit) {
            Some(found) => self.whole(declared, informer, found, limit),
            None => Ok(None),
        }
    }

    /// Objects with all that is in them, where only their metadata is watched; none if that is more than `limit` bytes. What is not known yet is
    /// noted, and denied until it was read.
    fn whole(
        &self,
        declared: &Lookup,
        informer: &Arc<Informer>,
        told: Vec<Arc<Object>>,
        limit: usize,
    ) -> Result<Option<Vec<Arc<Object>>>, LookupError> {
        if !is_read_when_looked_up(declared) {
            return Ok(Some(told));
        }
        let (mut found, mut left, mut is_known) = (Vec::new(), limit, true);
        let mut noted = self.needed.lock();
        for told in told {
            let place = Place::of(informer, &told);
            match self.contents.of(&place, &told) {
                Some(whole) => {
                    noted.used.insert(place);
                    let Some(rest) = left.checked_sub(whole.as_ref().map_or(0, |whole| whole.text.len())) else {
                        return Ok(None);
                    };
                    left = rest;
                    found.extend(whole);
                }
                None => {
                    is_known = false;
                    noted.to_read.insert(place, ToRead { informer: informer.clone(), told });
                }
            }
        }
        match is_known {
            true => Ok(Some(found)),
            false => Err(LookupError::Denied("what is in it is not read yet".to_owned())),
        }
    }

    /// The kind that a lookup is about, if the plugin may look it up and it is known what is there.
    fn kind(&self, query: &Query) -> Result<&LookedUpKind, LookupError> {
        let kind = &query.kind;
        let known = self.kinds.get(kind).ok_or_else(|| {
            LookupError::Denied(format!(
                "the plugin's manifest declares no lookup of {kind}; add it to the `lookups` there"
            ))
        })?;
        check_state(kind, &known.informer)?;
        Ok(known)
    }

    fn selection(&self, query: &Query, selector: &str) -> Result<Selection<'_>, LookupError> {
        let kind = self.kind(query)?;
        let parsed = Selector::parse(selector).map_err(|error| LookupError::Denied(error.to_string()))?;
        let is_namespaced = is_namespaced(&kind.informer);
        let namespace = if is_namespaced { self.namespace_of_labels(query, &kind.declared)? } else { None };
        let read = Read { verb: "list", namespace: namespace.unwrap_or_default(), name: None };
        self.check_permission(&kind.informer, read)?;
        // A namespace that the query names has been compared with the served ones already.
        let served = self.served.as_ref().filter(|_| is_namespaced && namespace.is_none());
        let query = LabelQuery {
            kind: query.kind.clone(),
            namespace: namespace.map(str::to_owned),
            selector: selector.to_owned(),
            fields: query.fields.clone(),
            served: served.map(|served| served.all()),
        };
        Ok(Selection { kind, selector: parsed, query })
    }

    /// What a lookup by labels finds, remembered from an earlier one if nothing has changed since.
    fn found(&self, query: &Query, selector: &str, limit: usize) -> Result<Arc<Found>, LookupError> {
        let selection = self.selection(query, selector)?;
        // Where fields are selected, more is read than is handed over. That has a limit, too.
        let most = if query.fields.is_empty() { limit } else { limit.saturating_mul(READ_FOR_FIELDS) };
        let found = if is_read_when_looked_up(&selection.kind.declared) {
            // Remembered with the objects themselves, and forgotten with them.
            self.find_whole(&selection, most)?.map(|found| Arc::new(Found::once(&selection.query, &found)))
        } else {
            let store = selection.kind.informer.store();
            selection.kind.answers.answer(&selection.query, store, || selection.find(most))
        };
        let fits = |found: &Arc<Found>| found.whole_bytes <= most && found.bytes <= limit;
        found.filter(fits).ok_or_else(|| too_large(query))
    }

    /// Whether the account of the plugin may make a lookup. Without an account, its manifest and its grants decide alone.
    fn check_permission(&self, informer: &Informer, read: Read<'_>) -> Result<(), LookupError> {
        match (&self.reader, informer.installed()) {
            (Some(reader), Some(installed)) => reader.check(&installed.resource, read),
            _ => Ok(()),
        }
    }

    /// A namespace that a query names, if the plugin may look into it from this object. Whoever writes the object decides what its plugin
    /// looks up, and may have no rights in that namespace.
    fn named_namespace<'a>(
        &self,
        query: &Query,
        declared: &Lookup,
        namespace: &'a str,
    ) -> Result<&'a str, LookupError> {
        let is_elsewhere = !self.namespace.is_empty() && *self.namespace != *namespace;
        if is_elsewhere && !declared.all_namespaces {
            return Err(LookupError::Denied(format!(
                "a lookup of {query} is about another namespace than the object's own, which needs `allNamespaces` in the \
                 `lookups` of the plugin's manifest"
            )));
        }
        if self.served.as_ref().is_some_and(|served| !served.contains(namespace)) {
            return Err(LookupError::Denied(format!(
                "a lookup of {query} is about a namespace that the spec.namespaces of its Plugin does not select"
            )));
        }
        Ok(namespace)
    }

    /// The namespace in which to look for a name.
    fn namespace_of_name<'a>(&'a self, query: &'a Query, declared: &Lookup) -> Result<&'a str, LookupError> {
        match &query.scope {
            Scope::Namespace(namespace) => self.named_namespace(query, declared, namespace),
            Scope::OwnNamespace | Scope::OwnNamespaceIfAny if !self.namespace.is_empty() => Ok(&self.namespace),
            Scope::OwnNamespace | Scope::OwnNamespaceIfAny => Err(LookupError::Denied(format!(
                "a lookup of {query} names no namespace, and the object being reconciled is cluster-scoped; name the \
                 namespace"
            ))),
            Scope::AllNamespaces => Err(LookupError::Denied(format!(
                "a lookup of {query} is about one object, so it needs one namespace; name it, or select by labels"
            ))),
        }
    }

    /// The namespace in which to look for labels; none for all of them.
    fn namespace_of_labels<'a>(&'a self, query: &'a Query, declared: &Lookup) -> Result<Option<&'a str>, LookupError> {
        match &query.scope {
            Scope::Namespace(namespace) => self.named_namespace(query, declared, namespace).map(Some),
            Scope::OwnNamespace | Scope::OwnNamespaceIfAny if !self.namespace.is_empty() => Ok(Some(&self.namespace)),
            Scope::OwnNamespaceIfAny => Ok(None),
            Scope::OwnNamespace => Err(LookupError::Denied(format!(
                "a lookup of {query} is about the object's own namespace, and the object is cluster-scoped; name a \
                 namespace, or look in all of them"
            ))),
            Scope::AllNamespaces if declared.all_namespaces => Ok(None),
            Scope::AllNamespaces => Err(LookupError::Denied(format!(
                "a lookup of {query} in all namespaces needs `allNamespaces` in the `lookups` of the plugin's manifest"
            ))),
        }
    }
}

impl CachedLookups {
    /// The questions about permissions that lookups led to and that nobody has asked yet.
    pub fn open_questions(&self) -> Vec<Question> {
        self.reader.as_ref().map(Reader::open_questions).unwrap_or_default()
    }
}

fn is_namespaced(informer: &Informer) -> bool {
    informer.installed().is_none_or(|installed| installed.namespaced)
}

fn check_state(kind: &KindRef, informer: &Informer) -> Result<(), LookupError> {
    match informer.state() {
        WatchState::Synced => Ok(()),
        WatchState::Failing(failure) => Err(LookupError::Denied(failure.why)),
        // A plugin becomes active when none of its informers is `Starting` any more, so that case does not occur.
        WatchState::NotInstalled | WatchState::Starting => {
            Err(LookupError::NotInstalled(format!("{kind} is not installed in this cluster")))
        }
    }
}

impl Lookups for CachedLookups {
    fn answer(&self, query: &Query, limit: usize) -> Result<Answer, LookupError> {
        if query.fields.is_empty() {
            let found = self.find(query, limit)?;
            let fingerprint = states(&found);
            return Ok(Answer {
                objects: found.iter().map(|object| object.text.read().into_owned()).collect(),
                fingerprint,
            });
        }
        if let Target::Labels(selector) = &query.target {
            let found = self.found(query, selector, limit)?;
            let objects = found.texts.iter().map(ToString::to_string).collect();
            return Ok(Answer { objects, fingerprint: found.fingerprint });
        }
        let (projection, found) =
            (Projection::showing(&query.fields), self.find(query, limit.saturating_mul(READ_FOR_FIELDS))?);
        // One object only, so there is nothing to remember: reading its fields again costs as much as looking the answer up.
        let objects: Vec<_> = found.iter().map(|object| projection.of(&object.text).text).collect();
        match objects.iter().map(String::len).sum::<usize>() <= limit {
            true => Ok(Answer::of_texts(objects)),
            false => Err(too_large(query)),
        }
    }

    fn fingerprint(&self, query: &Query, limit: usize) -> Fingerprint {
        // No text is needed to see that whole objects are the same, or that nothing has changed.
        let fingerprint = match &query.target {
            Target::Labels(selector) => self.found(query, selector, limit).map(|found| found.fingerprint),
            Target::Name(_) if query.fields.is_empty() => self.find(query, limit).map(|found| states(&found)),
            Target::Name(_) => return fingerprint_of(&self.answer(query, limit)),
        };
        fingerprint_of(&fingerprint.map(|fingerprint| Answer { objects: Vec::new(), fingerprint }))
    }
}

/// How many times as much as a lookup of fields may find is read for it at most. To read the fields takes time.
const READ_FOR_FIELDS: usize = 4;

/// Always in the same words, so that the plugin is not called for a change of what it cannot see.
fn too_large(query: &Query) -> LookupError {
    LookupError::TooLarge(format!(
        "a lookup of {query} finds more than the lookups of one call may; ask for fewer objects, or only for some of their fields"
    ))
}

/// The fingerprint of whole objects: each state of each object has a resource version of its own.
fn states(found: &[Arc<Object>]) -> Fingerprint {
    Fingerprint::of(&found.iter().map(|object| object.fingerprint()).collect::<Vec<_>>())
}
