//! Writing to the host's log. The host adds the plugin and the object to every line, and cuts long ones.

use crate::imports;
use crate::raw::Level;
use std::fmt::Display;

/// Writes a line that somebody must look at.
pub fn error(message: impl Display) {
    imports::write(Level::Error, &message.to_string());
}

/// Writes a line that somebody should look at.
pub fn warn(message: impl Display) {
    imports::write(Level::Warn, &message.to_string());
}

/// Writes a line worth keeping.
pub fn info(message: impl Display) {
    imports::write(Level::Info, &message.to_string());
}

/// Writes a line for somebody who looks for a fault.
pub fn debug(message: impl Display) {
    imports::write(Level::Debug, &message.to_string());
}
