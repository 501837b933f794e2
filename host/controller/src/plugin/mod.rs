//! Plugins as the controller sees them. Reconciles nothing.
//!
//! # Flow
//!
//! A plugin that was loaded becomes an [`ActivePlugin`]: its informers start, [`SelfCheck`] asks for missing rights, and
//! [`KindsRecord`] records its child kinds in the cluster. Until that is done it is one of the [`StartingPlugins`]. Then the
//! [`Registry`] puts it in the place of the version before.
//!
//! # Guarantees
//!
//! - At most one version of a plugin is active for an object ([`Division`]). The previous one stays active until the next one is ready.
//! - An active version is immutable. A reconcile keeps the version that it started with.
//! - No child of a kind is created before the kind is recorded, so children of a kind that a later version drops are still found.
//! - The children of objects whose plugin is gone are deleted in their order all the same ([`Leaver`]).
//! - In its first minute, a version that would leave many objects without children is held back ([`NewVersionWindow`]).
//!
//! # Caveats
//!
//! A plugin without a required kind stays in [`StartingPlugins`] until the kind is installed.

mod active;
mod called;
mod departed;
mod division;
mod grants;
mod kinds_record;
mod new_version;
mod record_key;
mod registry;
pub mod rights;
mod self_check;
mod settings;
mod starting;

pub use self::{
    active::ActivePlugin,
    called::Called,
    departed::Leaver,
    division::{Division, Share, Trial, created, is_created_until, place},
    grants::{Grants, NotGranted, is_privileged, is_secret},
    kinds_record::KindsRecord,
    new_version::{FEW_OBJECTS, NewVersionVerdict, NewVersionWindow},
    record_key::RecordKey,
    registry::{Registry, Versions},
    self_check::SelfCheck,
    settings::{PluginLimits, PluginSettings, Presence},
    starting::StartingPlugins,
};
