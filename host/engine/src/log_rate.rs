//! How much plugins may write into the host's log over time: each of them so much, however many objects and versions it has. What is above
//! that is dropped, so that the lines of others stay in the log. Writes nothing itself.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use jiff::Timestamp;

use crate::{Admission, Rate, Refusals, TokenBucket};

/// The bytes that one plugin may write: 4 MiB at once, then 16 KiB a second.
const BYTES: Rate = Rate::new(4 << 20, Duration::from_nanos(1_000_000_000 / (16 << 10)));

/// What a line costs besides its own bytes: the log has the time, the object and more of it.
const LINE: usize = 256;

/// The log of one plugin.
#[derive(Debug, Default)]
pub(crate) struct PluginLog(Mutex<Spent>);

#[derive(Debug, Default)]
struct Spent {
    bytes: TokenBucket,
    refusals: Refusals,
}

impl PluginLog {
    /// Whether a line of so many bytes may be written at this time. If so, it counts as written.
    pub(crate) fn admit(&self, bytes: usize, now: Timestamp) -> Admission {
        let mut spent = lock(&self.0);
        let cost = u32::try_from(bytes + LINE).unwrap_or(u32::MAX);
        if spent.bytes.take(BYTES, cost, now) {
            return Admission::Admitted;
        }
        spent.refusals.refuse(now)
    }
}

/// The logs of all plugins that are loaded.
#[derive(Debug, Default)]
pub(crate) struct PluginLogs(Mutex<BTreeMap<String, Weak<PluginLog>>>);

impl PluginLogs {
    /// The log of a plugin. All of its versions share it.
    pub(crate) fn of(&self, plugin: &str) -> Arc<PluginLog> {
        let mut logs = lock(&self.0);
        if let Some(known) = logs.get(plugin).and_then(Weak::upgrade) {
            return known;
        }
        logs.retain(|_, log| log.strong_count() > 0);
        let log = Arc::default();
        logs.insert(plugin.to_owned(), Arc::downgrade(&log));
        log
    }
}

/// Locks a mutex even if a thread panicked while holding it: the data is valid after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap_or_default()
    }

    #[test]
    fn a_plugin_writes_its_burst_and_then_so_much_a_second() {
        let log = PluginLog::default();
        let written = |seconds| {
            std::iter::from_fn(|| (log.admit(1_024 - LINE, at(seconds)) == Admission::Admitted).then_some(())).count()
        };
        assert_eq!(written(0), 4 << 10);
        assert_eq!((written(0), written(1), written(3)), (0, 16, 32));
        assert_eq!(written(1_000), 4 << 10, "it has rested");
    }

    #[test]
    fn it_is_told_once_an_hour_that_lines_are_dropped() {
        let log = PluginLog::default();
        let large = 5 << 20;
        for (seconds, expected) in [
            (0, Admission::FirstRefused),
            (0, Admission::Refused),
            (3_599, Admission::Refused),
            (3_600, Admission::FirstRefused),
        ] {
            assert_eq!(log.admit(large, at(seconds)), expected, "after {seconds} s");
        }
        assert_eq!(log.admit(1, at(3_600)), Admission::Admitted, "a line that fits is written");
    }

    #[test]
    fn versions_of_a_plugin_share_its_log_and_no_other_plugin_does() {
        let logs = PluginLogs::default();
        let (one, same, other) = (logs.of("one"), logs.of("one"), logs.of("other"));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        drop((one, same));
        let _third = logs.of("third");
        assert_eq!(lock(&logs.0).keys().collect::<Vec<_>>(), ["other", "third"], "what is gone is forgotten");
    }
}
