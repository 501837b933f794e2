//! The plugin of the simulation: what its objects say, what it answers, and how the host sees it.

pub mod decide;
pub mod native;
pub mod spec;
pub mod version;
