//! What a plugin may ask about objects that it does not own, and how the caller answers it. Answers nothing itself.

use std::{collections::BTreeSet, fmt};

use crate::{
    Fingerprint,
    contract::{KindRef, LookupError},
};

/// The bytes of a name: no object has a longer one (DNS subdomain, RFC 1123).
const MAX_NAME: usize = 253;

/// The bytes of a label selector, and of a JSON pointer.
const MAX_SELECTOR: usize = 4 << 10;

/// The fields that one lookup may ask for.
const MAX_FIELDS: usize = 100;

/// Answers a plugin's lookups. Implementations answer from memory: they run on the call's own thread and must not block.
pub trait Lookups: Send + Sync {
    /// The objects that a lookup finds: at most one by name, or those that a label selector matches, ordered by namespace and name. They
    /// may have `limit` bytes together.
    ///
    /// # Errors
    /// [`LookupError`] if there is no answer.
    fn answer(&self, query: &Query, limit: usize) -> Result<Answer, LookupError>;

    /// The fingerprint of the answer, errors included. The same as that of [`Lookups::answer`], but cheaper where no texts are needed
    /// to know it.
    fn fingerprint(&self, query: &Query, limit: usize) -> Fingerprint {
        fingerprint_of(&self.answer(query, limit))
    }
}

/// A lookup of a plugin, without its answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Query {
    /// The kind looked up.
    pub kind: KindRef,
    /// Where.
    pub scope: Scope,
    /// Which objects.
    pub target: Target,
    /// JSON pointers of the fields that the plugin wants; empty for whole objects.
    pub fields: Vec<String>,
}

/// Where a lookup looks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In the namespace of the object being reconciled.
    OwnNamespace,
    /// In the namespace of the object being reconciled; everywhere if that object is cluster-scoped. What 0.1 says where it names no
    /// namespace.
    OwnNamespaceIfAny,
    /// In this namespace.
    Namespace(String),
    /// Everywhere.
    AllNamespaces,
}

/// Which objects a lookup is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// The object with this name.
    Name(String),
    /// The objects that this label selector matches.
    Labels(String),
}

/// What a lookup found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The objects as JSON texts, with the fields that were asked for.
    pub objects: Vec<String>,
    /// Another one for another answer.
    pub fingerprint: Fingerprint,
}

impl Answer {
    /// An answer whose fingerprint is that of its texts.
    pub fn of_texts(objects: Vec<String>) -> Self {
        Self { fingerprint: Fingerprint::of(&objects), objects }
    }
}

impl Query {
    /// A lookup of a whole object by its name.
    pub fn by_name(kind: KindRef, scope: Scope, name: &str) -> Self {
        Self { kind, scope, target: Target::Name(name.to_owned()), fields: Vec::new() }
    }

    /// A lookup of whole objects by their labels.
    pub fn by_labels(kind: KindRef, scope: Scope, selector: &str) -> Self {
        Self { kind, scope, target: Target::Labels(selector.to_owned()), fields: Vec::new() }
    }

    /// The bytes of its texts.
    pub fn text_bytes(&self) -> usize {
        let namespace = if let Scope::Namespace(namespace) = &self.scope { namespace.len() } else { 0 };
        let (Target::Name(target) | Target::Labels(target)) = &self.target;
        let fields: usize = self.fields.iter().map(String::len).sum();
        self.kind.api_version.len() + self.kind.kind.len() + namespace + target.len() + fields
    }

    /// Whether its texts are of a size that anything could be found with.
    ///
    /// # Errors
    /// [`LookupError::Denied`], which names the text and its limit.
    pub(crate) fn check_size(&self) -> Result<(), LookupError> {
        let check = |what: &str, text: &str, limit: usize| match text.len() <= limit {
            true => Ok(()),
            false => Err(LookupError::Denied(format!(
                "a lookup has {what} of {} bytes, which is more than {limit}",
                text.len()
            ))),
        };
        check("an API version", &self.kind.api_version, MAX_NAME)?;
        check("a kind", &self.kind.kind, MAX_NAME)?;
        if let Scope::Namespace(namespace) = &self.scope {
            check("a namespace", namespace, MAX_NAME)?;
        }
        match &self.target {
            Target::Name(name) => check("a name", name, MAX_NAME)?,
            Target::Labels(selector) => check("a label selector", selector, MAX_SELECTOR)?,
        }
        if self.fields.len() > MAX_FIELDS {
            let fields = self.fields.len();
            return Err(LookupError::Denied(format!(
                "a lookup asks for {fields} fields, which is more than {MAX_FIELDS}"
            )));
        }
        self.fields.iter().try_for_each(|field| check("a field", field, MAX_SELECTOR))
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Name(name) => write!(f, "{} '{name}'", self.kind),
            Target::Labels(selector) => write!(f, "{} with the labels '{selector}'", self.kind),
        }
    }
}

