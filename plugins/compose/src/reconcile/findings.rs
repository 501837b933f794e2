//! What a round has found out of an object. Values only.

use pilothouse_sdk::raw;

use super::resource::Desired;

/// What a round has found out.
#[derive(Debug, Default)]
pub struct Findings {
    /// The children.
    pub desired: Vec<Desired>,
    /// What waits for what.
    pub waits: Vec<String>,
    /// What is wrong with the object, or with the composition.
    pub wrong: Vec<String>,
    /// Which children are not ready.
    pub unready: Vec<String>,
    /// Kinds of which children stay whose names are not known.
    pub unnamed: Vec<raw::KindRef>,
    /// The reasons and the messages of lookups that are missing.
    pub missing: Vec<(String, String)>,
}
