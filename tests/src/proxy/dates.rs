//! An API server whose clock is ahead: the dates of its answers are later than they are. The times in its objects stay as they are.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use axum::{
    http::{HeaderValue, header::DATE},
    response::Response,
};
use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};

/// What is done to the dates of answers.
#[derive(Default)]
pub struct Dates {
    seconds_ahead: AtomicU32,
}

impl Dates {
    /// From now on, the API server's clock is this far ahead.
    pub fn ahead(&self, seconds: u32) {
        self.seconds_ahead.store(seconds, Ordering::Relaxed);
    }

    pub(super) fn moved(&self, mut answer: Response) -> Response {
        let ahead = Duration::from_secs(self.seconds_ahead.load(Ordering::Relaxed).into());
        if !ahead.is_zero() {
            let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&(Timestamp::now() + ahead));
            if let Some(date) = date.ok().and_then(|date| HeaderValue::try_from(date).ok()) {
                answer.headers_mut().insert(DATE, date);
            }
        }
        answer
    }
}
