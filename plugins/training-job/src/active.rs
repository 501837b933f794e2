//! A job that is neither finished nor suspended: checks what it waits for, creates its Pods, and carries out what is decided
//! about them.

use crate::api::{Phase, ReplicaType, RestartScope, TrainingJobStatus};
use crate::backoff::{disruptions, end_of_pause, restart_delay};
use crate::children::config_maps::ConfigMap;
use crate::children::pod_group::{Admission, admission, pod_group};
use crate::children::workload::{self, Quota};
use crate::decision::{CreationDelay, Decision, Restart, RestartReason, decide};
use crate::desired_child::DesiredChild;
use crate::fingerprint;
use crate::finish::Finish;
use crate::finished::expiration;
use crate::incident::Charge;
use crate::job::{Job, JobChildren};
use crate::job_response::{Children, JobResponse};
use crate::limits::{backoff_reset, counted_restarts, deadline, elapsed_seconds, start_deadline};
use crate::observed::Observed;
use crate::outcome::{is_running, runs_fully};
use crate::preconditions::{RECHECK_SECONDS, UnmetPrecondition, unmet_admission, unmet_precondition};
use crate::progress;
use crate::replica_statuses::{Observation, summary};
use crate::replicas::{Replica, ReplicaState, Replicas};
use crate::termination;
use crate::wave::Wave;
use pilothouse_pods::time::Time;
use pilothouse_sdk::{Condition, Error, Response};
use std::collections::BTreeSet;

/// How often a running job is reconciled even if nothing changes, in seconds.
const RESYNC_SECONDS: u32 = 30;

/// An active job at one moment.
pub struct ActiveJob<'a> {
    /// The job.
    pub job: &'a Job<'a>,
    /// The status as it was last written.
    pub old_status: &'a TrainingJobStatus,
    /// What exists of it.
    pub observed: Observed<'a>,
    /// Its quota in Kueue.
    pub quota: Quota,
    /// The time of this call.
    pub now: Time,
}

impl<'a> ActiveJob<'a> {
    /// The response.
    ///
    /// # Errors
    /// A lookup fails.
    pub fn respond(&self) -> Result<Response, Error> {
        let replicas = Replicas::observe(self.job, self.observed.pods, self.old_status);
        let policy = self.job.termination_policy();
        self.observed.children.force(&policy.forced_now(self.observed.pods, self.old_status, self.now));
        let decision = decide(self.job, &replicas, self.old_status, self.now);
        if let (false, Quota::Lost(why)) = (matches!(decision, Decision::Finish(_)), &self.quota) {
            return self.give_quota_back(&replicas, why);
        }
        if let Some(unmet) = self.unmet_precondition(&decision)? {
            return self.wait(&unmet);
        }
        match decision {
            Decision::Finish(finish) => Ok(self.finish(&replicas, &finish)),
            Decision::Restart(restart) => Ok(self.restart(&replicas, restart)),
            Decision::SyncPods { delay, charge } => self.sync_pods(&replicas, delay, charge),
        }
    }

    /// What keeps the job from starting, or from starting again. A job that has started and keeps its spec goes on without what it
    /// needed for the start, but its gang scheduler is asked each time.
    fn unmet_precondition(&self, decision: &Decision) -> Result<Option<UnmetPrecondition>, Error> {
        // Pods exist only after the scheduler has admitted the PodGroup, which admits all its Pods. So from then on the job
        // does not wait for an admission again.
        let has_pods = self.observed.pods.iter().any(|pod| !pod.is_deleting());
        let starts = match decision {
            Decision::Finish(_) => false,
            Decision::Restart(restart) => restart.reason == RestartReason::SpecChanged,
            Decision::SyncPods { .. } if self.old_status.start_time.is_none() => true,
            Decision::SyncPods { delay: None, .. } if !has_pods => return unmet_admission(self.job, &self.quota),
            Decision::SyncPods { .. } => false,
        };
        if !starts {
            return Ok(None);
        }
        Ok(unmet_precondition(self.job, &self.quota)?.filter(|unmet| !(unmet.blocks_only_pods && has_pods)))
    }

    fn wait(&self, unmet: &UnmetPrecondition) -> Result<Response, Error> {
        let mut response = self.response_of_waiting_job(unmet);
        if unmet.blocks_only_pods {
            let list = self.children_without_pods(&*self.job.kind.children(self.job))?;
            response.children = Children::Exactly { list, removes_pods: false };
        }
        // What it waits for is not its own affair, and may take its time.
        response.status.starting_since = None;
        self.schedule_next_call(&mut response, None);
        Ok(response.wait(unmet.reason, &unmet.message, RECHECK_SECONDS))
    }