/// Answers every lookup with "denied": for plugins that declare none.
#[derive(Debug)]
pub struct NoLookups;

impl Lookups for NoLookups {
    fn answer(&self, query: &Query, _: usize) -> Result<Answer, LookupError> {
        Err(LookupError::Denied(format!(
            "the manifest declares no lookup of {}; add it to the `lookups` there",
            query.kind
        )))
    }
}

/// What a call read besides its request, and asked for besides its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Its lookups in order, each with the fingerprint of the answer.
    pub lookups: Vec<AnsweredLookup>,
    /// Whether it read the clock.
    pub clock_read: bool,
    /// The denied lookups, each kind and reason once.
    pub denied: Vec<DeniedLookup>,
    /// The children to delete at once, by their places in the request.
    pub forced_deletions: BTreeSet<u32>,
}

impl Recorded {
    /// The most children that a call can have deleted at once.
    const MAX_FORCED: usize = 4_096;

    /// Notes a child to delete at once.
    pub(crate) fn force_deletion(&mut self, child: u32) {
        if self.forced_deletions.len() < Self::MAX_FORCED {
            self.forced_deletions.insert(child);
        }
    }
}

/// A lookup and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredLookup {
    /// The lookup.
    pub query: Query,
    /// How many bytes it might find.
    pub limit: usize,
    /// The fingerprint of the answer, as in [`Lookups::fingerprint`].
    pub answer: Fingerprint,
}

/// A lookup that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedLookup {
    /// The kind that was looked up.
    pub kind: KindRef,
    /// Why, in a sentence for people.
    pub why: String,
}

/// The fingerprint of an answer or of the reason why there is none.
pub fn fingerprint_of(answer: &Result<Answer, LookupError>) -> Fingerprint {
    match answer {
        Ok(answer) => Fingerprint::of(&("found", answer.fingerprint)),
        Err(error) => fingerprint_of_error(error),
    }
}

fn fingerprint_of_error(error: &LookupError) -> Fingerprint {
    match error {
        LookupError::Denied(why) => Fingerprint::of(&("denied", why)),
        LookupError::NotInstalled(why) => Fingerprint::of(&("not installed", why)),
        LookupError::TooLarge(why) => Fingerprint::of(&("too large", why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_lookup_have_a_limit() {
        let kind = || KindRef::new("v1", "ConfigMap");
        let named = |name: &str| Query::by_name(kind(), Scope::OwnNamespace, name);
        let selected = |selector: &str| Query::by_labels(kind(), Scope::OwnNamespace, selector);
        let of_fields = |number: usize, length: usize| Query { fields: vec!["/".repeat(length); number], ..named("a") };
        let in_namespace = |name: &str| Query { scope: Scope::Namespace(name.to_owned()), ..named("a") };
        for (query, expected) in [
            (named(&"a".repeat(253)), None),
            (named(&"a".repeat(254)), Some("a lookup has a name of 254 bytes, which is more than 253")),
            (selected(&"a".repeat(4_096)), None),
            (
                selected(&"a".repeat(4_097)),
                Some("a lookup has a label selector of 4097 bytes, which is more than 4096"),
            ),
            (in_namespace(&"a".repeat(254)), Some("a lookup has a namespace of 254 bytes, which is more than 253")),
            (of_fields(100, 4_096), None),
            (of_fields(101, 1), Some("a lookup asks for 101 fields, which is more than 100")),
            (of_fields(1, 4_097), Some("a lookup has a field of 4097 bytes, which is more than 4096")),
        ] {
            let refused = match query.check_size() {
                Err(LookupError::Denied(why)) => Some(why),
                _ => None,
            };
            assert_eq!(refused.as_deref(), expected, "{:?}", query.target);
        }
    }
}
