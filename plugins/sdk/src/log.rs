//! Writing to the host's log. The host adds the plugin and the object to every line, and cuts long ones.

use crate::imports;
use crate::raw::Level;
use std::fmt::Display;

/// Writes a line at level error: somebody must look at it.
pub fn error(message: impl Display) {
    imports::write(Level::Error, &message.to_string());
}

/// Writes a line at level warn: somebody should look at it.
pub fn warn(message: impl Display) {
    imports::write(Level::Warn, &message.to_string());
}

/// Writes a line at level info.
pub fn info(message: impl Display) {
    imports::write(Level::Info, &message.to_string());
}

/// Writes a line at level debug.
pub fn debug(message: impl Display) {
    imports::write(Level::Debug, &message.to_string());
}
