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
    let mut numbers = [0; 4];
    for (at, byte) in piece.iter().enumerate() {
        numbers[at / 8] |= u64::from(*byte) << (8 * (at % 8));
    }
    let [a, b, c, d] = numbers;
    trap::explain(a, b, c, d);
}
