//! Stage 4: what the plugin may do, and what it need not say. Refuses undeclared kinds, foreign namespaces, duplicates,
//! broken JSON, and what no API server would take; completes namespace, owner reference and labels. Pure: takes no client and
//! writes nothing.

mod child;
mod condition;
mod desired;
mod json;
pub mod measurement;
mod names;
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
    condition::{check_conditions, check_waiting},
    json::{parse_object, without_host_fields},
    measurement::check_measurements,
};
pub use self::{
    desired::{Desired, DesiredChild, DesiredChildren},
    owner::{KnownKinds, Owner},
    refusal::Refusal,
};
use crate::schema::Cursor;

/// The most Events of one answer that count; the rest is dropped, so that one plugin's do not keep others' from being
/// written.
const MAX_EVENTS: usize = 25;

/// What of an answer's children is to be checked.
#[derive(Clone, Copy, Debug)]
pub enum Children<'a> {
    /// The answer leaves them as they are, or they are not to be touched now.
    Leave,
    /// They are known to be as the answer wants them.
    InSync,
    /// These.
    Check(&'a [Child]),
}

/// Checks and completes an answer for an object.
///
/// # Errors
/// [`Refusal`] for the first thing that is not allowed.
pub fn check(owner: &Owner<'_>, response: &Response, children: Children<'_>) -> Result<Desired, Refusal> {
    let Response { verdict, children: _, removes_many, status, conditions, events, measurements, requeue_after } =
        response;
    if events.len() > MAX_EVENTS {
        tracing::warn!("the plugin returned {} events; the first {MAX_EVENTS} count", events.len());
    }
    check_conditions(conditions)?;
    check_waiting(verdict)?;
    check_measurements(owner.manifest, measurements)?;
    let children = match children {
        Children::Leave => DesiredChildren::Leave,
        Children::InSync => DesiredChildren::InSync,
        Children::Check(children) => DesiredChildren::These(complete_all(owner, children)?),
    };
    Ok(Desired {
        verdict: verdict.clone(),
        children,
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
