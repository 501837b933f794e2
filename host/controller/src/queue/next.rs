//! What becomes of a key after it was worked on, and how a log says it.

use std::{fmt, time::Duration};

/// What becomes of a key after it was worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes.
    Rest,
    /// Nothing until something changes, for the object cannot be satisfied as it is.
    GiveUp,
    /// Again at once, for the work itself made a change.
    Again,
    /// Again after this time at the latest; not a failure.
    After(Duration),
    /// Again after a delay that begins with this time and doubles with every failure in a row.
    Backoff(Duration),
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rest => f.write_str("rest until something changes"),
            Self::GiveUp => f.write_str("give up until something changes"),
            Self::Again => f.write_str("look again at once"),
            Self::After(delay) => write!(f, "look again in {delay:?}"),
            Self::Backoff(first) => write!(f, "try again after {first:?}, and ever later"),
        }
    }
}
