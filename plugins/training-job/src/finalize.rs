//! A job that is being deleted: all its children go first, then the job; its quota in a queue goes when no Pod uses it any more. Claims and
//! the data on them belong to the user and stay.

use crate::api::TerminationTimeoutAction;
use crate::children::workload::{self, Workload};
use crate::observed::LiveChildren;
use crate::termination::TerminationPolicy;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_pods::time::Time;
use pilothouse_sdk::{Error, Object, Request, Response};
use serde::Deserialize;
use serde_json::{Value, from_value, value::RawValue};

/// How often remaining children are counted again, in seconds. The host calls earlier whenever a child goes.
const RECHECK_SECONDS: u32 = 30;

/// A job of which the children matter. Its spec and status may have any form and depth, so that an invalid job can be deleted, too.
pub type DeletedJob = Object<Box<RawValue>, Value>;

/// The part of a spec that still matters.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeletedSpec {
    run_policy: Value,
}

/// Removes all children, and is done when none is left.
///
/// # Errors
/// A child cannot be read.
pub fn finalize(request: &Request<DeletedJob>) -> Result<Response, Error> {
    let pods: Vec<ObservedPod> = request.children()?;
    let workloads = request.names::<Workload>().count();
    let others = request.referents().len() + workloads;
    let response = if pods.len() + others == 0 {
        Response::done()
    } else {
        let (stuck, recheck) = stuck_pods(request, &pods)?;
        let message = format!("{} Pods and {others} other objects are being removed{stuck}", pods.len());
        Response::wait("CleaningUp", message, recheck)
    };
    let kept = workload::kept_while_used(request.object.name(), workloads > 0, &pods);
    Ok(kept.into_iter().fold(response.no_children(), |response, child| child.add_to(response)).removes_many())
}

/// What is told of Pods that do not go, and after how many seconds to look again. Pods are deleted without their nodes if the job says so,
/// once the status tells of it.
fn stuck_pods(request: &Request<DeletedJob>, pods: &[ObservedPod]) -> Result<(String, u32), Error> {
    let (policy, now) = (termination_policy(&request.object.spec), Time::now()?);
    let next_look = policy.next_look(pods, now).map_or(RECHECK_SECONDS, |seconds| seconds.min(RECHECK_SECONDS));
    if let Some((forced, words)) = policy.forced(pods, now) {
        if !is_told(request.object.status.as_ref(), &words) {
            return Ok((format!("; {words}"), 1));
        }
        request.force(&forced);
        return Ok((format!("; {words}"), next_look));
    }
    let first = pods.iter().find_map(|pod| policy.notice(pod, now));
    Ok((first.map(|(_, words)| format!("; {words}")).unwrap_or_default(), next_look))
}

/// How long Pods may take, as far as the spec can be read.
fn termination_policy(spec: &RawValue) -> TerminationPolicy {
    let DeletedSpec { run_policy } = serde_json::from_str(spec.get()).unwrap_or_default();
    let seconds = run_policy["terminationTimeoutSeconds"].as_u64();
    let action = run_policy.get("onTerminationTimeout").cloned();
    TerminationPolicy {
        timeout_seconds: seconds.and_then(|seconds| u32::try_from(seconds).ok()),
        on_timeout: action.and_then(|it| from_value(it).ok()).unwrap_or(TerminationTimeoutAction::Fail),
    }
}

/// Whether the condition `Ready` has these words.
fn is_told(status: Option<&Value>, words: &str) -> bool {
    let conditions = status.and_then(|status| status["conditions"].as_array());
    let mut messages = conditions.into_iter().flatten().filter(|it| it["type"] == "Ready").map(|it| &it["message"]);
    messages.any(|message| message.as_str().is_some_and(|message| message.contains(words)))
}
