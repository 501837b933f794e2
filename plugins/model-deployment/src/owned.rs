//! Objects of which only matters whose they are, and lookups of kinds that may not be installed. It judges nothing.

use pilothouse_pods::owner::OwnedMetadata;
use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// An object, of which only matters whose it is.
#[derive(Deserialize)]
pub struct Owned {
    /// Its metadata.
    pub metadata: OwnedMetadata,
}

/// Whose it is.
pub const FIELDS: &[&str] = &["/metadata/uid", "/metadata/ownerReferences"];

/// A StatefulSet.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct StatefulSet(pub Owned);

impl Kind for StatefulSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "StatefulSet";
    const FIELDS: &'static [&'static str] = FIELDS;
}

/// An object of a kind that may not be installed.
///
/// # Errors
/// The lookup fails.
pub fn get<K: Kind + DeserializeOwned>(name: &str) -> Result<Option<K>, Error> {
    installed(lookup::get::<K>(None, name))
}

/// Objects of a kind that may not be installed.
///
/// # Errors
/// The lookup fails.
pub fn select<K: Kind + DeserializeOwned>(label_selector: &str) -> Result<Vec<K>, Error> {
    installed(lookup::select::<K>(None, label_selector))
}

fn installed<T: Default>(found: Result<T, Error>) -> Result<T, Error> {
    match found {
        Err(Error::KindNotInstalled(_)) => Ok(T::default()),
        found => found,
    }
}
