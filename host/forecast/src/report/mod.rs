//! A forecast as it is told: plain words and values, without those of Secrets. Pure.

mod counts;
mod object;
mod summary;

use pilothouse_engine::Reconciler;
use serde::Serialize;

pub use self::{
    counts::{ChildCounts, Counts, Effect},
    object::{Action, ChildReport, Field, ObjectReport, Refused, State},
    summary::summary,
};
use crate::Forecast;

/// A plan.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version that was tried.
    pub version: Version,
    /// What is at work today; none if no `Plugin` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<PresentVersion>,
    /// The kind of the objects.
    pub kind: String,
    /// How many there are, and what becomes of them.
    pub counts: Counts,
    /// What becomes of each.
    pub objects: Vec<ObjectReport>,
}

/// A version of a plugin.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The name of the plugin.
    pub name: String,
    /// The version.
    pub version: String,
    /// The digest of the component.
    pub digest: String,
}

/// What is at work today.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PresentVersion {
    /// The name of the `Plugin`.
    pub name: String,
    /// The version at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Report {
    /// The report of a forecast.
    pub fn of(version: &dyn Reconciler, present: Option<PresentVersion>, forecast: &Forecast) -> Self {
        let manifest = version.manifest();
        let objects: Vec<_> = forecast.objects.iter().map(|object| ObjectReport::of(&forecast.kind, object)).collect();
        Self {
            version: Version {
                name: manifest.name.clone(),
                version: manifest.version.clone(),
                digest: format!("sha256:{}", version.digest()),
            },
            present,
            kind: forecast.kind.kind.clone(),
            counts: Counts::of(&objects),
            objects,
        }
    }
}
