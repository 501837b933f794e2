//! Where plugins come from.

pub mod directory;
