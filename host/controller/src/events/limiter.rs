//! How many Events may be recorded over time: for each object as client-go's recorder does, and for each plugin, which may have thousands of
//! objects. The host's own Events count for themselves, each reason of them: whatever a plugin says, it is told what fails.
//! Writes nothing.
//!
//! # Caveats
//!
//! A bucket that is full again says nothing and is forgotten, so what is remembered of objects that are gone goes by itself. No more than
//! 1,300 objects of one source can be short of tokens at a time, because the source itself has no more of them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use pilothouse_engine::{Admission, Rate, Refusals, TokenBucket};

/// The Events of one source on one object: client-go's `defaultSpamBurst` and `defaultSpamQPS`.
const OBJECT: Rate = Rate::new(25, Duration::from_secs(300));

/// The Events of one source on all objects.
const SOURCE: Rate = Rate::new(1_000, Duration::from_secs(1));

/// The fewest objects of a source among which those are looked for that can be forgotten.
const FEWEST_SWEPT: usize = 64;

/// Who has something to say on an object of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author<'a> {
    /// The plugin.
    Plugin(&'a str),
    /// The host, about an object of this plugin or about the plugin itself.
    Host(&'a str),
}

impl<'a> Author<'a> {
    /// The plugin that it is about.
    pub fn plugin(self) -> &'a str {
        match self {
            Self::Plugin(plugin) | Self::Host(plugin) => plugin,
        }
    }
}

/// Limits Events.
#[derive(Debug, Default)]
pub(super) struct Limiter(Mutex<BTreeMap<Source, Spent>>);

/// Whose Events count together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    plugin: String,
    /// The reason of an Event of the host; none for all those of the plugin.
    reason: Option<String>,
}

#[derive(Debug, Default)]
struct Spent {
    all: TokenBucket,
    refusals: Refusals,
    /// By the UID of the object.
    objects: BTreeMap<String, TokenBucket>,
    /// The number of objects at which those are forgotten that say nothing.
    sweep_at: usize,
}

impl Limiter {
    /// Whether an Event for this reason on the object with this UID may be recorded. If so, it counts as recorded.
    pub(super) fn admit(&self, author: Author<'_>, reason: &str, uid: &str, now: Timestamp) -> Admission {
        let source = Source::of(author, reason);
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !sources.contains_key(&source) {
            sources.values_mut().for_each(|spent| spent.sweep(now));
            sources.retain(|_, spent| !spent.is_idle(now));
        }
        sources.entry(source).or_default().admit(uid, now)
    }
}

impl Source {
    fn of(author: Author<'_>, reason: &str) -> Self {
        match author {
            Author::Plugin(plugin) => Self { plugin: plugin.to_owned(), reason: None },
            Author::Host(plugin) => Self { plugin: plugin.to_owned(), reason: Some(reason.to_owned()) },
        }
    }
}

impl Spent {
    fn admit(&mut self, uid: &str, now: Timestamp) -> Admission {
        let mut object = self.objects.get(uid).copied().unwrap_or_default();
        // Both have a token, or none is taken: an object that says too much costs the others nothing.
        if object.has(OBJECT, 1, now) && self.all.take(SOURCE, 1, now) {
            object.take(OBJECT, 1, now);
            if self.objects.len() >= self.sweep_at {
                self.sweep(now);
            }
            self.objects.insert(uid.to_owned(), object);
            return Admission::Admitted;
        }
        self.refusals.refuse(now)
    }

    /// Forgets the objects of which nothing is left to remember.
    fn sweep(&mut self, now: Timestamp) {
        self.objects.retain(|_, object| !object.is_full(now));
        self.sweep_at = (2 * self.objects.len()).max(FEWEST_SWEPT);
    }

