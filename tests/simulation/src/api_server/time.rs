//! Points in time as the API server writes them.

use jiff::Timestamp;

/// Without the fraction of a second.
pub fn to_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// `2026-01-02T03:04:05Z`.
pub fn seconds(time: Timestamp) -> String {
    to_second(time).to_string()
}

/// `2026-01-02T03:04:05.000006Z`.
pub fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}
