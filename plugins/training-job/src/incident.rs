//! Incidents: failures and losses that belong together. One member of a job falls, and its peers fall with it; so the first decides what
//! becomes of all, and an incident is charged once. Pure.

use crate::api::{ReplicaType, RestartScope, TrainingJobStatus};
use crate::failure::{Treatment, container, is_decisive, time_of_end, treatment};
use crate::job::Job;
use crate::replicas::{Replica, ReplicaState, Replicas};
use pilothouse_pods::observed_pod::{ContainerEnd, ObservedPod};
use pilothouse_pods::time::Time;

/// How many seconds after the first failure of an incident a peer may fail because of it. Collective operations of PyTorch give
/// up after ten minutes.
const SECONDS_OF_AN_INCIDENT: u32 = 600;

/// What has happened to replicas of a job since the last look.
#[derive(Debug)]
pub struct Incident<'g, 'r> {
    /// The replicas that have failed, the first one first, without those whose failure changes nothing.
    pub failed: Vec<&'g Replica<'r>>,
    /// The first replica that is gone, if its peers must be restarted for it.
    pub lost: Option<&'g Replica<'r>>,
    /// What becomes of the failed ones.
    pub treatment: Treatment,
    /// The restarts that count against the backoff limit: those that the failures ask for, and those that the kubelet made.
    pub charge: Charge,
}

/// Restarts to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// How many.
    pub restarts: u32,
    /// When the first failure happened.
    pub at: Option<Time>,
}

impl<'g, 'r> Incident<'g, 'r> {
    /// What has happened.
    pub fn of(job: &Job<'_>, replicas: &'g Replicas<'r>, old_status: &TrainingJobStatus) -> Self {
        let mut failed = failed(job, replicas);
        // An evaluator stands beside the training: nobody falls with it.
        failed.sort_by_key(|(replica, treatment, at)| (is_evaluator(replica), *at, *treatment));
        let lost = lost(job, replicas, old_status);
        // Who left without a trace of when is taken to have left first.
        let left_first = lost.is_some_and(|lost| {
            let left_at = lost.pod.and_then(|pod| time_of_end(job, pod));
            failed.first().is_none_or(|(_, _, failed_at)| left_at <= *failed_at)
        });
        let treatment = match failed.first() {
            Some((_, treatment, _)) if !left_first => *treatment,
            _ => Treatment::Ignore,
        };
        let last = old_status.last_failure_time.as_deref().and_then(Time::parse);
        let pods = failed.iter().filter_map(|(replica, ..)| replica.pod);
        let fallen = pods.filter(|_| treatment == Treatment::Count);
        let fallen = fallen.map(|pod| Fall::of_pod(job, pod));
        let restarted = replicas.all.iter().filter_map(|replica| Fall::in_place(job, replica));
        let charge = charge(fallen.chain(restarted), last);
        Self { failed: failed.into_iter().map(|(replica, ..)| replica).collect(), lost, treatment, charge }
    }

    /// Whether all of it is due to the cluster and not to the program.
    pub fn is_disruption(&self) -> bool {
        self.treatment == Treatment::Ignore && (self.lost.is_some() || !self.failed.is_empty())
    }
}

type Failed<'g, 'r> = (&'g Replica<'r>, Treatment, Option<Time>);

fn failed<'g, 'r>(job: &Job<'_>, replicas: &'g Replicas<'r>) -> Vec<Failed<'g, 'r>> {
    let failed = replicas.all.iter().filter(|replica| replica.state == ReplicaState::Failed);
    let judged = failed.filter_map(|replica| {
        let pod = replica.pod?;
        Some((replica, treatment(job, replica.id.replica_type, pod), time_of_end(job, pod)))
    });
    judged.filter(|(replica, treatment, _)| *treatment != Treatment::FailJob || is_decisive(job, replica)).collect()
}

