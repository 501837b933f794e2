//! The response for a server: its children, its status, its conditions, and Events about what changed. What
//! keeps a server from being made leaves all children as they are.

use crate::api::ServingStatus;
use crate::budget::disruption_budget;
use crate::child::{Child, Standing};
use crate::conditions::{self, ANNOUNCED, Obstacle};
use crate::labels;
use crate::model_volume;
use crate::own_pods::Between;
use crate::server::Server;
use crate::spec_error::SpecError;
use crate::surroundings::{self, MissingKind, Targets};
use crate::trouble;
use pilothouse_pods::claim::{self, CLAIM_NOT_FOUND};
use pilothouse_pods::transition::{Announced, StatusCondition, events};
use pilothouse_pods::workload::Workload;
use pilothouse_sdk::{Condition, Error, Response};
use serde::Serialize;

/// How often something that is missing is looked for again, in seconds. The host calls earlier when it appears.
pub const RECHECK_SECONDS: u32 = 300;

/// What a server is at this moment.
#[derive(Debug)]
pub struct Observed<'o> {
    /// Its workload.
    pub workload: &'o Workload,
    /// What stands between the workload and its Pods.
    pub between: Between,
    /// Why the workload that there shall be is not there yet, and what else is; none if nothing keeps it.
    pub awaited: Option<Obstacle>,
    /// Why the workload counts as stuck, where its own controller does not tell; none if it does not.
    pub overdue: Option<String>,
    /// What there is under the names of its Service and its InferencePool.
    pub targets: Targets,
    /// How many Pods there shall be now.
    pub desired: i32,
    /// The conditions that the object had.
    pub old_conditions: &'o [StatusCondition],
}

/// What differs from one kind to another.
#[derive(Debug)]
pub struct Parts<'p> {
    /// The workload, its Services, and what else the kind has.
    pub children: Result<Vec<Child>, SpecError>,
    /// Kinds that the object asks for and the cluster does not have, besides those that stand around every server.
    pub missing_kinds: Vec<MissingKind>,
    /// Conditions besides those of every server.
    pub conditions: Vec<Condition>,
    /// Those of them whose changes are Events.
    pub announced: &'p [Announced<'p>],
}

/// The response. `status` makes the status of the kind from the one that all servers share.
///
/// # Errors
/// A lookup fails, or an object cannot be read.
pub fn respond<S: Serialize>(
    server: &Server<'_>,
    observed: &Observed<'_>,
    parts: Parts<'_>,
    status: impl FnOnce(ServingStatus) -> S,
) -> Result<Response, Error> {
    let status = status(status_of(server, observed));
    let mut all = conditions_of(server, observed)?;
    all.extend(parts.conditions);
    let response = match children(server, observed.targets, parts.children, parts.missing_kinds)? {
        Made::Children { children, missing } => {
            all.extend(missing);
            children.into_iter().fold(Response::done(), |response, child| child.add_to(response))
        }
        Made::MissingClaim(message) => {
            all = without_ready(all);
            Response::wait(CLAIM_NOT_FOUND, message, RECHECK_SECONDS)
        }
        Made::Invalid(error) => {
            all = without_ready(all);
            Response::invalid(error.to_string())
        }
    };
    Ok(report(response.status(status), observed, all, parts.announced))
}

/// A response that leaves the children as they are, because something is missing that the server is made of. The conditions about
/// the Pods go on to be told.
pub fn unchanged(
    response: Response,
    observed: &Observed<'_>,
    conditions: Vec<Condition>,
    announced: &[Announced<'_>],
) -> Response {
    let mut all = without_ready(conditions::of_workload(observed.workload, observed.desired, None));
    all.extend(conditions);
    report(response, observed, all, announced)
}

/// The conditions without `Ready`, which the host sets itself while an object waits or is refused.
fn without_ready(mut conditions: Vec<Condition>) -> Vec<Condition> {
    conditions.retain(|condition| condition.condition_type != "Ready");
    conditions
}

fn report(
    response: Response,
    observed: &Observed<'_>,
    conditions: Vec<Condition>,
    announced: &[Announced<'_>],
) -> Response {
    let announced: Vec<_> = ANNOUNCED.iter().chain(announced).copied().collect();
    let response = events(observed.old_conditions, &conditions, &announced).into_iter().fold(response, Response::event);
    conditions.into_iter().fold(response, Response::condition)
}

/// What becomes of a server.
enum Made {
    /// These children, and a condition about kinds that are missing.
    Children { children: Vec<Child>, missing: Option<Condition> },
    /// A claim that its Pods would mount does not exist.
    MissingClaim(String),
    /// Its template cannot be made.
    Invalid(SpecError),
}

fn children(
    server: &Server<'_>,
    targets: Targets,
    own: Result<Vec<Child>, SpecError>,
    mut missing: Vec<MissingKind>,
) -> Result<Made, Error> {
    let (claims, own) = match (model_volume::claims(server), own) {
        (Ok(claims), Ok(own)) => (claims, own),
        (Err(error), _) | (_, Err(error)) => return Ok(Made::Invalid(error)),
    };
    // Where there shall be no Pod, nothing mounts a claim.
    let mounted = claims.into_iter().filter(|_| server.desired_replicas() > 0);
    if let Some(message) = claim::missing(mounted, server.spec.identity.namespace)? {
        return Ok(Made::MissingClaim(message));
    }
    let around = surroundings::of(server, targets)?;
    let mut children = own;
    children.extend(disruption_budget(server).map(Child::new));
    children.extend(around.children);
    missing.extend(around.missing_kinds);
    Ok(Made::Children { children, missing: conditions::of_missing_kinds(&missing) })
}

fn conditions_of(server: &Server<'_>, observed: &Observed<'_>) -> Result<Vec<Condition>, Error> {
    let desired = observed.desired;
    let trouble = match conditions::is_complete(observed.workload, desired) {
        true => None,
        false => trouble::look(&server.spec.identity, observed.workload, &observed.between)?,
    };
    let mut all = conditions::of_workload(observed.workload, desired, trouble.as_ref());
    if let Some(obstacle) = &observed.awaited {
        conditions::wait_for(&mut all, obstacle);
    }
    if let Some(message) = &observed.overdue {
        conditions::be_overdue(&mut all, message);
    }
    all.extend(conditions::of_gpu_type(server, &server.config.gpus));
    all.extend(conditions::of_budget(server, desired));
    Ok(all)
}

fn status_of(server: &Server<'_>, observed: &Observed<'_>) -> ServingStatus {
    let status = ServingStatus {
        selector: labels::clients_selector_text(server),
        url: server.url(),
        lora_adapters: server.spec.model.lora_adapters.iter().map(|adapter| adapter.name.clone()).collect(),
        ..ServingStatus::default()
    };
    counted(status, observed.workload, observed.targets)
}

/// A status with what is there now: how many Pods, and an address only where the Service is ours.
pub fn counted(mut status: ServingStatus, workload: &Workload, targets: Targets) -> ServingStatus {
    (status.replicas, status.ready_replicas) = (workload.status.replicas, workload.status.ready_replicas);
    if targets.service != Standing::Ours {
        status.url.clear();
    }
    status
}

/// The response to an object of which no server can be made. Its children stay as they are, and what they do goes on to be told.
pub fn refused<S: Serialize>(message: impl Into<String>, workload: &Workload, status: S) -> Response {
    Response::invalid(message).status(status).condition(conditions::of_availability(workload))
}
