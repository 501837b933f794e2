//! The contract's imports: the host's in a `.wasm`, fakes of the current thread natively. Nothing else in the crate knows
//! which of the two it talks to.

#[cfg(target_family = "wasm")]
mod host;
#[cfg(target_family = "wasm")]
pub(crate) use host::{dispose, force_deletion, get, now, report_panics, select, write};

#[cfg(not(target_family = "wasm"))]
pub(crate) mod fake;
#[cfg(not(target_family = "wasm"))]
pub(crate) use fake::{dispose, force_deletion, get, now, report_panics, select, write};
#[cfg(not(target_family = "wasm"))]
mod selector;
