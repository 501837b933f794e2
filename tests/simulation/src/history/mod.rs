//! Histories: what happens, drawn from a seed or read from a file.

mod from_schema;
pub mod generate;
pub mod step;
