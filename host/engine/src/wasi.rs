//! WASI without any access: no files, no network, no environment. Standard output and error become log lines, the clock is fixed for
//! the call, and random numbers are derived from the request. Components of ordinary toolchains import WASI, so it is linked to keep
//! them working.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use jiff::Timestamp;
use rand::{SeedableRng, rngs::SmallRng};
use tokio::io::AsyncWrite;
use tracing::Span;
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx,
    cli::{IsTerminal, StdoutStream},
};

use crate::{Admission, contract::log::Level, log_rate::PluginLog};

/// Writes the log lines of a call up to the limits of the call and of its plugin. Clones share the limits.
#[derive(Clone)]
pub(crate) struct LogBudget {
    spent: Arc<Mutex<Spent>>,
    plugin: Arc<PluginLog>,
    clock_read: Arc<AtomicBool>,
}

/// What a call has written.
struct Spent {
    /// The time of the call.
    now: Timestamp,
    /// What the lines are about: threads that write them may know nothing of it.
    about: Span,
    /// The bytes that it may still write; none after the cut.
    left: Option<usize>,
    /// The lines that were not written.
    dropped: usize,
}

impl LogBudget {
    /// A budget of so many bytes for a call at this time, within what its plugin may write.
    pub(crate) fn new(bytes: usize, plugin: Arc<PluginLog>, now: Timestamp) -> Self {
        let spent = Spent::nothing_of(bytes, now);
        Self { spent: Arc::new(Mutex::new(spent)), plugin, clock_read: Arc::default() }
    }

    /// The same for another call, also for all clones.
    pub(crate) fn begin_again(&self, bytes: usize, now: Timestamp) {
        *lock(&self.spent) = Spent::nothing_of(bytes, now);
        self.clock_read.store(false, Ordering::Relaxed);
    }

    /// Forgets what the lines of a call that has ended were about.
    pub(crate) fn rest(&self) {
        lock(&self.spent).about = Span::none();
    }

    pub(crate) fn clock_was_read(&self) -> bool {
        self.clock_read.load(Ordering::Relaxed)
    }

    /// The lines that were not written for want of a budget.
    pub(crate) fn dropped(&self) -> usize {
        lock(&self.spent).dropped
    }

    /// Writes the lines of a message, cut at the limit. The cut is logged once.
    pub(crate) fn write(&self, level: Level, message: &str) {
        let mut spent = lock(&self.spent);
        let about = spent.about.clone();
        let _entered = about.enter();
        let Some(bytes) = spent.left else {
            spent.dropped += lines(message).count();
            return;
        };
        let fits = message.floor_char_boundary(bytes);
        let dropped = lines(&message[..fits]).filter(|line| !self.emit(level, line, spent.now)).count();
        spent.dropped += dropped + lines(&message[fits..]).count();
        spent.left = (fits == message.len()).then(|| bytes - fits);
        if spent.left.is_none() {
            let cut = "the plugin's log is cut here: it wrote more than its limit in one call";
            self.emit(Level::Warn, cut, spent.now);
        }
    }

    /// Writes a line, unless the plugin may write no more: then it returns false.
    fn emit(&self, level: Level, line: &str, now: Timestamp) -> bool {
        if !is_enabled(level) {
            return true;
        }
        match self.plugin.admit(line.len(), now) {
            Admission::Admitted => emit(level, line),
            Admission::Refused => return false,
            Admission::FirstRefused => {
                tracing::warn!(
                    "the plugin writes more log lines than it may; what is above its limit is dropped and counted in \
                     pilothouse_log_lines_dropped_total"
                );
                return false;
            }
        }
        true
    }
}

impl Spent {
    fn nothing_of(bytes: usize, now: Timestamp) -> Self {
        Self { now, about: Span::current(), left: Some(bytes), dropped: 0 }
    }
}

/// The lines of a message that are not empty.
fn lines(message: &str) -> impl Iterator<Item = &str> {
    message.lines().filter(|line| !line.trim().is_empty())
}

