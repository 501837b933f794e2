//! Plugins in OCI registries, and their signatures. Fetches bytes and says whose they are; runs nothing of them, and knows neither
//! Kubernetes nor what a plugin is.
//!
//! # Flow
//!
//! 1. [`Image`] is where a component is, [`Credentials`] is what the registry wants to see.
//! 2. [`Registry::resolve`] says which manifest a tag stands for at the moment: a small request, for looking often.
//! 3. [`Registry::pull`] brings the component, and [`Registry::signatures`] the signatures beside it.
//! 4. [`Verification`] says whether one of the signatures is one that counts.
//!
//! # Guarantees
//!
//! - Every request ends in time, and what a registry answers has a limit: a component at most as many bytes as the caller takes.
//! - What is pulled has the digest that the registry's manifest names.
//! - Verification needs no network: whom to trust is given as keys or as a trusted root.

mod authorization;
mod credentials;
mod digest;
mod error;
mod image;
mod layout;
mod reader;
mod registry;
mod signatures;
mod verification;

pub use credentials::{Credentials, CredentialsError};
pub use error::RegistryError;
pub use image::{Image, ImageError};
pub use layout::Component;
pub use registry::{Pulled, Registry, RegistrySettings};
pub use signatures::Evidence;
pub use verification::{Identity, NotVerified, PolicyError, Verification};
