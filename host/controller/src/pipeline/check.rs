//! Stage 4: what the plugin may do, and what it need not say. Refuses undeclared kinds, foreign namespaces, duplicates,
//! broken JSON; completes namespace, owner reference and labels. Pure: takes no client and writes nothing.

mod child;
mod condition;
mod json;
mod marks;
mod refusal;
#[cfg(test)]
mod sample;

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::{
    Manifest,
    contract::{Condition, Event, KindRef, Measurement, Response, Verdict},
};
use serde_json::{Map, Value};

use self::{
    child::Owner,
    condition::check_condition,
    json::{parse_object, without_host_fields},
};
pub use self::{
    child::{DesiredChild, describe},
    refusal::Refusal,
};
use crate::{cache::Object, kinds::Installed, pipeline::samples::check_samples};

/// The most Events of one answer that count; the rest is dropped, so that one plugin's do not keep others' from being
/// written.
const MAX_EVENTS: usize = 25;

/// What a plugin returned, checked and completed.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// How it went, in the plugin's words.
    pub verdict: Verdict,
    /// The children that shall exist; none leaves them as they are.
    pub children: Option<Vec<DesiredChild>>,
    /// Whether most children are removed on purpose.
    pub removes_many: bool,
    /// The status fields; none leaves them as they are.
    pub status: Option<Map<String, Value>>,
    /// The plugin's conditions.
    pub conditions: Vec<Condition>,
    /// The plugin's events.
    pub events: Vec<Event>,
    /// The plugin's measurements.
    pub measurements: Vec<Measurement>,
    /// Ask again after so many seconds.
    pub requeue_after: Option<u32>,
}

/// What the check needs to know of the cluster.
pub trait Scopes {
    /// Whether objects of a kind live in namespaces; none if the kind is not installed.
    fn is_namespaced(&self, kind: &KindRef) -> Option<bool>;
}

impl Scopes for BTreeMap<KindRef, Arc<Installed>> {
    fn is_namespaced(&self, kind: &KindRef) -> Option<bool> {
        self.get(kind).map(|installed| installed.namespaced)
    }
}

/// Checks and completes a response for an object of `kind`.
///
/// # Errors
/// [`Refusal`] for the first thing that is not allowed.
pub fn check(
    manifest: &Manifest,
    kind: &KindRef,
    object: &Object,
    scopes: &dyn Scopes,
    response: Response,
) -> Result<Desired, Refusal> {
    let Response { verdict, children, removes_many, status, conditions, mut events, measurements, requeue_after } =
        response;
    if events.len() > MAX_EVENTS {
        tracing::warn!("the plugin returned {} events; the first {MAX_EVENTS} count", events.len());
        events.truncate(MAX_EVENTS);
    }
    let owner = Owner { manifest, kind, object, scopes };
    conditions.iter().try_for_each(check_condition)?;
    check_samples(manifest, &measurements).map_err(Refusal::Measurement)?;
    Ok(Desired {
        verdict,
        removes_many,
        children: children.map(|children| owner.complete_all(children)).transpose()?,
        status: status.map(|status| parse_object("a status", &status)).transpose()?.map(without_host_fields),
        conditions,
        events,
        measurements,
        requeue_after,
    })
}
