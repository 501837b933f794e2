//! The ticker that ends time slices by advancing wasmtime's epoch. Its timer is set when a call starts and stopped when no call runs
//! any more, so it fires only for long calls. Ordinary calls end within microseconds and wake no thread, and an idle host uses no
//! CPU. After a long call was found, it ticks until no call runs. A late tick is never made up for, because a busy machine must not
//! shorten the time of a call.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::{
    io::{read, retry_on_intr},
    time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime},
};

use crate::Limits;

/// The length of the first slice. Longer than [`Limits::SLICE`], so that a short call that the system interrupts does not count as a
/// long one.
const FIRST_SLICE: Duration = Duration::from_millis(10);

/// Advances the epoch while a long call runs.
pub(crate) struct Ticker(Arc<Clock>);

/// A call in progress.
pub(crate) struct Running(Arc<Clock>);

struct Clock {
    timer: OwnedFd,
    first_slice: Duration,
    calls: Mutex<Calls>,
}

/// The calls in progress. The timer is set under the same lock, so both always agree.
#[derive(Default)]
struct Calls {
    running: usize,
    /// Whether the ticker was dropped.
    stopped: bool,
}

impl Ticker {
    /// Starts the thread, which ends when the ticker is dropped.
    pub(crate) fn start(engine: &wasmtime::Engine) -> io::Result<Self> {
        let clock = Arc::new(Clock::new(FIRST_SLICE)?);
        // Weak, so that this thread does not keep the engine alive.
        let (seen, engine) = (clock.clone(), engine.weak());
        let tick = move || {
            if let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
            }
        };
        thread::Builder::new().name("epoch".into()).spawn(move || {
            if let Err(error) = seen.follow(tick) {
                tracing::error!("calls are no longer interrupted, restart the host: {error}");
            }
        })?;
        Ok(Self(clock))
    }

    /// Registers a call until the result is dropped. If the call is long, the epoch advances.
    pub(crate) fn enter(&self) -> io::Result<Running> {
        let mut calls = self.0.calls();
        if calls.running == 0 {
            // Only for the first call: setting the timer again for each would postpone the tick of a long call that runs already.
            self.0.set(self.0.first_slice)?;
        }
        calls.running += 1;
        Ok(Running(self.0.clone()))
    }
}

impl Clock {
    fn new(first_slice: Duration) -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, first_slice, calls: Mutex::default() })
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the timer to fire once after this time. Replaces the previous time; zero stops the timer.
    fn set(&self, after: Duration) -> io::Result<()> {
        let tv_sec = i64::try_from(after.as_secs()).map_err(io::Error::other)?;
        let it_value = Timespec { tv_sec, tv_nsec: after.subsec_nanos().into() };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        Ok(())
    }

    /// Ticks whenever the timer fires, until the ticker is dropped.
    fn follow(&self, tick: impl Fn()) -> io::Result<()> {
        loop {
            retry_on_intr(|| read(&self.timer, &mut [0; 8]))?;
            let calls = self.calls();
            if calls.stopped {
                return Ok(());
            }
            // The last call may have ended while the timer fired.
            if calls.running > 0 {
                tick();
                self.set(Limits::SLICE)?;
            }
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        let mut calls = self.0.calls();
        calls.stopped = true;
        // This wakes the thread. Zero would stop the timer.
        if let Err(error) = self.0.set(Duration::from_nanos(1)) {
            tracing::error!("failed to end the epoch thread: {error}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut calls = self.0.calls();
        calls.running -= 1;
        if calls.running == 0
            // After `stopped` the timer has to fire once more, because it ends the thread.
            && !calls.stopped
            && let Err(error) = self.0.set(Duration::ZERO)
        {
            tracing::error!("failed to stop the clock of calls: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, mpsc};

    use rustix::time::timerfd_gettime;

    use super::*;

    /// A slice that does not end during a test, because the timer of a slice that has ended would look stopped.
    const LONG: Duration = Duration::from_secs(3_600);

    fn is_set(clock: &Clock) -> io::Result<bool> {
        Ok(timerfd_gettime(&clock.timer)?.it_value != Timespec { tv_sec: 0, tv_nsec: 0 })
    }

    #[test]
    fn the_timer_is_set_while_calls_run() -> io::Result<()> {
        let clock = Arc::new(Clock::new(LONG)?);
        let ticker = Ticker(clock.clone());
        assert!(!is_set(&clock)?, "idle");
        let (one, two) = (ticker.enter()?, ticker.enter()?);
        assert!(is_set(&clock)?, "two calls");
        drop(one);
        assert!(is_set(&clock)?, "one goes on");
        drop(two);
        assert!(!is_set(&clock)?, "idle again");
        Ok(())
    }

    #[test]
    fn a_call_that_begins_while_another_ends_has_its_timer() -> io::Result<()> {
        let clock = Arc::new(Clock::new(LONG)?);
        let (ticker, both) = (Ticker(clock.clone()), Barrier::new(2));
        for turn in 0..2_000 {
            let first = ticker.enter()?;
            let second = thread::scope(|scope| {
                let second = scope.spawn(|| {
                    both.wait();
                    ticker.enter()
                });
                both.wait();
                drop(first);
                second.join().map_err(|_| io::Error::other("the thread panicked"))?
            })?;
            assert!(is_set(&clock)?, "turn {turn}");
            drop(second);
        }
        Ok(())
    }

    #[test]
    fn the_thread_ticks_for_a_long_call_and_ends_with_its_ticker() -> io::Result<()> {
        let clock = Arc::new(Clock::new(FIRST_SLICE)?);
        let (ticker, (ticked, ticks)) = (Ticker(clock.clone()), mpsc::channel());
        let thread = thread::spawn(move || clock.follow(|| assert!(ticked.send(()).is_ok(), "the test waits")));
        let call = ticker.enter()?;
        assert_eq!((ticks.recv(), ticks.recv()), (Ok(()), Ok(())));
        drop(ticker);
        drop(call);
        thread.join().map_err(|_| io::Error::other("the thread panicked"))?
    }
}
