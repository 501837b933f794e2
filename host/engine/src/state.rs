//! The host's state of one call: its limits, what answers its imports, and a record of everything that it reads. Where an instance answers
//! several calls, all of it begins anew with each, but for the memory that the instance has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use wasmtime::{ResourceLimiter, component::ResourceTable};
use wasmtime_wasi::{WasiCtxView, WasiView};

use crate::{
    CallContext, Limits, NoLookups,
    budget::Reservation,
    contract::LookupError,
    engine::Code,
    lookups::{Answer, AnsweredLookup, DeniedLookup, Lookups, Query, Recorded, fingerprint_of},
    wasi::{self, Wasi},
};

/// The most denied lookups that are recorded for one call.
const MAX_DENIALS: usize = 16;

/// The data of the store in which an instance lives.
pub(crate) struct CallState {
    pub(crate) meter: Meter,
    pub(crate) logs: wasi::LogBudget,
    pub(crate) reads: Reads,
    pub(crate) explanation: Explanation,
    wasi: Option<Wasi>,
    table: ResourceTable,
}

impl CallState {
    pub(crate) fn new(
        code: &Code,
        reservation: Arc<Mutex<Reservation>>,
        context: CallContext,
        wasi_seed: Option<u64>,
    ) -> Self {
        let (limits, now) = (&code.limits, context.now);
        let logs = wasi::LogBudget::new(limits.log_bytes, code.log.clone(), now);
        Self {
            meter: Meter::new(limits, reservation),
            wasi: wasi_seed.map(|seed| Wasi::new(&logs, now, seed)),
            logs,
            reads: Reads::new(limits, context),
            explanation: Explanation::default(),
            table: ResourceTable::new(),
        }
    }

    /// Begins another call of the same instance. False if there is no memory for a request of this size beside what the instance has.
    pub(crate) fn begin_again(
        &mut self,
        limits: &Limits,
        request: usize,
        context: CallContext,
        wasi_seed: Option<u64>,
    ) -> bool {
        self.logs.begin_again(limits.log_bytes, context.now);
        if let (Some(wasi), Some(seed)) = (&mut self.wasi, wasi_seed) {
            wasi.begin_again(&self.logs, context.now, seed);
        }
        self.reads = Reads::new(limits, context);
        self.explanation = Explanation::default();
        self.meter.begin_again(request)
    }

    /// Ends a call: what it read, including the WASI clock.
    pub(crate) fn end(&mut self) -> Recorded {
        if let Some(wasi) = &self.wasi {
            wasi.flush();
        }
        let recorded = std::mem::take(&mut self.reads.recorded);
        let clock_read = recorded.clock_read || self.logs.clock_was_read();
        Recorded { clock_read, ..recorded }
    }

    /// Keeps no more of a call that has ended than the memory that the instance has.
    pub(crate) fn rest(&mut self) {
        self.reads.lookups = Arc::new(NoLookups);
        self.logs.rest();
        self.meter.rest();
    }
}

/// What a call may read, and what it has read.
pub(crate) struct Reads {
    pub(crate) recorded: Recorded,
    lookups: Arc<dyn Lookups>,
    lookups_left: usize,
    /// How many bytes lookups may still find.
    lookup_bytes_left: usize,
    /// How many bytes lookups may still be of themselves.
    query_bytes_left: usize,
    query_bytes: usize,
    now: Timestamp,
}

impl Reads {
    fn new(limits: &Limits, CallContext { lookups, now }: CallContext) -> Self {
        Self {
            recorded: Recorded::default(),
            lookups,
            lookups_left: limits.lookups,
            lookup_bytes_left: limits.lookup_bytes,
            query_bytes_left: limits.query_bytes,
            query_bytes: limits.query_bytes,
            now,
        }
    }

    /// Answers a lookup and records it.
    pub(crate) fn look_up(&mut self, query: Query) -> Result<Answer, LookupError> {
        let answer = self.answer(&query);
        if let Err(LookupError::Denied(why) | LookupError::TooLarge(why)) = &answer {
            self.record_denial(DeniedLookup { kind: query.kind, why: why.clone() });
        }
        answer
    }

    fn answer(&mut self, query: &Query) -> Result<Answer, LookupError> {
        let left = self.lookups_left.checked_sub(1);
        self.lookups_left = left.ok_or_else(|| LookupError::Denied("one call makes too many lookups".to_owned()))?;
        // Not recorded: what is refused for its own sake always is, and may be of any size.
        query.check_size()?;
        let left = self.query_bytes_left.checked_sub(query.text_bytes());
        self.query_bytes_left = left.ok_or_else(|| {
            let most = self.query_bytes >> 10;
            LookupError::Denied(format!(
                "the lookups of one call have more than {most} KiB of names, selectors and fields"
            ))
        })?;
        let limit = self.lookup_bytes_left;
        let answer = self.lookups.answer(query, limit);
        self.recorded.lookups.push(AnsweredLookup { query: query.clone(), limit, answer: fingerprint_of(&answer) });
        let found: usize = answer.iter().flat_map(|answer| &answer.objects).map(String::len).sum();
        self.lookup_bytes_left = limit.saturating_sub(found);
        answer
    }

    fn record_denial(&mut self, denied: DeniedLookup) {
        if !self.recorded.denied.contains(&denied) && self.recorded.denied.len() < MAX_DENIALS {
            self.recorded.denied.push(denied);
        }
    }

    /// The time at which the call began.
    pub(crate) fn read_clock(&mut self) -> String {
        self.recorded.clock_read = true;
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (logs, now) = (&self.logs, self.reads.now);
        // Calls that can get here have their context already, except those of `Plugin::instantiate`.
        let wasi = self.wasi.get_or_insert_with(|| Wasi::new(logs, now, 0));
        WasiCtxView { ctx: wasi.context(), table: &mut self.table }
    }
}

/// The plugin's explanation of the trap that follows.
#[derive(Default)]
pub(crate) struct Explanation(Vec<u8>);

impl Explanation {
    /// The most bytes of an explanation.
    const MAX_BYTES: usize = 1_024;

    pub(crate) fn add(&mut self, numbers: [u64; 4]) {
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
    reservation: Arc<Mutex<Reservation>>,
    memory: usize,
    /// The peak of the linear memory, in bytes.
    pub(crate) memory_peak: usize,
    /// Whether it refused to grow the memory.
    pub(crate) memory_refused: bool,
    /// Whether it refused to because other calls have the memory of the host.
    pub(crate) host_is_full: bool,
    table_elements: usize,
    instances: usize,
}

impl Meter {
    fn new(limits: &Limits, reservation: Arc<Mutex<Reservation>>) -> Self {
        Self {
            memory_limit: limits.memory_bytes,
            reservation,
            memory: 0,
            memory_peak: 0,
            memory_refused: false,
            host_is_full: false,
            table_elements: limits.table_elements,
            instances: limits.instances,
        }
    }

    /// The bytes of linear memory that the instance has.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// The bytes that it may have.
    pub(crate) fn limit(&self) -> usize {
        self.memory_limit
    }

    fn begin_again(&mut self, request: usize) -> bool {
        self.memory_peak = self.memory;
        (self.memory_refused, self.host_is_full) = (false, false);
        self.reservation().grow_to(self.memory.saturating_add(request))
    }

    fn rest(&self) {
        self.reservation().shrink_to(self.memory);
    }

    fn reservation(&self) -> MutexGuard<'_, Reservation> {
        self.reservation.lock().unwrap_or_else(PoisonError::into_inner)
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
        if allowed && !self.reservation().grow_to(total) {
            self.host_is_full = true;
            return Ok(false);
        }
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
