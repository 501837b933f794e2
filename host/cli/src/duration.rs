//! Parses durations on the command line, in kubectl's notation.

use std::time::Duration;

use anyhow::Context;
use jiff::SignedDuration;

/// Parses a duration above zero, such as `15s`, `500ms` or `1h30m`.
///
/// # Errors
/// If the text is no duration, or zero.
pub fn duration(text: &str) -> anyhow::Result<Duration> {
    let parsed = text.parse::<SignedDuration>().ok().and_then(|parsed| Duration::try_from(parsed).ok());
    parsed.filter(|parsed| !parsed.is_zero()).context("expected a duration such as 500ms, 15s or 1h30m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in [("15s", 15_000), ("500ms", 500), ("1m30s", 90_000), ("10h", 36_000_000)] {
            assert_eq!(duration(text).ok(), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "15", "0s", "-15s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
