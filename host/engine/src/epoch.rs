//! The clock that ends slices: advances the engine's epoch while calls are running and sleeps while none are, so that
//! an idle host uses no CPU. Never counts late ticks twice: a loaded machine must not shorten a call's time.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, Thread},
};

use crate::Limits;

/// Idle ticks before the clock stops; starting it again costs a system call.
const LINGER: u32 = 2;

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
    let mut idle = 0;
    while idle < LINGER {
        let Some(running) = running.upgrade() else { return false };
        idle = if running.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
        drop(running);
        thread::sleep(Limits::SLICE);
        engine.increment_epoch();
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
