//! Incidents: failures and losses that belong together. One member of a job falls, and its peers fall with it; so the first decides what
//! becomes of all, and an incident is charged once. Pure.

use crate::api::{ReplicaType, RestartScope, TrainingJobStatus};
use crate::failure::{Treatment, is_decisive, time_of_end, treatment, treatment_of_lost};
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
    /// The replicas that are gone and whose peers go on without them.
    pub lost_alone: Vec<&'g Replica<'r>>,
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
    pub fn of(job: &Job<'_>, replicas: &'g Replicas<'r>, old_status: &TrainingJobStatus, now: Time) -> Self {
        let mut failed = failed(job, replicas);
        // An evaluator stands beside the training: nobody falls with it.
        failed.sort_by_key(|(replica, treatment, at)| (is_evaluator(replica), *at, *treatment));
        let (lost_alone, lost): (Vec<_>, Vec<_>) =
            lost(job, replicas).partition(|lost| job.restart_scope() == RestartScope::Worker || is_evaluator(lost));
        let lost = lost.into_iter().next().filter(|_| old_status.start_time.is_some());
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
        let charge = charge(fallen.chain(restarted), last, now);
        Self { failed: failed.into_iter().map(|(replica, ..)| replica).collect(), lost, lost_alone, treatment, charge }
    }

    /// Whether some of it is due to the cluster and not to the program.
    pub fn has_disruption(&self) -> bool {
        let is_ignored = self.treatment == Treatment::Ignore && (self.lost.is_some() || !self.failed.is_empty());
        is_ignored || !self.lost_alone.is_empty()
    }
}

type Failed<'g, 'r> = (&'g Replica<'r>, Treatment, Option<Time>);

fn failed<'g, 'r>(job: &Job<'_>, replicas: &'g Replicas<'r>) -> Vec<Failed<'g, 'r>> {
    let judged = replicas.all.iter().filter_map(|replica| {
        let pod = replica.pod?;
        let treatment = match replica.state {
            ReplicaState::Failed => treatment(job, replica.id.replica_type, pod),
            _ => treatment_of_lost(job, replica)?,
        };
        Some((replica, treatment, time_of_end(job, pod)))
    });
    judged.filter(|(replica, treatment, _)| *treatment != Treatment::FailJob || is_decisive(job, replica)).collect()
}

/// The replicas that are gone, without those that a rule takes for failed.
fn lost<'g, 'r>(job: &Job<'_>, replicas: &'g Replicas<'r>) -> impl Iterator<Item = &'g Replica<'r>> {
    replicas.all.iter().filter(|replica| replica.is_lost && treatment_of_lost(job, replica).is_none())
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
        Self::new(1, pod.end(job.container()))
    }

    /// The restarts of a container by the kubelet since the last status.
    fn in_place(job: &Job<'_>, replica: &Replica<'_>) -> Option<Self> {
        let pod = replica.pod.filter(|_| !matches!(replica.state, ReplicaState::Terminating | ReplicaState::Failed))?;
        let end = pod.last_end(job.container());
        let restart_policy = job.pod_restart_policy(replica.id.replica_type);
        // A container that is to run always has not failed when it ended with success.
        if restart_policy == "Never" || end.is_some_and(|end| end.exit_code == 0) {
            return None;
        }
        let known = replica.last_status.filter(|last| last.pod_uid.as_deref() == Some(pod.uid()));
        let known = known.and_then(|last| last.restarts).unwrap_or_default();
        let times = pod.restart_count(job.container()).saturating_sub(known);
        (times > 0).then(|| Self::new(times, end))
    }

    /// Whether it belongs to an earlier incident: it ran when that began, and fell soon after. By the clock of another node it may have
    /// fallen before, but not long before.
    fn belongs_to(&self, incident: Time) -> bool {
        let ran = self.started.is_some_and(|started| started < incident);
        let distance = |at: Time| at.since(incident).max(incident.since(at));
        ran && self.at.is_some_and(|at| distance(at) <= SECONDS_OF_AN_INCIDENT)
    }
}

/// Charges falls once: not once for each member, and not what an earlier incident brought about. A node whose clock is ahead tells of falls
/// in the future; what really happens until then would all seem to belong to them.
fn charge(falls: impl Iterator<Item = Fall>, last: Option<Time>, now: Time) -> Charge {
    let new: Vec<_> = falls.filter(|fall| !last.is_some_and(|last| fall.belongs_to(last))).collect();
    let restarts = new.iter().map(|fall| fall.times).max().unwrap_or_default();
    Charge { restarts, at: new.iter().filter_map(|fall| fall.at).min().map(|at| at.min(now)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilothouse_sdk::Error;

    fn begin() -> Result<Time, Error> {
        let text = "2026-01-01T00:00:00Z";
        Time::parse(text).ok_or_else(|| Error::Test(format!("no time: {text}")))
    }

    fn fall(times: u32, started: u32, at: u32) -> Fall {
        let time = |seconds| begin().ok().map(|begin| begin.plus(seconds));
        Fall { times, started: time(started), at: time(at) }
    }

    #[test]
    fn what_falls_together_is_charged_once() -> Result<(), Error> {
        let last = fall(1, 0, 1000).at;
        let now = begin()?.plus(100_000);
        for (name, falls, last, expected) in [
            ("nothing", vec![], None, 0),
            ("one member", vec![fall(1, 0, 50)], None, 1),
            ("all members", vec![fall(1, 0, 50), fall(1, 0, 51), fall(1, 0, 52)], None, 1),
            ("one of them more often", vec![fall(3, 60, 65), fall(1, 0, 50)], None, 3),
            ("a peer that ran then, and falls later", vec![fall(1, 0, 1400)], last, 0),
            ("a peer that ran then, and falls much later", vec![fall(1, 0, 9000)], last, 1),
            ("a peer whose clock is a little behind", vec![fall(1, 0, 990)], last, 0),
            ("one whose clock is far behind", vec![fall(1, 0, 399)], last, 1),
            ("one that was started since", vec![fall(1, 1005, 1010)], last, 1),
            ("one of which no time is known", vec![Fall { times: 1, ..Fall::default() }], last, 1),
        ] {
            assert_eq!(charge(falls.into_iter(), last, now).restarts, expected, "{name}");
        }
        Ok(())
    }

    #[test]
    fn nothing_is_charged_in_the_future() -> Result<(), Error> {
        for (at, expected) in [(50, 50), (100, 100), (5000, 100)] {
            let charge = charge([fall(1, 0, at)].into_iter(), None, begin()?.plus(100));
            assert_eq!(charge.at, Some(begin()?.plus(expected)), "{at}");
        }
        Ok(())
    }
}