    /// Whether there is nothing to remember.
    fn is_idle(&self, now: Timestamp) -> bool {
        self.objects.is_empty() && self.all.is_full(now) && self.refusals.is_forgotten(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap_or_default()
    }

    /// How many of a thousand Events are recorded.
    fn recorded(limiter: &Limiter, author: Author<'_>, reason: &str, uid: &str, seconds: i64) -> usize {
        let fates = (0..1_000).map(|_| limiter.admit(author, reason, uid, at(seconds)));
        fates.filter(|fate| *fate == Admission::Admitted).count()
    }

    const PLUGIN: Author<'_> = Author::Plugin("web");
    const HOST: Author<'_> = Author::Host("web");

    #[test]
    fn an_object_gets_what_client_go_gives_it() {
        let limiter = Limiter::default();
        for (seconds, expected) in [(0, 25), (299, 0), (300, 1), (301, 0), (1_000, 2), (100_000, 25)] {
            assert_eq!(recorded(&limiter, PLUGIN, "Acted", "a", seconds), expected, "after {seconds} s");
        }
        assert_eq!(recorded(&limiter, PLUGIN, "Acted", "b", 100_000), 25, "another object");
    }

    #[test]
    fn many_objects_of_a_plugin_get_a_thousand_together_and_then_one_a_second() {
        let limiter = Limiter::default();
        let of_all = |author, seconds| -> usize {
            let of_one = |object| recorded(&limiter, author, "Acted", &format!("{object}"), seconds);
            (0..100).map(of_one).sum()
        };
        assert_eq!((of_all(PLUGIN, 0), of_all(PLUGIN, 10)), (1_000, 10));
        assert_eq!(of_all(Author::Plugin("other"), 10), 1_000);
    }

    #[test]
    fn neither_the_plugin_nor_another_reason_takes_the_hosts_events() {
        let limiter = Limiter::default();
        assert_eq!(recorded(&limiter, PLUGIN, "PluginTrapped", "a", 0), 25);
        for reason in ["LookupDenied", "PluginTrapped"] {
            assert_eq!(recorded(&limiter, HOST, reason, "a", 0), 25, "{reason}");
        }
        assert_eq!(recorded(&limiter, PLUGIN, "OtherReason", "a", 0), 0, "a plugin has no end of reasons");
    }

    #[test]
    fn it_is_told_once_an_hour_that_events_are_dropped() {
        let limiter = Limiter::default();
        recorded(&limiter, HOST, "LookupDenied", "b", 0);
        for _ in 0..25 {
            assert_eq!(limiter.admit(PLUGIN, "Acted", "a", at(10_000)), Admission::Admitted);
        }
        for (seconds, expected) in [
            (10_000, Admission::FirstRefused),
            (10_001, Admission::Refused),
            (10_300, Admission::Admitted),
            (10_301, Admission::Refused),
            (10_600, Admission::Admitted),
            (10_601, Admission::Refused),
            (13_601, Admission::Admitted),
        ] {
            assert_eq!(limiter.admit(PLUGIN, "Acted", "a", at(seconds)), expected, "after {seconds} s");
        }
        let dropped: Vec<_> = (0..25).map(|_| limiter.admit(PLUGIN, "Acted", "a", at(13_601))).collect();
        let told = dropped.iter().filter(|fate| **fate == Admission::FirstRefused).count();
        assert_eq!(told, 1, "{dropped:?}");
    }

    #[test]
    fn what_is_remembered_has_a_bound_and_goes_when_there_is_rest() {
        let limiter = Limiter::default();
        let objects =
            || limiter.0.lock().map(|sources| sources.values().map(|spent| spent.objects.len()).sum::<usize>());
        for second in 0..5_000 {
            for object in 0..20 {
                limiter.admit(PLUGIN, "Acted", &format!("{second}-{object}"), at(second));
            }
            assert!(objects().is_ok_and(|objects| objects <= 2_600), "{:?}", objects());
        }
        limiter.admit(HOST, "Forbidden", "a", at(1_000_000));
        assert_eq!(objects().ok(), Some(1), "all others are forgotten");
        assert_eq!(limiter.0.lock().map(|sources| sources.len()).ok(), Some(1));
    }
}
