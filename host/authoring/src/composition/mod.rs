//! Projects of kinds without code: a composition, its CRD, an object and cases, from a template or from manifests that exist. It runs nothing
//! but Helm.

mod chart;
mod draft;
mod fields;
mod helm;
mod manifests;
mod names;
mod node;
mod project;
mod single;
mod variants;

pub use helm::ChartError;
pub use manifests::{LeftOut, ManifestsError};
pub use project::{Composition, CompositionError, Origin};
