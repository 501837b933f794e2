//! The only clock that a plugin has. It stands still during a call. The host remembers that the plugin read it, and calls
//! such a plugin again also where nothing but the time has changed.

use crate::{Error, imports};
use k8s_openapi::jiff::Timestamp;

/// The time at which this call began.
///
/// # Errors
/// [`Error::Clock`] if the host's text is not a time.
pub fn now() -> Result<Timestamp, Error> {
    let text = now_text();
    text.parse().map_err(|_| Error::Clock(text))
}

/// The time at which this call began, as RFC 3339 in UTC with seconds: `2026-01-31T12:00:00Z`.
pub fn now_text() -> String {
    imports::now()
}
