//! Histories: what happens, drawn from a seed or read from a file.

pub mod generate;
pub mod step;
