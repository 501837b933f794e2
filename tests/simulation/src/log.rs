//! The hosts' log, as lines of the record. Only where a record is kept: formatting takes longer than the history itself.
//!
//! The whole process has one subscriber. With one for each record, a line that is first reached on a thread without a subscriber may be
//! switched off for every thread, and two records of one history would differ.

use std::{cell::RefCell, io, sync::LazyLock};

use tracing::{
    Level, Metadata,
    level_filters::LevelFilter,
    subscriber::{Interest, SetGlobalDefaultError},
};
use tracing_subscriber::{
    Layer,
    filter::dynamic_filter_fn,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    registry,
};

use crate::record::Record;

/// The crates whose log goes into the record.
const HOSTS: [&str; 3] = ["pilothouse_controller", "pilothouse_engine", "pilothouse_simulation"];

thread_local! {
    /// The record of the history that this thread runs.
    static RECORD: RefCell<Option<Record>> = const { RefCell::new(None) };
}

/// Writes each line of the log into the record of its thread.
struct Lines;

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        RECORD.with_borrow(|record| {
            if let Some(record) = record {
                record.note("log", || String::from_utf8_lossy(line).trim_end().to_owned());
            }
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

/// Ends the record of this thread's log when it is dropped.
#[must_use]
pub struct Recorded(());

impl Drop for Recorded {
    fn drop(&mut self) {
        RECORD.set(None);
    }
}

/// What this thread's hosts log goes into the record, until the guard is dropped.
///
/// # Errors
/// If the process has another subscriber.
pub fn into_record(record: &Record) -> Result<Recorded, &'static SetGlobalDefaultError> {
    static SUBSCRIBER: LazyLock<Result<(), SetGlobalDefaultError>> = LazyLock::new(|| {
        let lines = fmt::layer().without_time().with_ansi(false).with_target(false).with_writer(|| Lines);
        let recorded = dynamic_filter_fn(|_, _| RECORD.with_borrow(Option::is_some))
            .with_max_level_hint(LevelFilter::DEBUG)
            .with_callsite_filter(
                |metadata| if is_of_hosts(metadata) { Interest::sometimes() } else { Interest::never() },
            );
        tracing::subscriber::set_global_default(registry().with(lines.with_filter(recorded)))
    });
    SUBSCRIBER.as_ref()?;
    RECORD.set(Some(record.clone()));
    Ok(Recorded(()))
}

fn is_of_hosts(metadata: &Metadata<'_>) -> bool {
    *metadata.level() <= Level::DEBUG && HOSTS.iter().any(|target| metadata.target().starts_with(target))
}
