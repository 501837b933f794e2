//! The first time of a plugin's version at work: whether it leaves many objects without children at once, which is more likely a
//! mistake than anybody's wish. Counts only; holds nothing back itself.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::object::ObjectRef;

/// How long a version is new.
const NEW: Duration = Duration::from_secs(60);

/// So many objects may lose all their children to a new version.
pub const FEW_OBJECTS: usize = 3;

/// What a new version's effect on an object means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewVersionVerdict {
    /// Nothing out of the ordinary.
    Fine,
    /// Not all objects have been looked at yet: it is too early to tell.
    TooEarly,
    /// It leaves more than [`FEW_OBJECTS`] objects without children.
    EmptiesMany,
}

/// The first time of a version of a plugin: a version that leaves many objects without children at once is held back.
#[derive(Debug)]
pub struct NewVersionWindow {
    state: Mutex<WindowState>,
}

#[derive(Debug)]
struct WindowState {
    ends: Instant,
    /// Objects that this version has not been asked about.
    unseen: HashSet<ObjectRef>,
    /// Objects that it would leave without children.
    emptied: HashSet<ObjectRef>,
    /// It would leave too many so: held back for good.
    failed: bool,
}

impl NewVersionWindow {
    /// Begins now, for a version that will be asked about these objects.
    pub fn begin(objects: impl IntoIterator<Item = ObjectRef>) -> Self {
        let state = WindowState {
            ends: Instant::now() + NEW,
            unseen: objects.into_iter().collect(),
            emptied: HashSet::new(),
            failed: false,
        };
        Self { state: Mutex::new(state) }
    }

    /// Tells that this version has been asked about an object, or that there is nothing to ask.
    pub fn mark_seen(&self, object: &ObjectRef) {
        self.lock().unseen.remove(object);
    }

    /// Judges that this version leaves an object without children, or does not.
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
        let later = now + 2 * NEW;
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
        assert_eq!(window.judge(&names[1], true, now + 2 * NEW), NewVersionVerdict::Fine, "it is new no longer");
    }
}