/// Whether lines of this level are in the log at all. Those that are not cost the plugin nothing.
fn is_enabled(level: Level) -> bool {
    match level {
        Level::Error => tracing::enabled!(target: "plugin", tracing::Level::ERROR),
        Level::Warn => tracing::enabled!(target: "plugin", tracing::Level::WARN),
        Level::Info => tracing::enabled!(target: "plugin", tracing::Level::INFO),
        Level::Debug => tracing::enabled!(target: "plugin", tracing::Level::DEBUG),
    }
}

fn emit(level: Level, line: &str) {
    match level {
        Level::Error => tracing::error!(target: "plugin", "{line}"),
        Level::Warn => tracing::warn!(target: "plugin", "{line}"),
        Level::Info => tracing::info!(target: "plugin", "{line}"),
        Level::Debug => tracing::debug!(target: "plugin", "{line}"),
    }
}

/// Locks a mutex even if a thread panicked while holding it: the data is valid after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// WASI as an instance sees it.
pub(crate) struct Wasi {
    context: WasiCtx,
    /// A guest goes on writing to the streams that it got in its first call.
    stdout: Output,
    stderr: Output,
    /// How far its monotonic clock is.
    ticks: Arc<AtomicU64>,
}

impl Wasi {
    pub(crate) fn new(logs: &LogBudget, now: Timestamp, seed: u64) -> Self {
        let stdout = Output::new(Level::Info, logs);
        let stderr = Output::new(Level::Warn, logs);
        let clock = FixedClock { now, read: logs.clock_read.clone(), ticks: Arc::default() };
        let ticks = clock.ticks.clone();
        Self { context: context(&stdout, &stderr, clock, seed), stdout, stderr, ticks }
    }

    /// Another time and other random numbers, for another call of the same instance. Its monotonic clock goes on.
    pub(crate) fn begin_again(&mut self, logs: &LogBudget, now: Timestamp, seed: u64) {
        let clock = FixedClock { now, read: logs.clock_read.clone(), ticks: self.ticks.clone() };
        self.context = context(&self.stdout, &self.stderr, clock, seed);
    }

    pub(crate) fn context(&mut self) -> &mut WasiCtx {
        &mut self.context
    }

    /// Writes lines that have no line break yet: what follows belongs to another call.
    pub(crate) fn flush(&self) {
        lock(&self.stdout.0).flush_partial();
        lock(&self.stderr.0).flush_partial();
    }
}

/// A WASI context without access to anything else.
fn context(stdout: &Output, stderr: &Output, clock: FixedClock, seed: u64) -> WasiCtx {
    WasiCtx::builder()
        .stdout(stdout.clone())
        .stderr(stderr.clone())
        .wall_clock(clock.clone())
        .monotonic_clock(clock)
        .secure_random(SmallRng::seed_from_u64(seed))
        .insecure_random(SmallRng::seed_from_u64(seed))
        .insecure_random_seed(u128::from(seed))
        // The host allocates as many bytes as the plugin asks for.
        .max_random_size(1 << 20)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}

/// The clock of a call. The wall clock stands still. The monotonic clock advances by a microsecond at each read, for guests that wait
/// until it has advanced.
#[derive(Clone)]
struct FixedClock {
    now: Timestamp,
    read: Arc<AtomicBool>,
    ticks: Arc<AtomicU64>,
}

impl HostWallClock for FixedClock {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        self.read.store(true, Ordering::Relaxed);
        Duration::from_secs(self.now.as_second().try_into().unwrap_or_default())
    }
}

impl HostMonotonicClock for FixedClock {
    fn resolution(&self) -> u64 {
        1_000
    }

    fn now(&self) -> u64 {
        // Does not count as reading the clock: a new instance always reads the same values.
        self.ticks.fetch_add(1_000, Ordering::Relaxed)
    }
}

/// Standard output or error of a guest, also as a stream that it writes to.
#[derive(Clone)]
struct Output(Arc<Mutex<Lines>>);

