//! Reads the fields of a status that the rules of readiness need. A field of another type counts as absent. Judges nothing.

use serde_json::Value;

/// A condition of a status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'v> {
    pub(super) status: &'v str,
    pub(super) reason: &'v str,
    pub(super) message: &'v str,
}

impl<'v> Condition<'v> {
    /// Its reason, or another one where it has none.
    pub(super) fn reason_or(&self, other: &'v str) -> &'v str {
        if self.reason.is_empty() { other } else { self.reason }
    }
}

/// The condition of this type.
pub(super) fn condition<'v>(status: &'v Value, name: &str) -> Option<Condition<'v>> {
    let all = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let found = all.into_iter().find(|condition| text(condition, "type") == name)?;
    Some(Condition { status: text(found, "status"), reason: text(found, "reason"), message: text(found, "message") })
}

/// A whole number.
pub(super) fn integer(value: &Value, field: &str) -> Option<i64> {
    value.get(field).and_then(Value::as_i64)
}

/// A whole number; zero if it is absent, as the API leaves out zeros.
pub(super) fn count(value: &Value, field: &str) -> i64 {
    integer(value, field).unwrap_or_default()
}

/// A text; empty if it is absent.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
