//! How often the host writes the status of a `Plugin`. Where somebody else writes it, too, as a second host of the cluster does, both
//! would go on without end. Writes nothing itself.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use pilothouse_engine::{Admission, Rate, Refusals, TokenBucket};

use crate::events::Event;

/// More than the swaps and canaries of a plugin need.
const WRITES: Rate = Rate::new(100, Duration::from_secs(1));
/// The reason of the Event.
const STATUS_CONTESTED: &str = "StatusContested";

/// The writes of each `Plugin`.
#[derive(Debug, Default)]
pub struct StatusWrites(BTreeMap<String, Spent>);

#[derive(Debug, Default)]
struct Spent {
    writes: TokenBucket,
    refusals: Refusals,
}

impl StatusWrites {
    /// Whether the status of this `Plugin` may be written now. If not, the next look at the `Plugin` tries again.
    pub fn admit(&mut self, plugin: &str, now: Timestamp) -> Admission {
        let Spent { writes, refusals } = self.0.entry(plugin.to_owned()).or_default();
        if writes.take(WRITES, 1, now) { Admission::Admitted } else { refusals.refuse(now) }
    }

    /// A `Plugin` is gone.
    pub fn forget(&mut self, plugin: &str) {
        self.0.remove(plugin);
    }
}

/// What is told.
pub fn contested() -> Event {
    let message = "the status changes all the time: something else writes it, too. Is there a second host? A cluster takes one, \
                   which may have replicas";
    Event::warning(STATUS_CONTESTED, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hosts_write_no_longer_without_end() {
        let (mut writes, start) = (StatusWrites::default(), Timestamp::UNIX_EPOCH);
        let admitted = |writes: &mut StatusWrites, plugin: &str, seconds: i64| {
            let now = start + jiff::SignedDuration::from_secs(seconds);
            let all: Vec<_> = (0..1_000).map(|_| writes.admit(plugin, now)).collect();
            let number = |of: Admission| all.iter().filter(|it| **it == of).count();
            (number(Admission::Admitted), number(Admission::FirstRefused))
        };
        assert_eq!(admitted(&mut writes, "web", 0), (100, 1));
        assert_eq!(admitted(&mut writes, "web", 10), (10, 0));
        assert_eq!(admitted(&mut writes, "other", 10), (100, 1));
        assert_eq!(admitted(&mut writes, "web", 3_700), (100, 1));
        writes.forget("web");
        assert_eq!(admitted(&mut writes, "web", 3_700), (100, 1));
    }
}
