//! Where progress messages go. Messages only: errors travel as `Result`s.

use std::sync::Arc;

/// Takes one line about what is being done.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// Prints to standard error, which keeps standard output for results.
pub fn to_stderr(line: &str) {
    eprintln!("control-plane: {line}");
}

/// Says nothing.
pub fn silent(_line: &str) {}
