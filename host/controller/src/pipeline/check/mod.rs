//! Stage 4: checks and completes a plugin's answer. Pure: takes no client and writes nothing.
//!
//! # Flow
//!
//! [`check()`] checks conditions, verdict, measurements and status, then each child: its kind, name, namespace and metadata. It
//! adds namespace, labels, annotations and owner reference, and computes the digest of the result.
//!
//! # Guarantees
//!
//! - An answer is accepted or refused as a whole. Nothing of a refused answer is applied.
//! - A child is of a declared and installed kind, in a namespace that its owner may use, and has a name that is safe in a URL.
//!
//! # Caveats
//!
//! The check knows the rules that every API server has. Whether a child's spec is valid is up to the API server.

mod child;
mod condition;
mod decoration;
mod desired;
mod json;
pub mod measurement;
mod names;
mod order;
mod outline;
mod owner;
mod ownership;
mod pointer;
mod refusal;
#[cfg(test)]
mod sample;
mod secret;

use pilothouse_engine::contract::{Child, Response};
use serde_json::{Map, Value};

use self::{
    child::complete_all,
    condition::{check_conditions, check_events, check_waiting},
    json::{parse_object, without_host_fields},
    measurement::check_measurements,
};
pub use self::{
    decoration::Decoration,
    desired::{Desired, DesiredChild, DesiredChildren},
    owner::{KnownKinds, Owner},
    refusal::{MAX_CHILDREN, Refusal},
    secret::wrong_values,
};
use crate::schema::Cursor;

/// The most Events of one answer. The rest is dropped, because the buffer for Events is shared by all plugins.
const MAX_EVENTS: usize = 25;

/// The children of an answer to check.
#[derive(Clone, Copy, Debug)]
pub enum Children<'a> {
    /// None: the answer leaves the live children as they are, or garbage collection is deleting them.
    Leave,
    /// None: the live children are known to be in sync with the answer.
    InSync,
    /// These.
    Check(&'a [Child]),
}

/// Checks and completes an answer for an object.
///
/// # Errors
/// [`Refusal`] for the first violation.
pub fn check(owner: &Owner<'_>, response: &Response, children: Children<'_>) -> Result<Desired, Refusal> {
    let Response { verdict, children: _, removes_many, status, conditions, events, measurements, requeue_after } =
        response;
    if events.len() > MAX_EVENTS {
        tracing::warn!("the plugin returned {} events; the first {MAX_EVENTS} count", events.len());
    }
    decoration::check_response(owner, response)?;
    check_conditions(conditions)?;
    check_waiting(verdict)?;
    check_events(events)?;
    check_measurements(owner.manifest, measurements)?;
    let (decoration, children) = match children {
        Children::Leave => (None, DesiredChildren::Leave),
        Children::InSync => (None, DesiredChildren::InSync),
        Children::Check(children) => {
            let (decoration, children) = decoration::split(owner, children)?;
            (decoration, DesiredChildren::These(complete_all(owner, &children)?))
        }
    };
    Ok(Desired {
        verdict: verdict.clone(),
        children,
        decoration,
        removes_many: *removes_many,
        status: status.as_deref().map(|status| parse_status(owner, status)).transpose()?,
        conditions: conditions.clone(),
        events: events.iter().take(MAX_EVENTS).cloned().collect(),
        measurements: measurements.clone(),
        requeue_after: *requeue_after,
    })
}

fn parse_status(owner: &Owner<'_>, status: &str) -> Result<Map<String, Value>, Refusal> {
    let at = owner.schema.map_or_else(Cursor::unknown, |schema| schema.root().field("status"));
    Ok(without_host_fields(parse_object("a status", status)?, at))
}
