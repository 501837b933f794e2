//! The first instance of a component that is about to be loaded: what loops or traps at its start would do so in each call, so it is
//! refused before it takes the place of a version that works. Calls no function of the plugin.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    CallContext, LoadError, NoLookups, Outcome, StartError,
    call::{in_time, store},
    engine::Code,
    state::CallState,
};

impl Code {
    /// Creates an instance within the limits of a call, and drops it.
    pub(crate) async fn try_start(self: &Arc<Self>) -> Result<(), LoadError> {
        let code = self.clone();
        let start = Box::pin(async move { code.start().await });
        let Err(outcome) = self.shared.slow.run(start).await else { return Ok(()) };
        match self.refusal(&outcome) {
            Some(why) => Err(why.into()),
            None => Ok(()),
        }
    }

    async fn start(&self) -> Result<(), Outcome> {
        let reservation = self.shared.budget.begin_call(&self.share, self.need.bytes()).await;
        let context = CallContext { lookups: Arc::new(NoLookups), now: Timestamp::UNIX_EPOCH };
        let seed = self.imports_wasi.then_some(0);
        let mut store = store(self, CallState::new(self, reservation, context, seed));
        let started = in_time(self.limits.wall, async {
            let _running = self.shared.ticker.enter()?;
            self.pre.instantiate_async(&mut store).await.map(drop)
        });
        match started.await {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.classify(&error, store.data())),
            None => Err(Outcome::Deadline(self.limits.wall)),
        }
    }

    /// What a start that ended like this says against the component; none if it says nothing.
    fn refusal(&self, outcome: &Outcome) -> Option<StartError> {
        match outcome {
            // Nobody is to blame, and calls learn from that what to wait for.
            Outcome::HostMemory(_) => {
                self.need.reserve_all(self.limits.memory_bytes);
                None
            }
            Outcome::Response(_) => None,
            Outcome::Deadline(time) => Some(StartError::Deadline(*time)),
            Outcome::MemoryLimit(bytes) => Some(StartError::Memory(*bytes)),
            Outcome::OutputLimit(bytes) => Some(StartError::Output(*bytes)),
            Outcome::Trap(why) | Outcome::Contract(why) => Some(StartError::Trap(why.clone())),
        }
    }
}
