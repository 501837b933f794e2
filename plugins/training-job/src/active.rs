//! A job that shall run: waits for what it needs, makes its Pods, and carries out what is decided about them.

use crate::answer::{Answer, Children};
use crate::api::{Phase, TrainingJobStatus};
use crate::children::config_maps::{self, ConfigMap};
use crate::children::pod_group::{Admission, admission, pod_group};
use crate::children::{pod::Template, service};
use crate::decide::{Finish, Hold, Restart, SPEC_CHANGED, Step, deadline, decide};
use crate::finished::expiration;
use crate::gate::{Shut, gate};
use crate::group::{Group, State};
use crate::job::Job;
use crate::live::LivePod;
use crate::outcome::is_running;
use crate::progress::{describe, summary};
use crate::time::Time;
use pilothouse_sdk::{Error, Response};
use serde_json::Value;

/// How often a running job is looked at, in seconds.
const AGAIN: u32 = 30;

/// A job that shall run, at one moment.
pub struct Running<'a> {
    /// The job.
    pub job: &'a Job<'a>,
    /// What is remembered.
    pub memory: &'a TrainingJobStatus,
    /// Its live Pods.
    pub pods: &'a [LivePod],
    /// Its live ConfigMaps.
    pub config_maps: &'a [ConfigMap],
    /// The time.
    pub now: Time,
}

impl<'a> Running<'a> {
    /// Answers.
    ///
    /// # Errors
    /// Something cannot be looked up.
    pub fn respond(&self) -> Result<Response, Error> {
        let group = Group::observe(self.job, self.pods, self.memory);
        let step = decide(self.job, &group, self.memory, self.now);
        if let Some(shut) = self.shut(&step)? {
            return self.wait(&shut);
        }
        match step {
            Step::Finish(finish) => Ok(self.finish(&group, &finish)),
            Step::Restart(restart) => Ok(self.restart(&group, restart)),
            Step::CarryOn { hold } => self.carry_on(&group, hold),
        }
    }

    /// What keeps the job from starting, or from starting anew with another spec.
    fn shut(&self, step: &Step) -> Result<Option<Shut>, Error> {
        let starts = match step {
            Step::Finish(_) => false,
            Step::Restart(restart) => restart.reason == SPEC_CHANGED,
            Step::CarryOn { .. } => self.memory.start_time.is_none(),
        };
        // A scheduler that let the first Pods in has let all in.
        let has_begun = self.pods.iter().any(|pod| !pod.is_deleting());
        let shut = if starts { gate(self.job)? } else { None };
        Ok(shut.filter(|shut| !(shut.prepares && has_begun)))
    }

    fn wait(&self, shut: &Shut) -> Result<Response, Error> {
        let mut answer = self.answer();
        if shut.prepares {
            let list = self.surroundings(&Template::of(self.job))?;
            answer.children = Children::Exactly { list, removes: false };
        }
        if self.memory.start_time.is_none() {
            answer.status.phase = Some(Phase::Pending);
            answer.conditions.set("Running", false, shut.reason, &shut.message);
        }
        self.time(&mut answer, None);
        Ok(answer.wait(shut.reason, &shut.message, shut.seconds))
    }

    fn finish(&self, group: &Group<'_>, finish: &Finish) -> Response {
        let mut answer = self.answer();
        describe(&mut answer.status, self.job, group);
        answer.status.phase = Some(finish.phase);
        answer.status.completion_time = Some(self.now.text());
        answer.status.start_time.get_or_insert(self.now.text());
        answer.status.expiration_time = expiration(self.job, &answer.status);
        answer.status.retiring_pods.clear();
        let reached = if finish.phase == Phase::Succeeded { "Succeeded" } else { "Failed" };
        answer.conditions.set(reached, true, finish.reason, &finish.message);
        answer.conditions.set("Running", false, finish.reason, &finish.message);
        answer.conditions.end("Restarting", finish.reason, &finish.message);
        answer.again_in(0);
        answer.done()
    }

