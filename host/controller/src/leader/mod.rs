//! Which of several hosts works: one for all plugins ([`Election`]), or each for some of them ([`Sharing`]). Never writes anything but
//! Leases.
//!
//! # Guarantees
//!
//! - No two hosts write for one plugin: the fence of the one is closed before the other may take its Lease.
//! - A host that can no longer renew its own Lease stops writing, and ends.
//! - Hosts of which one works for all, and hosts that share the work, do not work at the same time.

mod election;
mod hosts;
mod lease;
mod names;
mod shared;

pub use self::{
    election::{Dependencies, Election, LeaseLost, Settings, SettingsError, identity},
    shared::{Permit, Post, Posts, Sharing, Worker},
};
