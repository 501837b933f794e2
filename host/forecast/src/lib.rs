//! Tells what a version of a plugin would do to the objects of a cluster, before it is at work. Reads only: caches, lookups, calls, checks
//! and plans are the host's own code, and nothing is carried out.
//!
//! # Flow
//!
//! 1. [`Cluster::read`] fills caches with what the plugin's version would see, as the host does when a version starts.
//! 2. [`Cluster::forecast`] asks the version about each object (`object.rs`). With [`Depth::Eventual`] it goes on from each answer as if it
//!    had been carried out (`carried_out.rs`) until the object is at rest. Of children that would be created it finds those whose names are
//!    taken (`taken_names.rs`).
//! 3. [`Forecast`] is what comes of it: values only, to be counted, printed or compared. [`Report`] tells it in plain words, without what
//!    is in Secrets.
//! 4. [`Cluster::try_out`] asks the API server, by dry runs, whether it would take the writes (`dry_run.rs`).
//!
//! [`Cluster::capture`] returns what the version is called with for one object (`capture.rs`).
//!
//! [`HostPlanner`] does the first three for a host that has a new version which somebody has to approve.
//!
//! # Guarantees
//!
//! - Without a dry run no request but reads and questions about permissions is made, and with it none that has an effect.
//! - What cannot be read is an error, and never looks like an object that does not exist.
//!
//! # Caveats
//!
//! The cluster goes on changing, so a forecast is about the moment at which it was made. What a running host remembers of an object is not
//! known: values that the API server changes each time they are applied look like changes. That a field cannot be changed, so that a child
//! would be created anew, only a dry run finds out.

mod capture;
mod carried_out;
mod cluster;
mod dry_run;
mod merge;
mod object;
mod outcome;
mod planner;
pub mod report;
mod taken_names;

pub use capture::{CaptureError, Captured};
pub use cluster::{Cluster, Place, ReadError};
pub use object::{Bounds, Depth};
pub use outcome::{Action, ChildChange, Forecast, ForecastObject, Outcome, Refused, Trouble};
pub use planner::HostPlanner;
pub use report::{Report, summary};
