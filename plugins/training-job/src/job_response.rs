//! An answer on its way: status, conditions and children, until it becomes a response with what is new in it.
//!
//! One rule holds for every answer: what must not be forgotten is in the status before a Pod goes for it. So an answer
//! that finds the end of the job, or a failure to retry, leaves all children as they are and asks to be called again at
//! once; the next one, which reads it in the status, removes them. Whatever crashes in between, nothing is counted twice
//! or not at all.

use crate::api::{Phase, TrainingJobStatus};
use crate::conditions::Conditions;
use crate::job::Job;
use crate::progress::summary;
use crate::tell::News;
use pilothouse_sdk::Response;
use serde_json::Value;

/// What becomes of the children.
#[derive(Debug, Default)]
pub enum Children {
    /// They stay as they are.
    #[default]
    Leave,
    /// Exactly these shall exist.
    Exactly {
        /// The children.
        list: Vec<Value>,
        /// Whether Pods are removed, on purpose.
        removes: bool,
    },
}

/// An answer.
pub struct Answer<'a> {
    job: &'a Job<'a>,
    memory: &'a TrainingJobStatus,
    /// The status.
    pub status: TrainingJobStatus,
    /// The conditions, but for `Ready`.
    pub conditions: Conditions,
    /// The children.
    pub children: Children,
    /// When to ask again, in seconds, at the latest.
    pub requeue: Option<u32>,
}

impl<'a> Answer<'a> {
    /// An answer that changes nothing but to say that the job is known.
    pub fn new(job: &'a Job<'a>, memory: &'a TrainingJobStatus) -> Self {
        let mut conditions = Conditions::carried(memory);
        if !conditions.holds("Created") {
            conditions.set("Created", true, "TrainingJobCreated", "the job is taken on");
        }
        let mut status = memory.clone();
        status.phase.get_or_insert(Phase::Pending);
        status.selector = crate::children::labels::worker_selector(job);
        Self { job, memory, status, conditions, children: Children::Leave, requeue: None }
    }

    /// Asks again in so many seconds, or earlier if that is asked already.
    pub fn again_in(&mut self, seconds: u32) {
        self.requeue = Some(self.requeue.map_or(seconds, |asked| asked.min(seconds)));
    }

    /// The response of a job that is as it shall be, or on its way.
    pub fn done(self) -> Response {
        let (is_ready, reason, message) = self.ready();
        let ready = pilothouse_sdk::Condition::when("Ready", is_ready, reason, message);
        let stalled = self.stalled();
        stalled.into_iter().fold(self.respond(Response::done()).condition(ready), Response::condition)
    }

    /// The response of a job that waits for something outside.
    pub fn wait(self, reason: &str, message: &str, seconds: u32) -> Response {
        self.respond(Response::wait(reason, message, seconds))
    }

    fn respond(self, response: Response) -> Response {
        let news = News { job: self.job, old: self.memory, new: &self.status, conditions: &self.conditions };
        let mut response = news.tell(response).status(&self.status);
        if let Children::Exactly { list, removes } = self.children {
            response = list.into_iter().fold(response.no_children(), Response::child);
            response = if removes { response.removes_many() } else { response };
        }
        if let Some(seconds) = self.requeue {
            response = response.requeue_after(seconds);
        }
        self.conditions.into_iter().fold(response, Response::condition)
    }

    /// A job that has failed stays so: nothing more happens, and nobody need wait for it.
    fn stalled(&self) -> Option<pilothouse_sdk::Condition> {
        let failed = self.conditions.get("Failed").filter(|_| self.conditions.holds("Failed"))?;
        Some(pilothouse_sdk::Condition::when("Stalled", true, &*failed.reason, &*failed.message))
    }

    /// Whether the job is as it shall be: it runs, or has ended well.
    fn ready(&self) -> (bool, String, String) {
        let of = |is_ready, name: &str| {
            let condition = self.conditions.get(name);
            let text =
                |field: fn(&pilothouse_sdk::Condition) -> &str| condition.map(field).unwrap_or_default().to_owned();
            (is_ready, text(|condition| &condition.reason), text(|condition| &condition.message))
        };
        for (name, is_ready) in [("Succeeded", true), ("Failed", false), ("Suspended", false), ("Restarting", false)] {
            if self.conditions.holds(name) {
                return of(is_ready, name);
            }
        }
        match self.conditions.holds("Running") {
            true => of(true, "Running"),
            false => (false, "TrainingJobPending".to_owned(), summary(&self.status)),
        }
    }
}
