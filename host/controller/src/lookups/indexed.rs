//! The lookups of a call in progress. Each is added to the index before it is answered, so that a change between the answer and the
//! end of the call wakes the object. Holds no answers itself, only in words what was asked.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pilothouse_engine::{Answer, Lookups, Query, Scope, Target, contract::LookupError};

use super::{CachedLookups, LookupIndex, NoRoom};
use crate::{lines::Lines, queue::Key};

/// Adds each lookup of a call to the index, then answers it.
pub struct IndexedLookups {
    /// Answers the lookups.
    pub answers: CachedLookups,
    /// Records the lookups.
    pub index: Arc<LookupIndex>,
    /// The key that is being reconciled.
    pub key: Key,
    /// Why a lookup could not be remembered; the first one.
    no_room: OnceLock<NoRoom>,
    asked: Mutex<Lines>,
}

impl IndexedLookups {
    /// Lookups of the object with this key.
    pub fn new(answers: CachedLookups, index: Arc<LookupIndex>, key: Key) -> Self {
        Self { answers, index, key, no_room: OnceLock::new(), asked: Mutex::default() }
    }

    /// What was looked up so far.
    pub fn asked(&self) -> Lines {
        self.asked_so_far().clone()
    }

    fn note(&self, query: &Query, answer: &Result<Answer, LookupError>) {
        self.asked_so_far().push(|| format!("{}: {}", in_words(query), got(answer)));
    }

    fn asked_so_far(&self) -> MutexGuard<'_, Lines> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a lookup could not be remembered. The call does not count then: a change of what it was told would wake nobody.
    pub fn no_room(&self) -> Option<NoRoom> {
        self.no_room.get().copied()
    }
}

impl Lookups for IndexedLookups {
    fn answer(&self, query: &Query, limit: usize) -> Result<Answer, LookupError> {
        if let Err(no_room) = self.index.add(&self.key, query) {
            return Err(LookupError::Denied(self.no_room.get_or_init(|| no_room).to_string()));
        }
        let answer = self.answers.answer(query, limit);
        self.note(query, &answer);
        answer
    }
}

/// What a lookup got.
fn got(answer: &Result<Answer, LookupError>) -> String {
    match answer {
        Ok(answer) => match answer.objects.len() {
            0 => "nothing".to_owned(),
            1 => "found".to_owned(),
            several => format!("{several} objects"),
        },
        Err(LookupError::Denied(why)) => format!("denied: {why}"),
        Err(LookupError::NotInstalled(why) | LookupError::TooLarge(why)) => why.clone(),
    }
}

/// A lookup with the place where it looks.
fn in_words(query: &Query) -> String {
    let place = match &query.scope {
        Scope::OwnNamespace | Scope::OwnNamespaceIfAny => String::new(),
        Scope::Namespace(namespace) => format!(" in namespace '{namespace}'"),
        Scope::AllNamespaces => " in all namespaces".to_owned(),
    };
    match &query.target {
        Target::Name(name) => format!("{} '{name}'{place}", query.kind.kind),
        Target::Labels(selector) => format!("{} with the labels '{selector}'{place}", query.kind.kind),
    }
}
