//! Events and measurements: what is new between the status as it is and the status of this answer. The host takes both
//! together with the status, so everything is told once, however often the plugin is asked.

use crate::api::{Phase, TrainingJobStatus, WorkerStatus};
use crate::conditions::Conditions;
use crate::job::Job;
use crate::time::Time;
use pilothouse_sdk::{Event, Measurement, Response};
use std::collections::{BTreeMap, BTreeSet};

/// Names in one event; more are counted.
const SHOWN: usize = 10;

/// The status before and after an answer.
pub struct News<'n> {
    /// The job.
    pub job: &'n Job<'n>,
    /// The status as it is.
    pub old: &'n TrainingJobStatus,
    /// The status of the answer.
    pub new: &'n TrainingJobStatus,
    /// The conditions of the answer.
    pub conditions: &'n Conditions,
}

impl News<'_> {
    /// Adds what is new to a response.
    pub fn tell(&self, response: Response) -> Response {
        let response = self.events().into_iter().fold(response, Response::event);
        self.measurements().into_iter().fold(response, Response::measurement)
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        events.extend(self.reached("Created").map(|why| Event::normal("TrainingJobCreated", why)));
        events.extend(self.reached("Suspended").map(|why| Event::normal("TrainingJobSuspended", why)));
        if self.old.is("Suspended") && !self.conditions.holds("Suspended") {
            events.push(Event::normal("TrainingJobResumed", "the job goes on"));
        }
        events.extend(self.removed());
        events.extend(self.created());
        events.extend(self.exits());
        events.extend(self.troubles());
        if self.begins_restart() {
            let why = self.conditions.get("Restarting").map(|condition| condition.message.as_str());
            events.push(Event::warning("TrainingJobRestarting", why.unwrap_or_default()));
        }
        events.extend(self.reached("Succeeded").map(|why| Event::normal("TrainingJobSucceeded", why)));
        events.extend(self.reached("Failed").map(|why| Event::warning("TrainingJobFailed", why)));
        events
    }

    /// The message of a condition that is true now and was not before.
    fn reached(&self, condition_type: &str) -> Option<&str> {
        let is_new = self.conditions.holds(condition_type) && !self.old.is(condition_type);
        self.conditions.get(condition_type).filter(|_| is_new).map(|condition| condition.message.as_str())
    }

    fn starts(&self) -> bool {
        self.new.start_time.is_some() && self.new.start_time != self.old.start_time
    }

    fn begins_restart(&self) -> bool {
        let known: BTreeSet<_> = self.old.retiring_pods.iter().collect();
        self.new.retiring_pods.iter().any(|uid| !known.contains(uid))
    }

    /// Pods that have come: `WorkersCreated` for all workers of the job, and one event for others.
    fn created(&self) -> Vec<Event> {
        if self.new.start_time.is_none() {
            return Vec::new();
        }
        let before = pods(self.old);
        let came = |members: &[WorkerStatus]| -> Vec<String> {
            let new = members.iter().filter(|member| uid(member).is_some_and(|uid| !before.contains(uid)));
            new.map(|member| member.pod_name.clone()).collect()
        };
        let (workers, servers) = (came(&self.new.worker_statuses), came(&self.new.parameter_server_statuses));
        let all = self.starts() || workers.len() == self.new.worker_statuses.len();
        let mut events = Vec::new();
        if all {
            let count = self.job.spec.workers;
            events.push(Event::normal("WorkersCreated", format!("Created {count} worker pods")));
        }
        let others: Vec<_> = if all { servers } else { workers.into_iter().chain(servers).collect() };
        events.extend(list("Created", &others).map(|text| Event::normal("SuccessfulCreatePod", text)));
        events
    }

    /// Pods that have gone, or are going.
    fn removed(&self) -> Option<Event> {
        let after = pods(self.new);
        let gone = self.old.members().filter(|member| uid(member).is_some_and(|uid| !after.contains(uid)));
        let gone: Vec<_> = gone.map(|member| member.pod_name.clone()).collect();
        list("Deleted", &gone).map(|text| Event::normal("SuccessfulDeletePod", text))
    }

    /// Containers that have failed, by exit code.
    fn exits(&self) -> Vec<Event> {
        let before: BTreeSet<_> = self.old.members().filter(|member| member.exit_code.is_some()).map(uid).collect();
        let mut by_code = BTreeMap::<i32, Vec<String>>::new();
        for member in self.new.members().filter(|member| member.status == "Failed" && !before.contains(&uid(member))) {
            if let Some(code) = member.exit_code {
                by_code.entry(code).or_default().push(format!("{}.{}", self.job.namespace, member.pod_name));
            }
        }
        let event = |(code, names): (i32, Vec<String>)| {
            let named = list("Pod", &names)?;
            Some(Event::warning("ExitedWithCode", format!("{named} exited with code {code}")))
        };
        by_code.into_iter().filter_map(event).collect()
    }

    /// Why Pods do not run, or were ended from outside, in their own words.
    fn troubles(&self) -> Vec<Event> {
        let before: BTreeSet<_> = self.old.members().map(|member| (&member.pod_name, &member.reason)).collect();
        let mut by_reason = BTreeMap::<&str, Vec<&WorkerStatus>>::new();
        for member in self.new.members() {
            // `Error` says no more than the exit code.
            let reason = member.reason.as_deref().filter(|reason| *reason != "Error");
            let reason = reason.filter(|_| !before.contains(&(&member.pod_name, &member.reason)));
            if let Some(reason) = reason {
                by_reason.entry(reason).or_default().push(member);
            }
        }
        let event = |(reason, members): (&str, Vec<&WorkerStatus>)| {
            let names: Vec<_> = members.iter().map(|member| member.pod_name.clone()).collect();
            let message = members.first().and_then(|member| member.message.as_deref());
            let message = message.map(|message| format!(": {message}")).unwrap_or_default();
            Some(Event::warning(reason, format!("{}{message}", list("Pod", &names)?)))
        };
        by_reason.into_iter().filter_map(event).collect()
    }

    fn measurements(&self) -> Vec<Measurement> {
        let mut samples = Vec::new();
        samples.extend(self.reached("Created").map(|_| Measurement::new("training_jobs_created_total", 1.0)));
        let restarts = self.new.restart_count.saturating_sub(self.old.restart_count);
        if restarts > 0 {
            samples.push(self.labelled("training_jobs_restarted_total", f64::from(restarts)));
        }
        if self.new.is_finished() && !self.old.is_finished() {
            let succeeded = self.new.phase == Some(Phase::Succeeded);
            let counter = if succeeded { "training_jobs_succeeded_total" } else { "training_jobs_failed_total" };
            samples.push(self.labelled(counter, 1.0));
            samples.extend(self.duration().map(|seconds| Measurement::new("training_job_duration_seconds", seconds)));
        }
        samples
    }

    fn labelled(&self, name: &str, value: f64) -> Measurement {
        let framework = self.job.spec.framework.word();
        Measurement::new(name, value).label("namespace", self.job.namespace).label("framework", framework)
    }

    fn duration(&self) -> Option<f64> {
        let start = Time::parse(self.new.start_time.as_deref()?)?;
        let end = Time::parse(self.new.completion_time.as_deref()?)?;
        Some(f64::from(end.since(start)))
    }
}

fn uid(member: &WorkerStatus) -> Option<&str> {
    member.pod_uid.as_deref()
}

/// UIDs of the Pods that a status knows.
fn pods(status: &TrainingJobStatus) -> BTreeSet<&str> {
    status.members().filter_map(uid).collect()
}

/// Names in a sentence, if there are any: `Created a, b and 3 more`.
fn list(verb: &str, names: &[String]) -> Option<String> {
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        _ if names.is_empty() => None,
        None | Some(0) => Some(format!("{verb} {shown}")),
        Some(more) => Some(format!("{verb} {shown} and {more} more")),
    }
}