    /// A response for a job that waits before it starts, or with the Pods of its former spec, which may still run or not.
    fn response_of_waiting_job(&self, unmet: &UnmetPrecondition) -> JobResponse<'a> {
        let replicas = Replicas::observe_waiting(self.job, self.observed.pods, self.old_status);
        let had_pods = !self.observed.pods.is_empty() || !self.old_status.worker_statuses.is_empty();
        // Of a job that never had Pods there is nothing to tell yet.
        let mut response = if had_pods { self.response_about(&replicas) } else { self.unsuspended_response() };
        let status = &mut response.status;
        status.retiring_pods = replicas.still_retiring(&self.old_status.retiring_pods);
        if !runs_fully(self.job, &replicas) {
            status.running_since = None;
        }
        let runs = is_running(self.job, &replicas);
        status.phase = Some(if runs { Phase::Running } else { Phase::Pending });
        if !runs {
            response.conditions.set_false("Running", unmet.reason, &unmet.message);
        }
        response
    }

    fn finish(&self, replicas: &Replicas<'_>, finish: &Finish) -> Response {
        let mut response = self.response_about(replicas);
        let status = &mut response.status;
        status.phase = Some(finish.phase);
        status.completion_time = Some(self.now.to_rfc3339());
        status.start_time.get_or_insert(self.now.to_rfc3339());
        status.expiration_time = expiration(self.job, status);
        status.retiring_pods.clear();
        (status.starting_since, status.running_since) = (None, None);
        let final_condition = if finish.phase == Phase::Succeeded { "Succeeded" } else { "Failed" };
        response.conditions.set_true(final_condition, finish.reason, &finish.message);
        response.conditions.set_false("Running", finish.reason, &finish.message);
        response.conditions.end("Restarting", finish.reason, &finish.message);
        response.requeue_within(0);
        response.done()
    }

    /// Records which Pods go. The next call, at once, no longer returns them.
    fn restart(&self, replicas: &Replicas<'_>, restart: Restart) -> Response {
        let mut response = self.response_about(replicas);
        let going: BTreeSet<&String> = restart.pods.iter().collect();
        let restarts_all = replicas.all_uids().iter().all(|uid| going.contains(uid));
        let keeps_running = !restarts_all && is_running(self.job, replicas);
        let status = &mut response.status;
        status.phase = Some(if keeps_running { Phase::Running } else { Phase::Pending });
        self.count(status, restart.charge);
        if matches!(restart.reason, RestartReason::SpecChanged | RestartReason::QuotaLost) {
            status.restart_delay_seconds = 0;
        } else {
            status.restart_delay_seconds = restart_delay(self.old_status, self.now);
            status.last_restart_time = Some(self.now.to_rfc3339());
        }
        if restart.has_disruption {
            status.disruption_count = disruptions(self.old_status, self.now);
        }
        if restart.reason == RestartReason::QuotaLost {
            // As in a suspension: the time in the queue is none in which the job is active.
            status.elapsed_seconds = elapsed_seconds(self.old_status, self.now);
            status.start_time = None;
        }
        let is_of_all = matches!(restart.reason, RestartReason::Hang | RestartReason::QuotaLost);
        if self.job.restart_scope() == RestartScope::Job || is_of_all {
            status.running_since = None;
            status.starting_since = Some(self.start(status).to_rfc3339());
        } else if !runs_fully(self.job, replicas) {
            status.running_since = None;
        }
        let mut retiring = replicas.still_retiring(&self.old_status.retiring_pods);
        let new: Vec<_> = restart.pods.into_iter().filter(|uid| !retiring.contains(uid)).collect();
        retiring.extend(new);
        status.retiring_pods = retiring;
        response.conditions.set_true("Restarting", restart.reason.as_str(), &restart.message);
        response.conditions.set_false("Running", restart.reason.as_str(), &restart.message);
        response.requeue_within(0);
        response.done()
    }

    /// Removes all Pods, then the Workload: so nobody gets the quota before it is free. The next call asks for quota anew.
    fn give_quota_back(&self, replicas: &Replicas<'_>, why: &str) -> Result<Response, Error> {
        let retiring = &self.old_status.retiring_pods;
        if self.old_status.start_time.is_some() || replicas.all_uids().iter().any(|uid| !retiring.contains(uid)) {
            let (pods, reason) = (replicas.all_uids(), RestartReason::QuotaLost);
            let (charge, message) = (Charge::default(), why.to_owned());
            return Ok(self.restart(replicas, Restart { pods, charge, has_disruption: false, reason, message }));
        }
        let mut response = self.response_about(replicas);
        response.status.retiring_pods = replicas.still_retiring(retiring);
        response.status.starting_since = None;
        let mut list = self.children_without_pods(&*self.job.kind.children(self.job))?;
        if !self.observed.pods.is_empty() {
            list.push(workload::kept(self.job.name));
        }
        response.children = Children::Exactly { list, removes_pods: true };
        self.schedule_next_call(&mut response, None);
        Ok(response.wait("WaitingForQuota", why, RECHECK_SECONDS))
    }

    fn sync_pods(
        &self,
        replicas: &Replicas<'_>,
        delay: Option<CreationDelay>,
        charge: Charge,
    ) -> Result<Response, Error> {
        let mut response = self.response_about(replicas);
        let status = &mut response.status;
        status.retiring_pods = replicas.still_retiring(&self.old_status.retiring_pods);
        if replicas.is_complete() {
            status.start_time.get_or_insert(self.now.to_rfc3339());
        }
        self.count(status, charge);
        self.follow_run(status, runs_fully(self.job, replicas), charge);
        let runs = is_running(self.job, replicas);
        status.phase = Some(if runs { Phase::Running } else { Phase::Pending });
        let message = summary(status);
        if runs && replicas.is_complete() {
            response.conditions.end("Restarting", "TrainingJobRunning", &message);
        }
        // `Running` stays `False` with the reason of the restart until all replicas are back.
        if !response.conditions.is_true("Restarting") {
            let reason = if runs { "TrainingJobRunning" } else { "TrainingJobPending" };
            response.conditions.set(Condition::when("Running", runs, reason, &message));
        }
        response.children = self.children(replicas, delay)?;
        response.hang = progress::hang(self.job, &response.status, response.status.progress.as_ref(), self.now);
        self.schedule_next_call(&mut response, delay);
        Ok(response.done())
    }

    /// Counts restarts. They are counted in the very status that says which failures and restarts of containers are known, so none
    /// is counted twice.
    fn count(&self, status: &mut TrainingJobStatus, charge: Charge) {
        if charge.restarts > 0 {
            let at = charge.at.unwrap_or(self.now);
            let so_far = counted_restarts(self.job, self.old_status, at);
            status.restart_count = so_far.saturating_add(charge.restarts);
            status.last_failure_time = Some(at.to_rfc3339());
        }
    }

    /// Keeps the time since when all that the job needs runs, or since when it is to run.
    fn follow_run(&self, status: &mut TrainingJobStatus, runs_fully: bool, charge: Charge) {
        if !runs_fully {
            status.running_since = None;
            let since = status.starting_since.as_deref().and_then(Time::parse).unwrap_or_else(|| self.start(status));
            let old_pods_end = self.observed.pods.iter().filter_map(termination::end_of_grace).max();
            status.starting_since = Some(old_pods_end.map_or(since, |end| end.max(since)).to_rfc3339());
            return;
        }
        status.starting_since = None;
        if charge.restarts > 0 {
            status.running_since = None;
        }
        status.running_since.get_or_insert_with(|| self.now.to_rfc3339());
        if backoff_reset(self.job, status).is_some_and(|reset| self.now >= reset) {
            (status.restart_count, status.disruption_count) = (0, 0);
        }
    }

    /// When all that the job needs is to run again: at once, or after the pause of a restart.
    fn start(&self, status: &TrainingJobStatus) -> Time {
        end_of_pause(status, self.now).map_or(self.now, |end| end.max(self.now))
    }

    fn schedule_next_call(&self, response: &mut JobResponse<'_>, delay: Option<CreationDelay>) {
        if response.status.phase == Some(Phase::Running) {
            response.requeue_within(RESYNC_SECONDS);
        }
        if let Some(CreationDelay::Backoff(seconds)) = delay {
            response.requeue_within(seconds);
        }
        if termination::tells_of_new_forced_pods(&response.status, self.old_status) {
            response.requeue_within(0);
        }
        let status = &response.status;
        let limits = [
            deadline(self.job, status),
            start_deadline(self.job, status),
            backoff_reset(self.job, status),
            progress::deadline(self.job, status, status.progress.as_ref()).filter(|deadline| *deadline > self.now),
        ];
        let deletions = self.job.termination_policy().next_look(self.observed.pods, self.now);
        let next = limits.into_iter().flatten().map(|limit| limit.since(self.now)).chain(deletions).min();
        if let Some(seconds) = next {
            response.requeue_within(seconds);
        }
    }

    /// A response whose status says how the replicas are.
    fn response_about(&self, replicas: &Replicas<'_>) -> JobResponse<'a> {
        let mut response = self.unsuspended_response();
        let observation = Observation { job: self.job, replicas, refused: self.observed.refused, now: self.now };
        observation.update(&mut response.status);
        response.status.progress = progress::progress(self.job, replicas, self.old_status, self.now);
        response
    }

    /// A response for a job that is not suspended, or no longer.
    fn unsuspended_response(&self) -> JobResponse<'a> {
        let mut response = JobResponse::new(self.job, self.old_status, self.observed.pods);
        response.conditions.end("Suspended", "TrainingJobResumed", "the job goes on");
        response
    }

    /// The Pods that stay, the Pods that are created now, and all other children.
    fn children(&self, replicas: &Replicas<'_>, delay: Option<CreationDelay>) -> Result<Children, Error> {
        let template = self.job.kind.children(self.job);
        let mut list = self.children_without_pods(&*template)?;
        let (mut staying, mut wave) = (0, Wave::default());
        let may_create = delay.is_none() && !replicas.is_complete() && self.has_referents(&list);
        // A launcher that starts before its workers can reach none of them, and its failure would cost a restart. One that has ended is not
        // waited for: the launcher says what is wrong with it.
        let may_launch = replicas.workers().all(|worker| worker.runs || worker.state == ReplicaState::Succeeded);
        for replica in &replicas.all {
            if replica.has_staying_pod() {
                list.push(self.staying(replica, &*template));
                staying += 1;
            } else if replica.id.replica_type == ReplicaType::Launcher && !may_launch {
                continue;
            } else if replica.state == ReplicaState::Missing && may_create && !wave.is_full() {
                let mut pod = template.pod(replica.id);
                if let Quota::Granted(flavors) = &self.quota
                    && let Some(flavors) = flavors.get(replica.id.replica_type.as_str())
                {
                    workload::place(&mut pod, flavors)?;
                }
                let pod = DesiredChild::created(&pod);
                if wave.takes(pod.object.get().len()) {
                    list.push(pod);
                }
            }
        }
        let existing = self.observed.pods.iter().filter(|pod| !pod.is_deleting()).count();
        Ok(Children::Exactly { list, removes_pods: existing > staying })
    }

    /// A Pod that stays. It is kept as it is, unless somebody took off a label by which it is found, or gave it another value: then no other
    /// replica would find it, or one of another job would.
    fn staying(&self, replica: &Replica<'_>, template: &dyn JobChildren) -> DesiredChild {
        let pod = replica.pod.filter(|pod| {
            let found_by = self.job.kind.found_by(self.job, replica.id);
            found_by.iter().any(|(label, value)| pod.label(label) != Some(value))
        });
        let Some(pod) = pod else { return DesiredChild::kept("v1", "Pod", &replica.pod_name) };
        let mut whole = template.pod(replica.id);
        if pod.annotation(fingerprint::ANNOTATION).is_none()
            && let Some(annotations) = whole["metadata"]["annotations"].as_object_mut()
        {
            // Nobody knows any more which spec it was made from.
            annotations.remove(fingerprint::ANNOTATION);
        }
        DesiredChild::relabelled(whole)
    }

    /// Whether all exists to which Pods refer by name. A name may be somebody else's: the Pods would read what is not theirs, not find each
    /// other, or be of another gang. Nor can a job be followed whose state somebody else's object takes the place of.
    fn has_referents(&self, children: &[DesiredChild]) -> bool {
        let existing = self.observed.children.referents();
        let mut needed = children.iter().filter_map(DesiredChild::referent).chain(self.observed.needs);
        needed.all(|referent| existing.contains(referent))
    }

    fn children_without_pods(&self, template: &dyn JobChildren) -> Result<Vec<DesiredChild>, Error> {
        let existing: Vec<_> = self.observed.config_maps.iter().map(ConfigMap::name).collect();
        let mut list = template.others(&existing)?;
        match self.quota {
            Quota::NotAsked | Quota::NotInstalled | Quota::Lost(_) => {}
            // It stays as it is: nobody can change one that has quota, and its priority class may be gone.
            _ if self.observed.has_workload => list.push(workload::kept(self.job.name)),
            _ => list.extend(workload::workload(self.job, template)?.as_ref().map(DesiredChild::created)),
        }
        // The host could not apply a PodGroup whose kind is gone, and the whole job would fail with it.
        if !matches!(admission(self.job)?, Admission::NotInstalled(_)) {
            list.extend(pod_group(self.job).as_ref().map(DesiredChild::applied));
        }
        Ok(list)
    }
}