impl Output {
    fn new(level: Level, logs: &LogBudget) -> Self {
        Self(Arc::new(Mutex::new(Lines { level, logs: logs.clone(), partial: Vec::new() })))
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

/// The bytes of a line at most; a longer one is split.
const MAX_LINE: usize = 4 << 10;

/// Splits a byte stream into log lines.
struct Lines {
    level: Level,
    logs: LogBudget,
    partial: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        // A line may come in several writes, so what follows the last line break waits for its rest.
        if let Some(end) = self.partial.iter().rposition(|&byte| byte == b'\n') {
            let rest = self.partial.split_off(end + 1);
            self.flush_partial();
            self.partial = rest;
        }
        // A line that never ends would be kept as a whole.
        if self.partial.len() > MAX_LINE {
            self.flush_partial();
        }
    }

    fn flush_partial(&mut self) {
        if !self.partial.is_empty() {
            self.logs.write(self.level, &String::from_utf8_lossy(&self.partial));
            self.partial.clear();
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        lock(&self.0).push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        // A guest may flush in the middle of a line, which must stay one line in the log.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes: usize) -> LogBudget {
        LogBudget::new(bytes, Arc::default(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_budget_is_spent_once_and_cut_between_characters() {
        let logs = budget(10);
        logs.write(Level::Info, "12345");
        assert_eq!(lock(&logs.spent).left, Some(5));
        logs.clone().write(Level::Info, "äöü");
        assert_eq!(lock(&logs.spent).left, None, "six bytes do not fit into five");
        logs.write(Level::Info, "");
        assert_eq!(lock(&logs.spent).left, None);
        logs.write(Level::Info, "one\n\ntwo");
        assert_eq!(logs.dropped(), 3, "the third letter, and two lines");
    }

    #[test]
    fn output_becomes_lines_however_it_is_cut() {
        let logs = budget(100);
        let mut lines = Lines { level: Level::Info, logs: logs.clone(), partial: Vec::new() };
        lines.push(b"one\ntw");
        assert_eq!(lines.partial, b"tw");
        assert_eq!(lock(&logs.spent).left, Some(96));
        lines.push(b"o\n");
        assert_eq!(lines.partial, b"");
        lines.push(b"rest");
        lines.flush_partial();
        assert_eq!(lock(&logs.spent).left, Some(88), "what is left without a line end is written at the end");
        logs.begin_again(10, Timestamp::UNIX_EPOCH);
        lines.push(b"next\n");
        assert_eq!(lock(&logs.spent).left, Some(5), "of the next call's");
    }

    /// Guests rely on that, whatever call it is.
    #[test]
    fn the_monotonic_clock_never_goes_back() -> wasmtime::Result<()> {
        use wasmtime_wasi::{clocks::WasiClocksCtxView, p2::bindings::clocks::monotonic_clock::Host};
        let logs = budget(1);
        let mut wasi = Wasi::new(&logs, Timestamp::UNIX_EPOCH, 1);
        let mut table = wasmtime::component::ResourceTable::new();
        let mut now = |wasi: &mut Wasi| WasiClocksCtxView { ctx: wasi.context().clocks(), table: &mut table }.now();
        let first = now(&mut wasi)?;
        wasi.begin_again(&logs, Timestamp::UNIX_EPOCH, 1);
        let second = now(&mut wasi)?;
        assert!(second > first, "{first}, then {second}");
        Ok(())
    }

    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let mut lines = Lines { level: Level::Info, logs: budget(100), partial: Vec::new() };
        for _ in 0..100 {
            lines.push(&[b'x'; 1_000]);
            assert!(lines.partial.len() <= MAX_LINE, "{}", lines.partial.len());
        }
    }

    #[test]
    fn the_frozen_clock_says_that_it_was_read() {
        let logs = budget(1);
        let clock = FixedClock { now: Timestamp::UNIX_EPOCH, read: logs.clock_read.clone(), ticks: Arc::default() };
        assert!(HostMonotonicClock::now(&clock) < HostMonotonicClock::now(&clock));
        assert!(!logs.clock_was_read());
        assert_eq!(HostWallClock::now(&clock), Duration::ZERO);
        assert!(logs.clock_was_read());
    }
}
