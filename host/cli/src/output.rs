//! What a command prints to standard output, and what it says where nobody takes it: `println!` would panic. Formats nothing.

use std::{
    fmt::Display,
    io::{self, ErrorKind, IsTerminal, Write},
};

/// Why something could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    /// Whoever read it has gone, as `head` does once it has enough.
    #[error("nobody reads what this prints any more")]
    Closed,
    /// The disk may be full.
    #[error("failed to print: {0}")]
    Failed(io::Error),
}

/// Whether text for standard output may have colours: where there is a terminal, and nobody says otherwise (no-color.org).
pub fn has_colours() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Prints text.
///
/// # Errors
/// If nobody takes it.
pub fn print(text: impl Display) -> Result<(), PrintError> {
    let mut output = io::stdout().lock();
    let written = write!(output, "{text}").and_then(|()| output.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => PrintError::Closed,
        _ => PrintError::Failed(error),
    })
}

/// Prints text and ends the line.
///
/// # Errors
/// If nobody takes it.
pub fn print_line(text: impl Display) -> Result<(), PrintError> {
    print(format_args!("{text}\n"))
}
