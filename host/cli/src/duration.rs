//! Reads durations on the command line as people and kubectl write them.

use std::time::Duration;

use jiff::SignedDuration;

/// Reads a duration that is more than nothing, such as `15s`, `500ms` or `1h30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<SignedDuration>().ok().and_then(|parsed| Duration::try_from(parsed).ok());
    parsed
        .filter(|parsed| !parsed.is_zero())
        .ok_or_else(|| "expected a duration such as 500ms, 15s or 1h30m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in [("15s", 15_000), ("500ms", 500), ("1m30s", 90_000), ("10h", 36_000_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "15", "0s", "-15s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
