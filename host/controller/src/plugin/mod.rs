//! Plugins as the controller holds them: the version that is at work ([`ActivePlugin`]), which versions there are
//! ([`Registry`]), how one gets ready, and what is kept of it in the cluster. Reconciles nothing.

mod active;
mod kinds_record;
mod new_version;
pub mod projection;
mod registry;
pub mod rights;
mod self_check;
mod starting;

pub use self::{
    active::ActivePlugin,
    kinds_record::KindsRecord,
    new_version::{FEW_OBJECTS, NewVersionVerdict, NewVersionWindow},
    registry::Registry,
    self_check::SelfCheck,
    starting::StartingPlugins,
};
