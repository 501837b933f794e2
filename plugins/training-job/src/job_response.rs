//! The response for a job while it is put together: status, conditions and children.
//!
//! One rule holds for every response: the status records a decision before a Pod goes because of it. So a response that finds
//! the end of the job, or a failure to retry, leaves all children as they are and asks for another call at once. That call
//! reads the decision in the status and removes the Pods. If the host stops in between, nothing is counted twice or
//! forgotten.

use crate::api::{Phase, TrainingJobStatus};
use crate::children::labels::worker_selector;
use crate::conditions::Conditions;
use crate::departure::Departures;
use crate::desired_child::DesiredChild;
use crate::job::Job;
use crate::progress::HANG;
use crate::replica_statuses::summary;
use crate::transition::StatusTransition;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_sdk::{Condition, ConditionStatus, Response};

/// The children of a response.
#[derive(Debug, Default)]
pub enum Children {
    /// They stay as they are.
    #[default]
    Unchanged,
    /// Exactly these should exist; the host removes all others.
    Exactly {
        /// The desired children.
        list: Vec<DesiredChild>,
        /// Whether this removes Pods on purpose, so that the host does not hold the removal back.
        removes_pods: bool,
    },
}

/// A response for a job.
pub struct JobResponse<'a> {
    job: &'a Job<'a>,
    old_status: &'a TrainingJobStatus,
    pods: &'a [ObservedPod],
    /// The new status.
    pub status: TrainingJobStatus,
    /// The new conditions, without `Ready` and `Stalled`.
    pub conditions: Conditions,
    /// The children.
    pub children: Children,
    /// Why the training hangs, if it does.
    pub hang: Option<String>,
    /// After how many seconds the plugin is called again at the latest.
    pub requeue_after: Option<u32>,
}

impl<'a> JobResponse<'a> {
    /// A response that changes nothing but the condition `Created` of a new job.
    pub fn new(job: &'a Job<'a>, old_status: &'a TrainingJobStatus, pods: &'a [ObservedPod]) -> Self {
        let mut conditions = Conditions::from_status(old_status);
        if !conditions.is_true("Created") {
            conditions.set_true("Created", "TrainingJobCreated", "the job is taken on");
        }
        let mut status = old_status.clone();
        status.phase.get_or_insert(Phase::Pending);
        status.selector = worker_selector(job);
        let children = Children::Unchanged;
        Self { job, old_status, pods, status, conditions, children, hang: None, requeue_after: None }
    }

    /// Asks for another call within so many seconds. The earliest of several requests counts.
    pub fn requeue_within(&mut self, seconds: u32) {
        self.requeue_after = Some(self.requeue_after.map_or(seconds, |earlier| earlier.min(seconds)));
    }

    /// The response for a job that waits for nothing outside.
    pub fn done(self) -> Response {
        let (ready, stalled) = (self.ready(), self.stalled());
        let response = self.respond(Response::done()).condition(ready);
        stalled.into_iter().fold(response, Response::condition)
    }

    /// The response for a job that waits for something outside, for so many seconds at most.
    pub fn wait(self, reason: &str, message: &str, seconds: u32) -> Response {
        self.respond(Response::wait(reason, message, seconds))
    }

    fn respond(mut self, response: Response) -> Response {
        let Departures { leaving, gone } = Departures::of(self.old_status, &self.status, self.pods);
        self.status.leaving_pods = leaving;
        let transition = StatusTransition {
            hang: self.hang.as_deref(),
            job: self.job,
            old: self.old_status,
            new: &self.status,
            new_conditions: &self.conditions,
            gone_pods: &gone,
        };
        let mut response = transition.report(response).status(&self.status);
        if let Children::Exactly { list, removes_pods } = self.children {
            response = list.into_iter().fold(response.no_children(), |response, child| child.add_to(response));
            response = if removes_pods { response.removes_many() } else { response };
        }
        if let Some(seconds) = self.requeue_after {
            response = response.requeue_after(seconds);
        }
        self.conditions.into_iter().fold(response, Response::condition)
    }

    /// A failed job stays failed, so nobody need wait for it to become ready.
    fn stalled(&self) -> Option<Condition> {
        let failed = self.conditions.find_true("Failed")?;
        Some(Condition::new("Stalled", ConditionStatus::IsTrue, &*failed.reason, &*failed.message))
    }

    /// The job is ready while all of it runs that it needs, and when it has succeeded.
    fn ready(&self) -> Condition {
        // `Restarting` comes before `Running`: some workers may run while others are restarted.
        // With `Restarting`, one worker may be replaced while enough others run.
        const RUN: [&str; 2] = ["Running", "Restarting"];
        let decisive = ["Succeeded", "Failed", "Suspended", "Restarting", "Running"];
        let decisive = decisive.iter().find_map(|condition_type| self.conditions.find_true(condition_type));
        let not_ready =
            |reason: &str, message: String| Condition::new("Ready", ConditionStatus::IsFalse, reason, message);
        match decisive {
            None => not_ready("TrainingJobPending", summary(&self.status)),
            Some(running) if RUN.contains(&&*running.condition_type) && self.status.running_since.is_some() => {
                match &self.hang {
                    Some(hang) => not_ready(HANG, hang.clone()),
                    None => {
                        Condition::new("Ready", ConditionStatus::IsTrue, "TrainingJobRunning", summary(&self.status))
                    }
                }
            }
            Some(running) if running.condition_type == "Running" => not_ready("WorkersPending", summary(&self.status)),
            Some(restarting) if restarting.condition_type == "Restarting" => {
                let obstacle = self.status.obstacle().map(|obstacle| format!("; {obstacle}")).unwrap_or_default();
                not_ready(&restarting.reason, format!("{}{obstacle}", restarting.message))
            }
            Some(decisive) => {
                let is_ready = decisive.condition_type == "Succeeded";
                let obstacle = self.status.obstacle().filter(|_| !self.status.stuck_pods.is_empty());
                let obstacle = obstacle.map(|obstacle| format!("; {obstacle}")).unwrap_or_default();
                Condition::when("Ready", is_ready, &*decisive.reason, format!("{}{obstacle}", decisive.message))
            }
        }
    }
}
