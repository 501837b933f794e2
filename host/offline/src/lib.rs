//! Reconciles without a cluster: one round of a plugin over plain values, and the test cases that authors write for their plugins.
//! Makes no request, and decides nothing that the host decides: calls, checks and plans are the host's own code under its own limits.
//!
//! # Flow
//!
//! 1. [`reconcile`] runs one round: the object and its children as the caches would hold them, the call, `check` and `plan`.
//! 2. [`cases::read`] reads the case files of an author.
//! 3. [`cases::run`] runs a case: rounds until the object is at rest where it has steps, each call repeated to find what is no
//!    function of its request, and the answer compared with the expected one.
//!
//! # Caveats
//!
//! Without a cluster, the scope of a kind is that of a table, and children have no defaults. What the controllers of Kubernetes
//! would add to live children is simulated for the kinds that plugins return most (`controllers.rs`), and what it would refuse is known for them
//! (`types.rs`).

pub mod cases;
pub mod controllers;
mod lookups;
pub mod redaction;
mod round;
mod scopes;
mod served;
mod types;

pub use round::{Answer, Inputs, NoAnswer, Round, Situation, reconcile, round};
pub use served::{InvalidObject, cached, kind_of};
