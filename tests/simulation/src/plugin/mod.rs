//! The plugin of the simulation: what its objects say and what it answers (the guest `simulated`, which is linked here natively), and
//! how the host sees it. Beside it there is a reference plugin, in some histories.

pub mod app;
pub mod component;
pub mod manifest;
mod native;
pub mod simulated;

pub use ::simulated::{decide, scope, spec, version};