/// The replica whose loss restarts all others.
fn lost<'g, 'r>(job: &Job<'_>, replicas: &'g Replicas<'r>, old_status: &TrainingJobStatus) -> Option<&'g Replica<'r>> {
    if job.restart_scope() != RestartScope::Job || old_status.start_time.is_none() {
        return None;
    }
    replicas.all.iter().find(|replica| replica.is_lost && !is_evaluator(replica))
}

/// Whether a replica evaluates checkpoints beside the training.
pub fn is_evaluator(replica: &Replica<'_>) -> bool {
    replica.id.replica_type == ReplicaType::Evaluator
}

/// A container that fell: how often since the last look, and how the last time.
#[derive(Clone, Copy, Debug, Default)]
struct Fall {
    times: u32,
    started: Option<Time>,
    at: Option<Time>,
}

impl Fall {
    fn new(times: u32, end: Option<ContainerEnd<'_>>) -> Self {
        let time = |text: Option<&str>| text.and_then(Time::parse);
        Self { times, started: time(end.and_then(|it| it.started_at)), at: time(end.and_then(|it| it.finished_at)) }
    }

    fn of_pod(job: &Job<'_>, pod: &ObservedPod) -> Self {
        Self::new(1, pod.end(container(job)))
    }

    /// The restarts of a container by the kubelet since the last status.
    fn in_place(job: &Job<'_>, replica: &Replica<'_>) -> Option<Self> {
        let pod = replica.pod.filter(|_| !matches!(replica.state, ReplicaState::Terminating | ReplicaState::Failed))?;
        let end = pod.last_end(container(job));
        let restart_policy = job.pod_restart_policy(replica.id.replica_type);
        // A container that is to run always has not failed when it ended with success.
        if restart_policy == "Never" || end.is_some_and(|end| end.exit_code == 0) {
            return None;
        }
        let known = replica.last_status.filter(|last| last.pod_uid.as_deref() == Some(pod.uid()));
        let known = known.and_then(|last| last.restarts).unwrap_or_default();
        let times = pod.restart_count(container(job)).saturating_sub(known);
        (times > 0).then(|| Self::new(times, end))
    }

    /// Whether it belongs to an earlier incident: it ran when that began, and fell soon after.
    fn belongs_to(&self, incident: Time) -> bool {
        let ran = self.started.is_some_and(|started| started < incident);
        ran && self.at.is_some_and(|at| at.since(incident) <= SECONDS_OF_AN_INCIDENT)
    }
}

/// Charges falls once: not once for each member, and not what an earlier incident brought about.
fn charge(falls: impl Iterator<Item = Fall>, last: Option<Time>) -> Charge {
    let new: Vec<_> = falls.filter(|fall| !last.is_some_and(|last| fall.belongs_to(last))).collect();
    let restarts = new.iter().map(|fall| fall.times).max().unwrap_or_default();
    Charge { restarts, at: new.iter().filter_map(|fall| fall.at).min() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fall(times: u32, started: u32, at: u32) -> Fall {
        let time = |seconds| Time::parse("2026-01-01T00:00:00Z").map(|begin| begin.plus(seconds));
        Fall { times, started: time(started), at: time(at) }
    }

    #[test]
    fn what_falls_together_is_charged_once() {
        let last = fall(1, 0, 1000).at;
        for (name, falls, last, expected) in [
            ("nothing", vec![], None, 0),
            ("one member", vec![fall(1, 0, 50)], None, 1),
            ("all members", vec![fall(1, 0, 50), fall(1, 0, 51), fall(1, 0, 52)], None, 1),
            ("one of them more often", vec![fall(3, 60, 65), fall(1, 0, 50)], None, 3),
            ("a peer that ran then, and falls later", vec![fall(1, 0, 1400)], last, 0),
            ("a peer that ran then, and falls much later", vec![fall(1, 0, 9000)], last, 1),
            ("one that was started since", vec![fall(1, 1005, 1010)], last, 1),
            ("one of which no time is known", vec![Fall { times: 1, ..Fall::default() }], last, 1),
        ] {
            assert_eq!(charge(falls.into_iter(), last).restarts, expected, "{name}");
        }
    }
}
