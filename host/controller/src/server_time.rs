//! How far the clock of this machine is off the API server's, from the `Date` of its answers. Reads no clock and sends nothing.
//!
//! What one host writes another one compares later: when a condition changed, when a step of a canary began, when an object was created
//! (which the API server writes). Machines whose clocks differ have to agree on what time it is, and the API server is what they share.

use jiff::{SignedDuration, Timestamp};

/// A date of HTTP has whole seconds: the time that it was made at lies within this time after it.
const RESOLUTION: SignedDuration = SignedDuration::from_secs(1);

/// The bounds within which the difference lies, from the API server's time to this machine's, and what is taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    least: SignedDuration,
    most: SignedDuration,
    correction: SignedDuration,
}

impl Difference {
    /// What the date of one answer tells, whose request was sent and whose headers were received at these times of this machine.
    pub fn of(sent: Timestamp, received: Timestamp, date: Timestamp) -> Self {
        Self::within(
            date.duration_since(received),
            date.duration_since(sent).saturating_add(RESOLUTION),
            SignedDuration::ZERO,
        )
    }

    /// What both tell. If they contradict each other, one of the clocks was set meanwhile, and the newer one counts.
    pub fn narrowed(self, newer: Self) -> Self {
        let both = Self::within(self.least.max(newer.least), self.most.min(newer.most), self.correction);
        // The bounds of an answer that took long are far apart: the time moves by no more than it must.
        if both.least <= both.most { both } else { Self::within(newer.least, newer.most, self.correction) }
    }

    /// What to add to this machine's time: as little as agrees with what is known, so nothing for clocks that may agree, and what is nearest to
    /// it once a clock was set.
    pub fn correction(self) -> SignedDuration {
        self.correction
    }

    /// These bounds, with what is nearest to a correction.
    fn within(least: SignedDuration, most: SignedDuration, correction: SignedDuration) -> Self {
        Self { least, most, correction: correction.min(most).max(least) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH.saturating_add(SignedDuration::from_millis(milliseconds)).unwrap_or(Timestamp::MAX)
    }

    /// An answer of a server whose clock is ahead by so many milliseconds, after half the time between these two.
    fn answer(ahead: i64, sent: i64, received: i64) -> Difference {
        let answered = i64::midpoint(sent, received) + ahead;
        Difference::of(at(sent), at(received), at(answered.div_euclid(1_000) * 1_000))
    }

    #[test]
    fn clocks_that_may_agree_are_not_corrected() {
        let mut known = answer(0, 100, 150);
        for sent in (0..10_000).step_by(37) {
            known = known.narrowed(answer(0, sent, sent + 20));
            assert_eq!(known.correction(), SignedDuration::ZERO, "after the answer to {sent}: {known:?}");
        }
    }

    #[test]
    fn the_more_answers_the_closer_the_correction() {
        for ahead in [-3_600_000, -120_000, -700, 700, 90_500, 31_536_000_000] {
            let first = answer(ahead, 100, 150);
            let known =
                (0..10_000).step_by(37).fold(first, |known, sent| known.narrowed(answer(ahead, sent, sent + 20)));
            let off = (known.correction() - SignedDuration::from_millis(ahead)).abs();
            assert!(off.as_millis() <= 100, "{ahead} ms ahead: {known:?} is {off:?} off");
            let off = (first.correction() - SignedDuration::from_millis(ahead)).abs();
            assert!(off.as_millis() <= 1_100, "{ahead} ms ahead: the first answer alone, {first:?}, is {off:?} off");
        }
    }

    #[test]
    fn a_clock_that_is_set_counts_as_it_is_now() {
        let known = answer(0, 0, 20).narrowed(answer(600_000, 5_000, 5_020));
        assert!(known.correction() >= SignedDuration::from_secs(599), "{known:?}");
        let back = known.narrowed(answer(0, 9_000, 9_020));
        assert!(back.correction() <= RESOLUTION, "{back:?}");
        let known = (9_000..19_000).step_by(37).fold(back, |known, sent| known.narrowed(answer(0, sent, sent + 20)));
        assert!(known.correction().as_millis() <= 100, "{known:?}");
    }

    #[test]
    fn an_answer_that_took_long_moves_the_time_by_no_more_than_it_must() {
        for ahead in [-40_000_000, -7_000, 0, 7_000, 40_000_000] {
            // The API server that answered first was two seconds behind.
            let known = answer(ahead - 2_000, 0, 20);
            let late = known.narrowed(Difference::of(at(100), at(20_100), at(20_000 + ahead)));
            let off = (late.correction() - SignedDuration::from_millis(ahead)).abs();
            assert!(off.as_millis() <= 1_100, "{late:?} is {off:?} off");
        }
    }
}
