//! The contract between host and plugin. What crosses in calls is in `VERSION/plugin.wit` beside this crate; what a plugin says
//! about itself, its manifest, is here, for everything that reads or writes one. Runs nothing.

mod child_readiness;
mod child_reads;
mod config_schema;
mod contract_series;
mod declaration;
mod decorates;
mod interfaces;
mod kind;
mod lookup;
mod manifest;
mod measurement;
mod scope;
mod selector;

pub use child_readiness::ChildReadiness;
pub use child_reads::ChildReads;
pub use config_schema::{ConfigError, ConfigSchema};
pub use contract_series::{CONTRACT, CONTRACT_VERSION, ContractSeries};
pub use declaration::{Declaration, Template, may_answer_again};
pub use decorates::Decorates;
pub use interfaces::Interfaces;
pub use kind::KindRef;
pub use lookup::Lookup;
pub use manifest::{Manifest, ManifestError, SECTION, is_json_pointer};
pub use measurement::{Measurement, MeasurementKind};
pub use pilothouse_expression::{CompileError, EvaluationError, Expression};
pub use selector::{MalformedRequirement, Requirement, Selector};
