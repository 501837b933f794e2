//! The imports as the host answers them. Nothing is added here but what a program that lives for one call
//! does at its end.

use crate::bindings::plain::pilothouse::plugin::{clock, log, trap};

pub(crate) use crate::bindings::plain::pilothouse::plugin::lookup::{get, select};
pub(crate) use clock::now;
pub(crate) use log::write;

/// A panic ends as a trap, which carries no text: says the message first.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| panic.to_string().as_bytes().chunks(32).for_each(explain)));
}

/// Leaves a value where it is: its memory goes with the instance, right after the call.
pub(crate) fn leave<T>(value: T) {
    std::mem::forget(value);
}

/// Says up to 32 bytes.
fn explain(piece: &[u8]) {
    let mut bytes = [0; 32];
    bytes[..piece.len()].copy_from_slice(piece);
    let [a, b, c, d] = [0, 8, 16, 24].map(|from| {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[from..from + 8]);
        u64::from_le_bytes(number)
    });
    trap::explain(a, b, c, d);
}
