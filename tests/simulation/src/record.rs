//! The record of a history: who did what, in the order in which it happened. Writing is skipped where nobody will read it.

use std::{
    fmt::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use crate::time::Time;

/// The record. Clones share it.
#[derive(Clone, Debug)]
pub struct Record(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    time: Time,
    text: Mutex<String>,
}

impl Record {
    /// A record that keeps nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// A record of a history that begins now.
    pub fn begin(time: Time) -> Self {
        Self(Some(Arc::new(Inner { time, text: Mutex::default() })))
    }

    /// Adds a line.
    pub fn note(&self, who: impl fmt::Display, what: impl FnOnce() -> String) {
        let Some(inner) = &self.0 else { return };
        let (at, who, what) = (inner.time.elapsed().as_secs_f64(), who.to_string(), what());
        let mut text = inner.text.lock().unwrap_or_else(PoisonError::into_inner);
        if writeln!(text, "{at:>9.3} {who:<10} {what}").is_err() {
            tracing::error!("a line does not go into the record");
        }
    }

    /// All lines.
    pub fn text(&self) -> String {
        let text = self.0.as_ref().map(|inner| inner.text.lock().unwrap_or_else(PoisonError::into_inner).clone());
        text.unwrap_or_default()
    }
}
