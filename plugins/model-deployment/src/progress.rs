//! How long a rollout goes without progress. StatefulSets and LeaderWorkerSets do not tell when one is stuck, so the status remembers
//! when it got on last. As with Deployments, only the rollout of a spec has a deadline: once it was complete, Pods may come and go.

use crate::api::Progress;
use pilothouse_pods::time::Time;
use pilothouse_pods::workload::{Rollout, Workload};
use pilothouse_sdk::Error;

/// The summary of a rollout that was complete.
const COMPLETE: &str = "complete";

/// A rollout at this moment.
#[derive(Debug)]
pub struct State<'s> {
    /// The generation of the object.
    pub generation: i64,
    /// The workload.
    pub workload: &'s Workload,
    /// How many replicas there shall be.
    pub desired: i32,
    /// Whether the workload is not there yet, and what runs is another one.
    pub is_awaited: bool,
}

/// How far a rollout is, and what follows from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// What the status remembers.
    pub progress: Option<Progress>,
    /// Why the rollout counts as stuck; none if it does not.
    pub overdue: Option<String>,
    /// In how many seconds it counts as stuck, if it gets on no more.
    pub seconds_left: Option<u32>,
}

/// Judges a rollout by what the status remembers of it. The clock is read only while something may be overdue.
///
/// # Errors
/// The host's clock cannot be read.
pub fn judge(state: &State<'_>, old: Option<&Progress>, deadline_seconds: u32) -> Result<Judged, Error> {
    let of_generation = old.filter(|old| old.generation == state.generation);
    if let Some(old) = of_generation.filter(|old| old.summary == COMPLETE) {
        return Ok(Judged { progress: Some(old.clone()), ..Judged::default() });
    }
    let summary = summary(state);
    let now = Time::now()?;
    let same = of_generation.filter(|old| old.summary == summary);
    let since = same.and_then(|old| Time::parse(&old.last_update_time)).unwrap_or(now);
    let passed = now.since(since);
    let is_overdue = summary != COMPLETE && passed >= deadline_seconds;
    let overdue = is_overdue.then(|| format!("the rollout has not got on for the {deadline_seconds} s that it has"));
    let seconds_left = (summary != COMPLETE && !is_overdue).then(|| deadline_seconds - passed);
    let progress = Progress { generation: state.generation, summary, last_update_time: since.to_rfc3339() };
    Ok(Judged { progress: Some(progress), overdue, seconds_left })
}

fn summary(state: &State<'_>) -> String {
    let State { workload, desired, is_awaited, .. } = *state;
    match workload.rollout(desired) {
        _ if is_awaited => format!("{} replicas of another workload", workload.status.replicas),
        Rollout::Complete => COMPLETE.to_owned(),
        Rollout::Progressing | Rollout::Failed(_) => workload.progress(desired),
    }
}
