//! Uses up computing time, for tests of what happens during a call.

use std::hint::black_box;

/// Rounds that take about a millisecond.
const ROUNDS: u32 = 900_000;

/// Computes for about so many milliseconds.
pub fn compute(units: u32) {
    let mut number = 1_u64;
    for _ in 0..units {
        for _ in 0..ROUNDS {
            // The compiler must not find out what comes of it.
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}
