//! The host's state of one call: its limits, the answers to its imports, and a record of everything that it reads. It lives as long as
//! the instance, so nothing leaks from one call into the next.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use wasmtime::{ResourceLimiter, component::ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::{
    Fingerprint, Limits,
    contract::{KindRef, LookupError, clock, log, lookup, trap, types},
    wasi,
};

/// The most denied lookups that are recorded for one call.
const MAX_DENIALS: usize = 16;

/// Answers a plugin's lookups. Implementations answer from memory: they run on the call's own thread and must not block.
pub trait Lookups: Send + Sync {
    /// The object with this name, as JSON text. `namespace` is none if the plugin names none.
    ///
    /// # Errors
    /// [`LookupError`] if the kind is not declared, not granted or not installed.
    fn get(&self, kind: &KindRef, namespace: Option<&str>, name: &str) -> Result<Option<String>, LookupError>;

    /// The objects that match a label selector, ordered by name, as JSON texts.
    ///
    /// # Errors
    /// As for [`Lookups::get`].
    fn select(&self, kind: &KindRef, namespace: Option<&str>, selector: &str) -> Result<Vec<String>, LookupError>;
}

/// Answers every lookup with "denied": for plugins that declare none.
#[derive(Debug)]
pub struct NoLookups;

impl Lookups for NoLookups {
    fn get(&self, kind: &KindRef, _: Option<&str>, _: &str) -> Result<Option<String>, LookupError> {
        Err(LookupError::Denied(format!("the manifest declares no lookup of {kind}")))
    }

    fn select(&self, kind: &KindRef, namespace: Option<&str>, name: &str) -> Result<Vec<String>, LookupError> {
        self.get(kind, namespace, name).map(|_| Vec::new())
    }
}

/// A lookup of a plugin, without its answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Query {
    /// A lookup by name.
    Get {
        /// The kind looked up.
        kind: KindRef,
        /// The namespace; none if the plugin names none.
        namespace: Option<String>,
        /// The name.
        name: String,
    },
    /// A lookup by label selector.
    Select {
        /// The kind looked up.
        kind: KindRef,
        /// The namespace; none if the plugin names none.
        namespace: Option<String>,
        /// The label selector.
        selector: String,
    },
}

/// What a call read besides its request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Its lookups in order, each with the fingerprint of the answer.
    pub lookups: Vec<AnsweredLookup>,
    /// Whether it read the clock.
    pub clock_read: bool,
    /// The denied lookups, each kind and reason once.
    pub denied: Vec<DeniedLookup>,
}

/// A lookup and its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredLookup {
    /// The lookup.
    pub query: Query,
    /// The fingerprint of the answer, as in [`Query::ask`].
    pub answer: Fingerprint,
}

/// A lookup that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedLookup {
    /// The kind that was looked up.
    pub kind: KindRef,
    /// Why, in a sentence for people.
    pub why: String,
}

impl Query {
    /// The fingerprint of the answer that this lookup gets now.
    pub fn ask(&self, lookups: &dyn Lookups) -> Fingerprint {
        match self {
            Self::Get { kind, namespace, name } => answer_fingerprint(&lookups.get(kind, namespace.as_deref(), name)),
            Self::Select { kind, namespace, selector } => {
                answer_fingerprint(&lookups.select(kind, namespace.as_deref(), selector))
            }
        }
    }

    /// The kind that is looked up.
    pub fn kind(&self) -> &KindRef {
        let (Self::Get { kind, .. } | Self::Select { kind, .. }) = self;
        kind
    }
}

fn answer_fingerprint(answer: &impl fmt::Debug) -> Fingerprint {
    // The debug text, because the generated error type has no `Hash`.
    Fingerprint::of(&format!("{answer:?}"))
}

/// The data of a call's store.
pub(crate) struct CallState {
    pub(crate) meter: Meter,
    pub(crate) recorded: Recorded,
    pub(crate) logs: wasi::LogBudget,
    pub(crate) lookups: Arc<dyn Lookups>,
    pub(crate) lookups_left: usize,
    pub(crate) now: Timestamp,
    pub(crate) explanation: Explanation,
    wasi: Option<WasiCtx>,
    table: ResourceTable,
}

impl CallState {
    pub(crate) fn new(limits: &Limits, lookups: Arc<dyn Lookups>, now: Timestamp, wasi_seed: Option<u64>) -> Self {
        let logs = wasi::LogBudget::new(limits.log_bytes);
        Self {
            meter: Meter::new(limits),
            recorded: Recorded::default(),
            wasi: wasi_seed.map(|seed| wasi::empty(&logs, now, seed)),
            logs,
            lookups,
            lookups_left: limits.lookups,
            now,
            explanation: Explanation::default(),
            table: ResourceTable::new(),
        }
    }

    /// What the call read, including the WASI clock.
    pub(crate) fn into_recorded(self) -> Recorded {
        let clock_read = self.recorded.clock_read || self.logs.clock_was_read();
        Recorded { clock_read, ..self.recorded }
    }

    fn spend_lookup(&mut self, kind: &KindRef) -> Result<(), LookupError> {
        let left = self.lookups_left.checked_sub(1);
        let spent = left.ok_or_else(|| LookupError::Denied("one call makes too many lookups".to_owned()));
        self.record_denial(kind, &spent);
        self.lookups_left = spent?;
        Ok(())
    }

