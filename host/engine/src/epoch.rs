//! The clock that ends slices: advances the engine's epoch while calls are running and sleeps while none are, so that
//! an idle host uses no CPU. Ordinary calls end within microseconds and need no clock, so it looks for long ones at leisure
//! and ticks only once it has met one. Never counts late ticks twice: a loaded machine must not shorten a call's time.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use crate::Limits;

/// Looks that meet no call before the clock stops; starting it again costs a system call.
const LINGER: u32 = 2;

/// From one look to the next while no look meets a call: so long the first slice of a long call can be, at most.
const LOOK: Duration = Duration::from_millis(20);

/// Keeps the epoch advancing while at least one [`Running`] is alive.
pub(crate) struct Ticker {
    running: Arc<AtomicUsize>,
    thread: Thread,
}

/// One call in flight.
pub(crate) struct Running(Arc<AtomicUsize>);

impl Ticker {
    /// Starts the clock's thread; it ends when the ticker is dropped.
    pub(crate) fn start(engine: &wasmtime::Engine) -> std::io::Result<Self> {
        let running = Arc::new(AtomicUsize::new(0));
        let (seen, engine) = (Arc::downgrade(&running), engine.weak());
        let handle = thread::Builder::new().name("epoch".into()).spawn(move || {
            while let Some(engine) = engine.upgrade() {
                if !tick_while_busy(&engine, &seen) {
                    return;
                }
                drop(engine);
                thread::park();
            }
        })?;
        Ok(Self { running, thread: handle.thread().clone() })
    }

    /// Notes a call; the epoch advances until it is dropped.
    pub(crate) fn enter(&self) -> Running {
        if self.running.fetch_add(1, Ordering::SeqCst) == 0 {
            self.thread.unpark();
        }
        Running(self.running.clone())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.running = Arc::default();
        self.thread.unpark();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Ticks until no call has run for a while; false once the ticker is gone.
fn tick_while_busy(engine: &wasmtime::Engine, running: &Weak<AtomicUsize>) -> bool {
    let (mut idle, mut pause) = (0, LOOK);
    while idle < LINGER {
        thread::sleep(pause);
        let Some(running) = running.upgrade() else { return false };
        if running.load(Ordering::SeqCst) == 0 {
            (idle, pause) = (idle + 1, LOOK);
        } else {
            engine.increment_epoch();
            (idle, pause) = (0, Limits::SLICE);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stops_when_idle_and_ends_with_its_ticker() {
        let engine = wasmtime::Engine::default();
        let running = Arc::new(AtomicUsize::new(0));
        assert!(tick_while_busy(&engine, &Arc::downgrade(&running)), "idle: it stops and waits");
        let gone = Arc::downgrade(&running);
        drop(running);
        assert!(!tick_while_busy(&engine, &gone), "without its ticker it ends");
    }

    #[test]
    fn calls_are_counted_in_and_out() -> std::io::Result<()> {
        let ticker = Ticker::start(&wasmtime::Engine::default())?;
        let (one, two) = (ticker.enter(), ticker.enter());
        assert_eq!(ticker.running.load(Ordering::SeqCst), 2);
        drop((one, two));
        assert_eq!(ticker.running.load(Ordering::SeqCst), 0);
        Ok(())
    }
}
