//! A version of a plugin that is not at work yet. Values only.

/// A version that is to be tried, or is asked what it would do.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// Its digest, hexadecimal digits.
    pub digest: &'a str,
    /// Its version.
    pub version: &'a str,
}
