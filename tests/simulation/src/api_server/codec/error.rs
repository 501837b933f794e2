//! The error of a body that cannot be read, in the words of Go's decoder.

use serde_json::Value;

use crate::api_server::{error::ApiError, kinds::Kind, path::Path};

/// A value that cannot be what its field holds.
#[derive(Debug, thiserror::Error)]
#[error("json: cannot unmarshal {value} into field {field} of type {expected}")]
pub struct DecodeError {
    field: String,
    value: String,
    expected: &'static str,
}

impl DecodeError {
    pub(super) fn new(field: Path<'_>, value: &Value, expected: &'static str) -> Self {
        Self { field: field.to_string(), value: value.to_string(), expected }
    }

    /// The answer to a body that cannot be read.
    pub fn into_api_error(self, kind: &Kind) -> ApiError {
        let (name, version) = (&kind.names.kind, &kind.names.version);
        ApiError::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {self}"))
    }
}
