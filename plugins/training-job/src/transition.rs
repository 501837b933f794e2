//! Events and measurements: what changes between the last status and the new one. The host takes both only together with the
//! new status, so each change is reported once, however often the plugin is called.

use crate::api::{Phase, PodProblem, TrainingJobStatus, WorkerStatus};
use crate::conditions::Conditions;
use crate::job::Job;
use crate::limits::counted_restarts;
use crate::progress::HANG;
use pilothouse_pods::time::Time;
use pilothouse_sdk::{Event, Measurement, Response};
use std::collections::{BTreeMap, BTreeSet};

/// How many names an Event lists; the others are only counted.
const MAX_NAMES: usize = 10;

/// The change from the last status to the new one.
pub struct StatusTransition<'t> {
    /// The job.
    pub job: &'t Job<'t>,
    /// The last status.
    pub old: &'t TrainingJobStatus,
    /// The new status.
    pub new: &'t TrainingJobStatus,
    /// The conditions that belong to the new status.
    pub new_conditions: &'t Conditions,
    /// The names of Pods that have left the job.
    pub gone_pods: &'t [String],
    /// Why the training hangs, if it does.
    pub hang: Option<&'t str>,
}

impl StatusTransition<'_> {
    /// Adds the Events and measurements of this transition to a response.
    pub fn report(&self, response: Response) -> Response {
        let response = self.events().into_iter().fold(response, Response::event);
        self.measurements().into_iter().fold(response, Response::measurement)
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        events.extend(self.message_if_new("Created").map(|message| Event::normal("TrainingJobCreated", message)));
        events.extend(self.message_if_new("Suspended").map(|message| Event::normal("TrainingJobSuspended", message)));
        if self.old.is_condition_true("Suspended") && !self.new_conditions.is_true("Suspended") {
            events.push(Event::normal("TrainingJobResumed", "the job goes on"));
        }
        let deleted = list_names("Deleted", self.gone_pods);
        events.extend(deleted.map(|message| Event::normal("SuccessfulDeletePod", message)));
        events.extend(self.created_pods());
        events.extend(self.failed_containers());
        events.extend(self.new_pod_problems());
        let hung = self.old.condition("Ready").is_some_and(|ready| ready.reason == HANG);
        events.extend(self.hang.filter(|_| !hung).map(|message| Event::warning(HANG, message)));
        let restarting = self.new_conditions.find_true("Restarting").filter(|_| self.has_new_retiring_pods());
        events.extend(restarting.map(|condition| Event::warning("TrainingJobRestarting", &*condition.message)));
        events.extend(self.message_if_new("Succeeded").map(|message| Event::normal("TrainingJobSucceeded", message)));
        events.extend(self.message_if_new("Failed").map(|message| Event::warning("TrainingJobFailed", message)));
        events
    }

    /// The message of a condition that has become `True`.
    fn message_if_new(&self, condition_type: &str) -> Option<&str> {
        let condition = self.new_conditions.find_true(condition_type)?;
        (!self.old.is_condition_true(condition_type)).then_some(condition.message.as_str())
    }

    fn has_just_started(&self) -> bool {
        self.new.start_time.is_some() && self.new.start_time != self.old.start_time
    }

    fn has_new_retiring_pods(&self) -> bool {
        let old: BTreeSet<_> = self.old.retiring_pods.iter().collect();
        self.new.retiring_pods.iter().any(|uid| !old.contains(uid))
    }

    /// `WorkersCreated` if all workers have new Pods, and one Event for all other new Pods.
    fn created_pods(&self) -> Vec<Event> {
        // Before the job has started, its Pods are still being created. They are all reported when the last one exists.
        if self.new.start_time.is_none() {
            return Vec::new();
        }
        let old_uids = pod_uids(self.old);
        let created = |statuses: &[WorkerStatus]| -> Vec<String> {
            let new = statuses.iter().filter(|status| pod_uid(status).is_some_and(|uid| !old_uids.contains(uid)));
            new.map(|status| status.pod_name.clone()).collect()
        };
        let workers = created(&self.new.worker_statuses);
        let of_others = self.new.other_statuses().cloned().collect::<Vec<_>>();
        let others = created(&of_others);
        let has_workers = !self.new.worker_statuses.is_empty();
        let all_workers = has_workers && (self.has_just_started() || workers.len() == self.new.worker_statuses.len());
        let mut events = Vec::new();
        if all_workers {
            let message = format!("Created {} worker pods", self.job.spec.workers);
            events.push(Event::normal("WorkersCreated", message));
        }
        let others: Vec<_> = if all_workers { others } else { workers.into_iter().chain(others).collect() };
        events.extend(list_names("Created", &others).map(|message| Event::normal("SuccessfulCreatePod", message)));
        events
    }

    /// One Event for each exit code of containers that have failed, and of those that the kubelet has restarted since.
    fn failed_containers(&self) -> Vec<Event> {
        let known: BTreeSet<_> =
            self.old.replica_statuses().filter(|status| status.exit_code.is_some()).map(failure_of).collect();
        let mut names_by_code = BTreeMap::<(i32, bool), Vec<String>>::new();
        for status in self.new.replica_statuses().filter(|status| !known.contains(&failure_of(status))) {
            let is_restarted = status.status != "Failed";
            if let Some(code) = status.exit_code.filter(|_| !is_restarted || status.restarts.is_some()) {
                let name = format!("{}.{}", self.job.namespace, status.pod_name);
                names_by_code.entry((code, is_restarted)).or_default().push(name);
            }
        }
        let event = |((code, is_restarted), names): ((i32, bool), Vec<String>)| {
            let pods = list_names("Pod", &names)?;
            let and_then = if is_restarted { " and runs again in its place" } else { "" };
            Some(Event::warning("ExitedWithCode", format!("{pods} exited with code {code}{and_then}")))
        };
        names_by_code.into_iter().filter_map(event).collect()
    }

    /// One Event for each new reason why Pods do not run.
    fn new_pod_problems(&self) -> Vec<Event> {
        let reported: BTreeSet<_> = self.old.problems().map(|problem| (problem.pod_name, problem.reason)).collect();
        let mut by_reason = BTreeMap::<&str, Vec<PodProblem<'_>>>::new();
        // `Error` says no more than the exit code, which has an Event of its own.
        for problem in self.new.problems().filter(|problem| problem.reason != "Error") {
            if !reported.contains(&(problem.pod_name, problem.reason)) {
                by_reason.entry(problem.reason).or_default().push(problem);
            }
        }
        let event = |(reason, problems): (&str, Vec<PodProblem<'_>>)| {
            let names: Vec<_> = problems.iter().map(|problem| problem.pod_name.to_owned()).collect();
            let message = problems.first().and_then(|problem| problem.message);
            let message = message.map(|message| format!(": {message}")).unwrap_or_default();
            Some(Event::warning(reason, format!("{}{message}", list_names("Pod", &names)?)))
        };
        by_reason.into_iter().filter_map(event).collect()
    }

    fn measurements(&self) -> Vec<Measurement> {
        let mut measurements = Vec::new();
        if self.message_if_new("Created").is_some() {
            measurements.push(Measurement::new("training_jobs_created_total", 1.0));
        }
        let restarts = self.new.restart_count.saturating_sub(self.restarts_before());
        if restarts > 0 {
            measurements.push(self.labelled("training_jobs_restarted_total", f64::from(restarts)));
        }
        if self.new.is_finished() && !self.old.is_finished() {
            let has_succeeded = self.new.phase == Some(Phase::Succeeded);
            let counter = if has_succeeded { "training_jobs_succeeded_total" } else { "training_jobs_failed_total" };
            measurements.push(self.labelled(counter, 1.0));
            let duration = self.duration().map(|seconds| Measurement::new("training_job_duration_seconds", seconds));
            measurements.extend(duration);
        }
        measurements
    }

    /// The restarts that counted before the last one: fewer than the last status says where the budget came back meanwhile.
    fn restarts_before(&self) -> u32 {
        let is_new = self.new.last_failure_time != self.old.last_failure_time;
        let failure = self.new.last_failure_time.as_deref().filter(|_| is_new).and_then(Time::parse);
        failure.map_or(self.old.restart_count, |at| counted_restarts(self.job, self.old, at))
    }

    fn labelled(&self, name: &str, value: f64) -> Measurement {
        let framework = self.job.spec.framework.as_str();
        Measurement::new(name, value).label("namespace", self.job.namespace).label("framework", framework)
    }

    fn duration(&self) -> Option<f64> {
        let start = Time::parse(self.new.start_time.as_deref()?)?;
        let end = Time::parse(self.new.completion_time.as_deref()?)?;
        Some(f64::from(end.since(start)) + f64::from(self.new.elapsed_seconds))
    }
}

/// Which failure of which Pod a status tells of.
fn failure_of(status: &WorkerStatus) -> (Option<&str>, Option<u32>, bool) {
    (pod_uid(status), status.restarts, status.status == "Failed")
}

fn pod_uid(status: &WorkerStatus) -> Option<&str> {
    status.pod_uid.as_deref()
}

fn pod_uids(status: &TrainingJobStatus) -> BTreeSet<&str> {
    status.replica_statuses().filter_map(pod_uid).collect()
}

/// Names after a word: `Created a, b and 3 more`; none if there are no names.
fn list_names(first_word: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let shown = names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    Some(match names.len().saturating_sub(MAX_NAMES) {
        0 => format!("{first_word} {shown}"),
        more => format!("{first_word} {shown} and {more} more"),
    })
}
