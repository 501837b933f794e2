//! Turns for large components, so that many of them at once do not need the memory of all: from the first byte to the end of its look, one is in
//! memory that is fetched or compiled, and one that only has to be loaded. Small ones wait for nobody. Knows nothing of what is in them.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What has no more bytes waits for nobody. Most components are smaller.
pub(super) const SMALL: u64 = 4 << 20;

/// What a look does with a large component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It is fetched, or has to be compiled: that takes as long as it takes.
    Slow,
    /// It is on this machine, with its machine code: that takes a moment. It waits for nothing that is slow.
    Quick,
}

/// The turns of all looks.
#[derive(Clone)]
pub(super) struct Turns {
    slow: Arc<Semaphore>,
    quick: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { slow: Arc::new(Semaphore::new(1)), quick: Arc::new(Semaphore::new(1)) }
    }
}

/// The turn of one look, which ends when this is dropped with all its clones.
#[derive(Clone)]
pub(super) struct Turn {
    turns: Turns,
    held: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Turns {
    /// A look that has no turn yet.
    pub(super) fn begin_look(&self) -> Turn {
        Turn { turns: self.clone(), held: Arc::default() }
    }
}

impl Turn {
    /// Waits for its turn. A look that has one already has it for all that it needs: it would wait for itself.
    pub(super) async fn take(&self, work: Work) {
        if self.is_held() {
            return;
        }
        let turns = match work {
            Work::Slow => &self.turns.slow,
            Work::Quick => &self.turns.quick,
        };
        // Nobody closes them.
        let taken = turns.clone().acquire_owned().await.ok();
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = taken;
    }

    /// The same for a component of so many bytes, if that is large.
    pub(super) async fn take_for(&self, bytes: u64, work: Work) {
        if bytes > SMALL {
            self.take(work).await;
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_look_of_each_sort_has_a_turn_until_it_ends() {
        let turns = Turns::default();
        let [first, second, quick] = std::array::from_fn(|_| turns.begin_look());
        first.take(Work::Slow).await;
        assert!(first.take(Work::Quick).now_or_never().is_some(), "it has a turn already");
        assert!(second.take(Work::Slow).now_or_never().is_none(), "another one has its turn");
        assert!(quick.take(Work::Quick).now_or_never().is_some(), "what is quick waits for nothing slow");
        let part = first.clone();
        drop(first);
        assert!(second.take(Work::Slow).now_or_never().is_none(), "a part of that look goes on");
        drop(part);
        assert!(second.take(Work::Slow).now_or_never().is_some());
    }
}
