//! The contract between host and plugin. What crosses in calls is in `plugin.wit` beside this crate; what a plugin says
//! about itself, its manifest, is here, for everything that reads or writes one. Runs nothing.

mod kind;
mod manifest;
mod measurement;

pub use kind::KindRef;
pub use manifest::{CONTRACT_VERSION, ChildReads, Manifest, ManifestError, SECTION, is_json_pointer};
pub use measurement::{Measurement, MeasurementKind};
