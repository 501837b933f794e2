//! What the last reconcile of an object saw, asked, decided and wrote, in words, for who asks the host about it. Nothing is decided by it, and
//! it is kept for the objects that were reconciled last only. No content of any object is in it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    lines::{Lines, cut},
    queue::Key,
};

/// How many objects are remembered: at most some MiB, whatever their plugins do.
const MAX_OBJECTS: usize = 500;

/// The last reconcile of an object that called its plugin, wrote something or failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastReconcile {
    /// The plugin.
    pub plugin: String,
    /// The version of the plugin, and its digest.
    pub version: String,
    /// The same.
    pub digest: String,
    /// When it ended.
    pub ended: Timestamp,
    /// How long it took.
    pub milliseconds: u64,
    /// When the object was looked at since, and nothing was to be done.
    pub at_rest: Option<Timestamp>,
    /// The generation and the resource version of the object that it saw last, and how many children.
    pub saw: String,
    /// What the plugin looked up, and what it got.
    pub asked: Lines,
    /// What the plugin answered, or why it did not.
    pub answer: String,
    /// What was written and deleted, and why: by this reconcile, or by the last one before it that wrote anything.
    pub wrote: Lines,
    /// When the reconcile ended that wrote that.
    pub wrote_at: Option<Timestamp>,
    /// What is not written yet, and what it waits for.
    pub waits: Lines,
    /// What failed.
    pub failed: Lines,
    /// What the status says of it.
    pub health: String,
    /// When it is looked at again.
    pub next: String,
}

/// Notes of a reconcile that goes on.
#[derive(Debug, Default)]
pub struct Notes(Mutex<LastReconcile>);

impl Notes {
    /// The object was seen.
    pub fn saw(&self, generation: i64, resource_version: &str, children: usize) {
        self.lock().saw = format!("generation {generation} (resource version {resource_version}), {children} children");
    }

    /// The plugin was called and looked these up.
    pub fn asked(&self, lookups: Lines) {
        self.lock().asked = lookups;
    }

    /// The plugin answered, or did not.
    pub fn answered(&self, answer: &str) {
        self.lock().answer = cut(answer);
    }

    /// Something was written or deleted.
    pub fn wrote(&self, line: impl FnOnce() -> String) {
        self.lock().wrote.push(line);
    }

    /// What is not written yet.
    pub fn waits<'l>(&self, lines: impl IntoIterator<Item = &'l String>) {
        let mut notes = self.lock();
        notes.waits = Lines::default();
        lines.into_iter().for_each(|line| notes.waits.push(|| line.clone()));
    }

    /// Something failed.
    pub fn failed(&self, line: &str) {
        self.lock().failed.push(|| line.to_owned());
    }

    /// This is what the status says.
    pub fn concluded(&self, health: &str) {
        self.lock().health = cut(health);
    }

    fn lock(&self) -> MutexGuard<'_, LastReconcile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a reconcile ended.
pub struct Ended<'a> {
    /// The version of the plugin, and its digest.
    pub version: &'a str,
    /// The same.
    pub digest: &'a str,
    /// When.
    pub at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// When it is looked at again.
    pub next: String,
}

/// The last reconciles of the objects that were reconciled last.
#[derive(Debug, Default)]
pub struct LastReconciles(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by_key: HashMap<Key, LastReconcile>,
    /// The keys, the one that was reconciled first of them at the front.
    order: VecDeque<Key>,
}

impl LastReconciles {
    /// A reconcile has ended. One that found nothing to do is only noted beside the one before.
    pub fn ended(&self, key: &Key, notes: Notes, ended: Ended<'_>) {
        let notes = notes.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut inner = self.lock();
        let is_at_rest = notes.answer.is_empty() && notes.wrote.is_empty() && notes.failed.is_empty();
        if is_at_rest && notes.health.is_empty() {
            if let Some(known) = inner.by_key.get_mut(key) {
                known.at_rest = Some(ended.at);
            }
            return;
        }
        let before = inner.by_key.get_mut(key).map(|before| (std::mem::take(&mut before.wrote), before.wrote_at));
        let (wrote, wrote_at) = match before.filter(|_| notes.wrote.is_empty()) {
            Some(before) => before,
            None => {
                let wrote_at = (!notes.wrote.is_empty()).then_some(ended.at);
                (notes.wrote.clone(), wrote_at)
            }
        };
        let last = LastReconcile {
            wrote,
            wrote_at,
            plugin: key.plugin.to_string(),
            version: ended.version.to_owned(),
            digest: ended.digest.to_owned(),
            ended: ended.at,
            milliseconds: ended.took.as_millis().try_into().unwrap_or(u64::MAX),
            next: ended.next,
            ..notes
        };
        if inner.by_key.insert(key.clone(), last).is_none() {
            inner.order.push_back(key.clone());
        }
        if inner.order.len() > MAX_OBJECTS
            && let Some(first) = inner.order.pop_front()
        {
            inner.by_key.remove(&first);
        }
    }

    /// The last reconcile of an object; none if it is not known any more.
    pub fn of(&self, key: &Key) -> Option<LastReconcile> {
        self.lock().by_key.get(key).cloned()
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        let mut inner = self.lock();
        if inner.by_key.remove(key).is_some() {
            inner.order.retain(|known| known != key);
        }
    }

    /// Forgets the objects of a plugin.
    pub fn forget_plugin(&self, plugin: &str) {
        let mut inner = self.lock();
        inner.by_key.retain(|key, _| &*key.plugin != plugin);
        inner.order.retain(|key| &*key.plugin != plugin);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lines::{MAX_LINE, MAX_LINES},
        object::ObjectRef,
    };

    fn key(number: usize) -> Key {
        Key { plugin: "p".into(), object: ObjectRef::new("ns", &number.to_string()) }
    }

    fn ended(next: &str) -> Ended<'static> {
        let (at, took) = (Timestamp::UNIX_EPOCH, Duration::from_millis(3));
        Ended { version: "1", digest: "abc", at, took, next: next.to_owned() }
    }

    #[test]
    fn what_is_kept_has_a_bound_and_a_look_at_rest_is_only_noted() {
        let last = LastReconciles::default();
        for number in 0..MAX_OBJECTS + 10 {
            let notes = Notes::default();
            notes.answered("done");
            (0..MAX_LINES + 2).for_each(|_| notes.wrote(|| "x".repeat(MAX_LINE + 1)));
            last.ended(&key(number), notes, ended("never"));
        }
        assert_eq!((last.of(&key(9)), last.lock().by_key.len()), (None, MAX_OBJECTS));
        let known = last.of(&key(10)).unwrap_or_default();
        assert_eq!((known.wrote.lines.len(), known.wrote.more, known.wrote.lines[0].len()), (MAX_LINES, 2, MAX_LINE));

        let notes = Notes::default();
        notes.saw(7, "9", 3);
        last.ended(&key(10), notes, ended("later"));
        let rested = last.of(&key(10)).unwrap_or_default();
        assert_eq!(rested.at_rest, Some(Timestamp::UNIX_EPOCH));
        assert_eq!(LastReconcile { at_rest: None, ..rested }, known, "the one that did something stays");
        let notes = Notes::default();
        notes.answered("the same");
        last.ended(&key(10), notes, ended("later"));
        let asked_again = last.of(&key(10)).unwrap_or_default();
        assert_eq!((asked_again.answer.as_str(), &asked_again.wrote), ("the same", &known.wrote));

        last.forget(&key(10));
        last.forget_plugin("p");
        let inner = last.lock();
        assert!(inner.by_key.is_empty() && inner.order.is_empty());
    }
}
