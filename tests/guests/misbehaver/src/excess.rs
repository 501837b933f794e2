//! Acts that take too much. None of them comes back.

#![allow(clippy::panic, reason = "a trap is what the test asks for")]

/// Runs without end.
pub fn run_for_ever() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

/// Takes memory without end.
pub fn allocate_for_ever() -> ! {
    loop {
        std::mem::forget(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}

/// Calls itself without end.
#[allow(unconditional_recursion, reason = "an exhausted stack is what the test asks for")]
pub fn recurse_for_ever(depth: u64) -> u64 {
    std::hint::black_box(recurse_for_ever(std::hint::black_box(depth + 1)) + depth)
}

/// Panics, which is a trap.
pub fn panic_with(message: &str) -> ! {
    panic!("{message}")
}
