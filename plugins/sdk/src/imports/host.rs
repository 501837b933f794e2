//! The imports as the host answers them, and how a program that lives for one call ends. It adds nothing else.

use crate::bindings::plain::pilothouse::plugin::{clock, deletion, log, trap};

pub(crate) use crate::bindings::plain::pilothouse::plugin::lookup::{get, select};
pub(crate) use clock::now;
pub(crate) use deletion::force as force_deletion;
pub(crate) use log::write;

/// Sends the message of a panic to the host. The panic ends in a trap, which carries no text.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| panic.to_string().as_bytes().chunks(32).for_each(explain)));
}

/// Leaks a value, where the instance is thrown away right after the call, and its memory with it.
pub(crate) fn dispose<T>(value: T) {
    std::mem::forget(value);
}

/// Sends up to 32 bytes, eight in each number.
fn explain(piece: &[u8]) {
    let mut numbers = [0; 4];
    for (at, byte) in piece.iter().enumerate() {
        numbers[at / 8] |= u64::from(*byte) << (8 * (at % 8));
    }
    let [a, b, c, d] = numbers;
    trap::explain(a, b, c, d);
}
