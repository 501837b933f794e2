//! The clock that ends slices: a timer that is set when a call begins and stopped when it ends, so that it fires only for
//! one that lasts. Ordinary calls, which end within microseconds, wake no thread, and an idle host uses no CPU. Once it has
//! met a long call it ticks until none is left. Never counts late ticks twice: a loaded machine must not shorten a call's time.

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

/// How long a call computes while none is known to be long: the first slice. More than [`Limits::SLICE`], so that a short
/// call that the system interrupts is not taken for a long one.
const FIRST: Duration = Duration::from_millis(10);

/// Keeps the epoch advancing while a long call runs.
pub(crate) struct Ticker(Arc<Clock>);

/// One call in flight.
pub(crate) struct Running(Arc<Clock>);

struct Clock {
    timer: OwnedFd,
    calls: Mutex<Calls>,
}

/// What the timer is set for; it is set under the same lock.
#[derive(Default)]
struct Calls {
    running: usize,
    /// Whether the ticker is gone.
    over: bool,
}

impl Ticker {
    /// Starts the clock's thread; it ends when the ticker is dropped.
    pub(crate) fn start(engine: &wasmtime::Engine) -> io::Result<Self> {
        let clock = Arc::new(Clock::new()?);
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

    /// Notes a call; if it lasts, the epoch advances until it is dropped.
    pub(crate) fn enter(&self) -> io::Result<Running> {
        let mut calls = self.0.calls();
        if calls.running == 0 {
            self.0.set(FIRST)?;
        }
        calls.running += 1;
        Ok(Running(self.0.clone()))
    }
}

impl Clock {
    fn new() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self { timer, calls: Mutex::default() })
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fires once after this time, below a second, and not at the time that was set before; never for zero.
    fn set(&self, after: Duration) -> io::Result<()> {
        let it_value = Timespec { tv_sec: 0, tv_nsec: after.subsec_nanos().into() };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        Ok(())
    }

    /// Ticks whenever the timer fires, until the ticker is gone.
    fn follow(&self, tick: impl Fn()) -> io::Result<()> {
        loop {
            retry_on_intr(|| read(&self.timer, &mut [0; 8]))?;
            let calls = self.calls();
            if calls.over {
                return Ok(());
            }
            // One that ended while the timer fired needs no tick.
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
        calls.over = true;
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
            && !calls.over
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

    fn is_set(clock: &Clock) -> io::Result<bool> {
        Ok(timerfd_gettime(&clock.timer)?.it_value != Timespec { tv_sec: 0, tv_nsec: 0 })
    }

    #[test]
    fn the_timer_is_set_while_calls_run() -> io::Result<()> {
        let clock = Arc::new(Clock::new()?);
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
        let clock = Arc::new(Clock::new()?);
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
        let clock = Arc::new(Clock::new()?);
        let (ticker, (ticked, ticks)) = (Ticker(clock.clone()), mpsc::channel());
        let thread = thread::spawn(move || clock.follow(|| assert!(ticked.send(()).is_ok(), "the test waits")));
        let call = ticker.enter()?;
        assert_eq!((ticks.recv(), ticks.recv()), (Ok(()), Ok(())));
        drop(ticker);
        drop(call);
        thread.join().map_err(|_| io::Error::other("the thread panicked"))?
    }
}