    fn record_denial<T>(&mut self, kind: &KindRef, answer: &Result<T, LookupError>) {
        let Err(LookupError::Denied(why)) = answer else { return };
        let denied = DeniedLookup { kind: kind.clone(), why: why.clone() };
        if !self.recorded.denied.contains(&denied) && self.recorded.denied.len() < MAX_DENIALS {
            self.recorded.denied.push(denied);
        }
    }

    fn record_answer<T: fmt::Debug>(&mut self, query: Query, answer: &Result<T, LookupError>) {
        self.record_denial(&query.kind().clone(), answer);
        self.recorded.lookups.push(AnsweredLookup { query, answer: answer_fingerprint(answer) });
    }
}

/// The namespace that a lookup names. An empty text names none: languages without optional values write none so.
fn named(namespace: Option<String>) -> Option<String> {
    namespace.filter(|namespace| !namespace.is_empty())
}

impl lookup::Host for CallState {
    fn get(
        &mut self,
        kind: types::KindRef,
        namespace: Option<String>,
        name: String,
    ) -> Result<Option<String>, LookupError> {
        let (kind, namespace) = (KindRef::from(kind), named(namespace));
        self.spend_lookup(&kind)?;
        let answer = self.lookups.get(&kind, namespace.as_deref(), &name);
        self.record_answer(Query::Get { kind, namespace, name }, &answer);
        answer
    }

    fn select(
        &mut self,
        kind: types::KindRef,
        namespace: Option<String>,
        selector: String,
    ) -> Result<Vec<String>, LookupError> {
        let (kind, namespace) = (KindRef::from(kind), named(namespace));
        self.spend_lookup(&kind)?;
        let answer = self.lookups.select(&kind, namespace.as_deref(), &selector);
        self.record_answer(Query::Select { kind, namespace, selector }, &answer);
        answer
    }
}

impl clock::Host for CallState {
    fn now(&mut self) -> String {
        self.recorded.clock_read = true;
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl log::Host for CallState {
    fn write(&mut self, level: log::Level, message: String) {
        self.logs.write(level, &message);
    }
}

impl trap::Host for CallState {
    fn explain(&mut self, a: u64, b: u64, c: u64, d: u64) {
        self.explanation.add([a, b, c, d]);
    }
}

impl types::Host for CallState {}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (logs, now) = (&self.logs, self.now);
        // Calls that can get here have their context already, except those of `Plugin::instantiate`.
        let ctx = self.wasi.get_or_insert_with(|| wasi::empty(logs, now, 0));
        WasiCtxView { ctx, table: &mut self.table }
    }
}

/// The plugin's explanation of the trap that follows.
#[derive(Default)]
pub(crate) struct Explanation(Vec<u8>);

impl Explanation {
    /// The most bytes of an explanation.
    const MAX_BYTES: usize = 1_024;

    fn add(&mut self, numbers: [u64; 4]) {
        // The last piece of a text is filled up with zeros.
        let bytes = numbers.into_iter().flat_map(u64::to_le_bytes).filter(|byte| *byte != 0);
        self.0.extend(bytes.take(Self::MAX_BYTES - self.0.len()));
    }

    /// The text in one line; none if there is none.
    pub(crate) fn line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.0);
        let words: Vec<_> = text.split_whitespace().collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// Limits the memory of a call and measures its peak.
pub(crate) struct Meter {
    memory_limit: usize,
    memory: usize,
    /// The peak of the linear memory, in bytes.
    pub(crate) memory_peak: usize,
    /// Whether it refused to grow the memory.
    pub(crate) memory_refused: bool,
    table_elements: usize,
    instances: usize,
}

impl Meter {
    fn new(limits: &Limits) -> Self {
        Self {
            memory_limit: limits.memory_bytes,
            memory: 0,
            memory_peak: 0,
            memory_refused: false,
            table_elements: limits.table_elements,
            instances: limits.instances,
        }
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // All memories together. wasmtime also asks for the initial size of a memory; `current` is zero then.
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        if total > self.memory_limit {
            self.memory_refused = true;
            return Ok(false);
        }
        // wasmtime also asks if `desired` is above the maximum, and then refuses whatever this returns. That must not count as
        // used.
        let allowed = maximum.is_none_or(|maximum| desired <= maximum);
        if allowed {
            self.memory = total;
            self.memory_peak = self.memory_peak.max(total);
        }
        Ok(allowed)
    }

    fn table_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= self.table_elements && maximum.is_none_or(|maximum| desired <= maximum))
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}

#[cfg(test)]
mod tests {
    use super::Explanation;

    fn explained(text: &str) -> Option<String> {
        let mut explanation = Explanation::default();
        for piece in text.as_bytes().chunks(32) {
            let byte = |index: usize| u64::from(piece.get(index).copied().unwrap_or_default());
            explanation.add([0, 8, 16, 24].map(|from| (0..8).map(|at| byte(from + at) << (8 * at)).sum()));
        }
        explanation.line()
    }

    #[test]
    fn an_explanation_is_one_line_of_limited_length_whatever_it_holds() {
        let long = "ü".repeat(600);
        let cases = [
            ("", None),
            (" \n", None),
            ("short", Some("short".to_owned())),
            (
                "panicked at src/lib.rs:1:2:\nno such thing as a küche",
                Some("panicked at src/lib.rs:1:2: no such thing as a küche".to_owned()),
            ),
            (&long, Some("ü".repeat(512))),
            (&format!("x{long}"), Some(format!("x{}\u{fffd}", "ü".repeat(511)))),
        ];
        for (said, line) in cases {
            assert_eq!(explained(said), line, "{said:?}");
        }
    }
}
