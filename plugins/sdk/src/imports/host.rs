//! The imports as the host answers them. Nothing is added here but the panic message.

use crate::bindings::plain::pilothouse::plugin::{clock, log};
use crate::raw::Level;

pub(crate) use crate::bindings::plain::pilothouse::plugin::lookup::{get, select};
pub(crate) use clock::now;
pub(crate) use log::write;

/// A panic ends as a trap, which carries no text: writes the message to the log first.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| write(Level::Error, &panic.to_string())));
}
