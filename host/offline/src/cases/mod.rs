//! Test cases of plugins: what a plugin is called with, and what it is expected to answer. One YAML document is one case.
//!
//! A case has an object, what the plugin can see besides, and `expect`; or `steps`, which are carried out one after the other as the
//! host and the controllers of Kubernetes would.

mod compare;
mod file;
mod path;
pub mod report;
mod run;
mod scenario;
mod sections;
mod snapshot;
mod update;

pub use compare::{Difference, Match};
pub use file::{Case, CaseError, Place, read};
pub use run::{Failure, Ran, StepFailure, run};
pub use snapshot::{Snapshot, SnapshotError, snapshot};
pub use update::{Rewrite, rewrite};
