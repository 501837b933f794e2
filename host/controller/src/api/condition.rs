//! A condition of a status, after the API conventions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about, in CamelCase.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One CamelCase word for programs.
    pub reason: String,
    /// A sentence for people; may be empty.
    pub message: String,
    /// When the status changed last, as RFC 3339.
    pub last_transition_time: String,
    /// The generation that it is about.
    #[serde(default)]
    pub observed_generation: i64,
}
