//! How far the rounds of a reconcile are, and which of them count. Children that do not fit into one answer come in waves, and waves are no
//! sign of a plugin that does not converge. A wave is many children, or large ones: who has to split an answer fills it. Pure.

use serde_json::Value;

use crate::pipeline::{apply::Applied, observe::Observed};

/// A round that creates so many children, so that there are more than ever, counts as no round.
const WAVE: usize = 10;

/// Nor does one that creates so many bytes of children. An eighth of the largest answer: a plugin that fills a quarter of it with children
/// of one size, however large that is, creates at least half of that in each wave.
const WAVE_BYTES: usize = 128 << 10;

/// How far the rounds of a reconcile are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// The number of this round, from 1 on, without those that only created many children.
    pub(super) round: usize,
    /// How many children there were after the last one that did.
    children: usize,
}

impl Progress {
    /// At the first round.
    pub(super) fn begin() -> Self {
        Self { round: 1, children: 0 }
    }

    /// After a round that counts.
    pub(super) fn after_round(self) -> Self {
        Self { round: self.round + 1, ..self }
    }

    /// After a round that created many children, so that there are so many now.
    pub(super) fn after_wave(self, children: usize) -> Self {
        // Only the first round is the first one.
        Self { round: self.round.max(2), children }
    }

    /// How many children there are now, if a round has created many, deleted none, and there are more than ever.
    pub(super) fn wave(self, observed: &Observed, applied: &Applied) -> Option<usize> {
        let is_whole = applied.failures.is_empty() && applied.deleted.is_empty() && applied.recreations.is_empty();
        is_whole.then(|| self.wave_of(&applied.created(), observed.children.len())).flatten()
    }

    /// The same for children that were created, beside so many that were there.
    fn wave_of(self, created: &[&Value], before: usize) -> Option<usize> {
        let children = before + created.len();
        let are_large = || created.iter().map(|child| bytes(child)).sum::<usize>() >= WAVE_BYTES;
        // Measuring takes longest.
        (children > self.children && (created.len() >= WAVE || are_large())).then_some(children)
    }
}

/// How long a child is in an answer, about.
fn bytes(child: &Value) -> usize {
    child.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the round that follows rounds which created so many children, of which so many were gone again before the next.
    fn round_after(rounds: &[(usize, usize)]) -> usize {
        round_after_large(0, rounds)
    }

    /// The same with children of so many bytes.
    fn round_after_large(bytes: usize, rounds: &[(usize, usize)]) -> usize {
        let child = Value::String("x".repeat(bytes));
        let (mut progress, mut children) = (Progress::begin(), 0);
        for (created, gone) in rounds {
            progress = match progress.wave_of(&vec![&child; *created], children) {
                Some(now) => progress.after_wave(now),
                None => progress.after_round(),
            };
            children += created - gone;
        }
        progress.round
    }

    #[test]
    fn a_round_that_creates_many_children_does_not_count_while_there_are_more_than_ever() {
        for (name, rounds, expected) in [
            ("a thousand in waves", vec![(100, 0); 10], 2),
            ("a few each time", vec![(9, 0); 10], 11),
            ("a wave, and then a few", vec![(100, 0), (5, 0), (0, 0)], 4),
            ("the same ones again and again: nothing gets on", vec![(100, 100); 10], 11),
            ("more than ever, though some go", vec![(100, 50); 4], 2),
        ] {
            assert_eq!(round_after(&rounds), expected, "{name}");
        }
    }
    #[test]
    fn nor_does_one_that_creates_large_children() {
        for (name, bytes, rounds, expected) in [
            ("nine that fill a quarter of an answer", 28_000, vec![(9, 0); 10], 2),
            ("two of them", 128_000, vec![(2, 0); 10], 2),
            ("one that takes more", 300_000, vec![(1, 0); 10], 2),
            ("a few small ones each time", 10_000, vec![(9, 0); 10], 11),
            ("the same large ones again and again", 28_000, vec![(9, 9); 10], 11),
        ] {
            assert_eq!(round_after_large(bytes, &rounds), expected, "{name}");
        }
    }
}
