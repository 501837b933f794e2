//! Whether the claims exist that Pods would mount. A Pod with a missing claim would only hang. It never makes a claim.

use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;

/// A claim, of which only its existence matters.
#[derive(Deserialize)]
struct PersistentVolumeClaim {}

impl Kind for PersistentVolumeClaim {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "PersistentVolumeClaim";
    const FIELDS: &'static [&'static str] = &["/metadata/name"];
}

/// The reason of a condition that says that a claim is missing.
pub const CLAIM_NOT_FOUND: &str = "ClaimNotFound";

/// A claim that an object names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRef<'a> {
    /// The field of the spec that names it.
    pub field: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// A sentence about the first of these claims that does not exist in the object's namespace.
///
/// # Errors
/// A lookup fails.
pub fn missing<'a>(claims: impl IntoIterator<Item = ClaimRef<'a>>, namespace: &str) -> Result<Option<String>, Error> {
    for ClaimRef { field, name } in claims {
        if lookup::get::<PersistentVolumeClaim>(None, name)?.is_none() {
            return Ok(Some(format!(
                "spec.{field} names the PersistentVolumeClaim '{name}', which namespace '{namespace}' does not have; create it"
            )));
        }
    }
    Ok(None)
}
