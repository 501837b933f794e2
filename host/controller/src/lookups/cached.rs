//! Answers one object's lookups from the caches. Makes no request and remembers nothing.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::{
    Answer, Fingerprint, Lookup, Lookups, Query, Scope, Selector, Target,
    contract::{KindRef, LookupError},
    lookups::fingerprint_of,
};

use super::reader::{Read, Reader};
use crate::{
    cache::{Informer, WatchState},
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
}

/// A kind that a plugin may look up.
#[derive(Clone)]
pub struct LookedUpKind {
    /// What the manifest says of it.
    pub declared: Lookup,
    /// Its informer.
    pub informer: Arc<Informer>,
}

impl CachedLookups {
    /// The objects that a lookup finds, whole and shared with the cache, if they have no more than `limit` bytes together.
    fn find(&self, query: &Query, limit: usize) -> Result<Vec<Arc<Object>>, LookupError> {
        let kind = &query.kind;
        let Some(LookedUpKind { declared, informer }) = self.kinds.get(kind) else {
            return Err(LookupError::Denied(format!("the plugin's manifest declares no lookup of {kind}")));
        };
        check_state(kind, informer)?;
        let is_namespaced = informer.installed().is_none_or(|installed| installed.namespaced);
        match &query.target {
            Target::Name(name) => {
                let namespace = if is_namespaced { self.namespace_of_name(query, declared)? } else { "" };
                self.check_permission(informer, Read { verb: "get", namespace, name: Some(name) })?;
                let found = informer.store().get(&ObjectRef::new(namespace, name));
                match found.as_ref().is_some_and(|found| found.text.len() > limit) {
                    true => Err(too_large(query)),
                    false => Ok(found.into_iter().collect()),
                }
            }
            Target::Labels(selector) => {
                let selector = Selector::parse(selector).map_err(|error| LookupError::Denied(error.to_string()))?;
                let namespace = if is_namespaced { self.namespace_of_labels(query, declared)? } else { None };
                let read = Read { verb: "list", namespace: namespace.unwrap_or_default(), name: None };
                self.check_permission(informer, read)?;
                let served = self.served.as_ref().filter(|_| is_namespaced && namespace.is_none());
                let served = served.map(|served| served.all());
                let accepts = |object: &Object| {
                    let is_served = served.as_ref().is_none_or(|served| served.contains(&object.name.namespace));
                    is_served && selector.matches(&object.labels)
                };
                informer.store().select_within(namespace, accepts, limit).ok_or_else(|| too_large(query))
            }
        }
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

fn check_state(kind: &KindRef, informer: &Informer) -> Result<(), LookupError> {
    match informer.state() {
        WatchState::Synced => Ok(()),
        WatchState::Failing(why) => Err(LookupError::Denied(why)),
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
            return Ok(Answer { objects: found.iter().map(|object| object.text.to_string()).collect(), fingerprint });
        }
        let (projection, mut left) = (Projection::showing(&query.fields), limit);
        let found = self.find(query, limit.saturating_mul(READ_FOR_FIELDS))?;
        let mut objects = Vec::with_capacity(found.len());
        for object in found {
            let text = projection.of(&object.text).text;
            left = left.checked_sub(text.len()).ok_or_else(|| too_large(query))?;
            objects.push(text);
        }
        Ok(Answer::of_texts(objects))
    }

    fn fingerprint(&self, query: &Query, limit: usize) -> Fingerprint {
        let whole = query.fields.is_empty().then(|| self.find(query, limit));
        match whole {
            // No text is needed to see that whole objects are the same.
            Some(Ok(found)) => fingerprint_of(&Ok(Answer { objects: Vec::new(), fingerprint: states(&found) })),
            Some(Err(error)) => fingerprint_of(&Err(error)),
            None => fingerprint_of(&self.answer(query, limit)),
        }
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
