//! Watches over the first minute of a plugin version: a version that leaves many objects without children at once is more likely
//! wrong than intended. Only counts; the deletion guard of the pipeline holds deletes back.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::object::ObjectRef;

/// How long a version is new.
const NEW_FOR: Duration = Duration::from_secs(60);

/// The number of objects that a new version may leave without children.
pub const FEW_OBJECTS: usize = 3;

/// What a new version's effect on an object means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewVersionVerdict {
    /// Nothing unusual.
    Fine,
    /// Not all objects have been reconciled yet, so it is too early to decide.
    TooEarly,
    /// It leaves more than [`FEW_OBJECTS`] objects without children.
    EmptiesMany,
}

/// The first minute of a plugin version.
#[derive(Debug)]
pub struct NewVersionWindow {
    state: Mutex<WindowState>,
}

#[derive(Debug)]
struct WindowState {
    ends: Instant,
    /// Objects that this version has not reconciled.
    unseen: HashSet<ObjectRef>,
    /// Objects that it would leave without children.
    emptied: HashSet<ObjectRef>,
    /// Whether it would leave too many objects without children. Stays true for good.
    failed: bool,
}

impl NewVersionWindow {
    /// Starts the window now, for a version that will reconcile these objects.
    pub fn begin(objects: impl IntoIterator<Item = ObjectRef>) -> Self {
        let state = WindowState {
            ends: Instant::now() + NEW_FOR,
            unseen: objects.into_iter().collect(),
            emptied: HashSet::new(),
            failed: false,
        };
        Self { state: Mutex::new(state) }
    }

    /// This version has reconciled an object, or need not.
    pub fn mark_seen(&self, object: &ObjectRef) {
        self.lock().unseen.remove(object);
    }

    /// Whether it has reconciled all of its objects.
    pub fn has_seen_all(&self) -> bool {
        self.lock().unseen.is_empty()
    }

    /// Records whether this version leaves an object without children, and returns what that means.
    pub fn judge(&self, object: &ObjectRef, is_emptied: bool, now: Instant) -> NewVersionVerdict {
        let mut state = self.lock();
        state.unseen.remove(object);
        if !is_emptied {
            state.emptied.remove(object);
            return NewVersionVerdict::Fine;
        }
        let is_new = now < state.ends;
        if is_new {
            state.emptied.insert(object.clone());
            state.failed |= state.emptied.len() > FEW_OBJECTS;
        }
        if state.failed {
            return NewVersionVerdict::EmptiesMany;
        }
        if is_new && !state.unseen.is_empty() { NewVersionVerdict::TooEarly } else { NewVersionVerdict::Fine }
    }

    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<ObjectRef> {
        (0..5).map(|number| ObjectRef::new("ns", &format!("web-{number}"))).collect()
    }

    #[tokio::test]
    async fn a_new_version_may_not_empty_many_objects() {
        let (names, now) = (names(), Instant::now());
        let window = NewVersionWindow::begin(names.clone());
        for name in &names[..FEW_OBJECTS] {
            assert_eq!(
                window.judge(name, true, now),
                NewVersionVerdict::TooEarly,
                "nothing is lost before it is known"
            );
        }
        assert_eq!(window.judge(&names[3], true, now), NewVersionVerdict::EmptiesMany);
        assert_eq!(window.judge(&names[0], true, now), NewVersionVerdict::EmptiesMany, "also those before");
        let later = now + 2 * NEW_FOR;
        assert_eq!(window.judge(&names[0], true, later), NewVersionVerdict::EmptiesMany, "and for good");
        assert_eq!(window.judge(&names[4], false, later), NewVersionVerdict::Fine);
    }

    #[tokio::test]
    async fn a_few_objects_may_be_emptied_once_all_have_been_looked_at() {
        let (names, now) = (names(), Instant::now());
        let window = NewVersionWindow::begin(names.clone());
        assert_eq!(window.judge(&names[0], true, now), NewVersionVerdict::TooEarly);
        names[1..4].iter().for_each(|name| assert_eq!(window.judge(name, false, now), NewVersionVerdict::Fine));
        assert_eq!(window.judge(&names[0], true, now), NewVersionVerdict::TooEarly);
        window.mark_seen(&names[4]);
        assert_eq!(window.judge(&names[0], true, now), NewVersionVerdict::Fine);
        assert_eq!(window.judge(&names[1], true, now + 2 * NEW_FOR), NewVersionVerdict::Fine, "it is new no longer");
    }
}