    fn restart(&self, group: &Group<'_>, restart: Restart) -> Response {
        let mut answer = self.answer();
        describe(&mut answer.status, self.job, group);
        let is_whole = restart.pods.len() == self.pods.len();
        let runs_on = !is_whole && is_running(self.job, group);
        answer.status.phase = Some(if runs_on { Phase::Running } else { Phase::Pending });
        answer.status.restart_count += restart.counted;
        if restart.counted > 0 {
            answer.status.last_restart_time = Some(self.now.text());
        }
        let mut retiring = group.still_there(&self.memory.retiring_pods);
        let new: Vec<_> = restart.pods.into_iter().filter(|uid| !retiring.contains(uid)).collect();
        retiring.extend(new);
        answer.status.retiring_pods = retiring;
        answer.conditions.set("Restarting", true, restart.reason, &restart.message);
        answer.conditions.set("Running", false, restart.reason, &restart.message);
        answer.again_in(0);
        answer.done()
    }

    fn carry_on(&self, group: &Group<'_>, hold: Option<Hold>) -> Result<Response, Error> {
        let mut answer = self.answer();
        describe(&mut answer.status, self.job, group);
        answer.status.retiring_pods = group.still_there(&self.memory.retiring_pods);
        if group.is_complete() {
            answer.status.start_time.get_or_insert(self.now.text());
        }
        let runs = is_running(self.job, group);
        answer.status.phase = Some(if runs { Phase::Running } else { Phase::Pending });
        let told = summary(&answer.status);
        if runs && group.is_complete() {
            answer.conditions.end("Restarting", "TrainingJobRunning", &told);
        }
        let reason = if runs { "TrainingJobRunning" } else { "TrainingJobPending" };
        if !answer.conditions.holds("Restarting") {
            answer.conditions.set("Running", runs, reason, &told);
        }
        answer.children = self.children(group, hold)?;
        self.time(&mut answer, hold);
        Ok(answer.done())
    }

    /// When to look again.
    fn time(&self, answer: &mut Answer<'_>, hold: Option<Hold>) {
        if answer.status.phase == Some(Phase::Running) {
            answer.again_in(AGAIN);
        }
        if let Some(Hold::Seconds(seconds)) = hold {
            answer.again_in(seconds);
        }
        if let Some(deadline) = deadline(self.job, &answer.status) {
            answer.again_in(deadline.since(self.now));
        }
    }

    /// An answer for a job that is not suspended.
    fn answer(&self) -> Answer<'a> {
        let mut answer = Answer::new(self.job, self.memory);
        answer.conditions.end("Suspended", "TrainingJobResumed", "the job goes on");
        answer
    }

    /// Pods that stay and Pods that are missing, and what is around them. Pods of another form cannot be returned, so then
    /// everything stays; nothing is missing or left over, or a restart would have been decided.
    fn children(&self, group: &Group<'_>, hold: Option<Hold>) -> Result<Children, Error> {
        if group.has_other_form {
            return Ok(Children::Leave);
        }
        let template = Template::of(self.job);
        let mut list = self.surroundings(&template)?;
        let mut staying = 0;
        for member in &group.members {
            let stays = member.pod.is_some() && member.state != State::Leaving;
            let comes = member.state == State::Missing && hold.is_none();
            if stays || comes {
                list.push(template.pod(member.role, member.index));
            }
            staying += usize::from(stays);
        }
        let live = self.pods.iter().filter(|pod| !pod.is_deleting()).count();
        Ok(Children::Exactly { list, removes: live > staying })
    }

    /// Everything but the Pods.
    fn surroundings(&self, template: &Template<'_, '_>) -> Result<Vec<Value>, Error> {
        let mut list = vec![service::service(self.job)];
        list.extend(config_maps::hyperparameters(self.job));
        list.extend(template.config_map());
        list.extend(config_maps::snapshots(self.job, self.config_maps)?);
        if !matches!(admission(self.job)?, Admission::NotInstalled(_)) {
            list.extend(pod_group(self.job));
        }
        Ok(list)
    }
}
