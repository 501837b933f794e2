//! A job that is neither finished nor suspended: checks what it waits for, creates its Pods, and carries out what is decided
//! about them.

use crate::api::{Phase, TrainingJobStatus};
use crate::children::config_maps::{self, ConfigMap};
use crate::children::pod_group::{Admission, admission, pod_group};
use crate::children::{pod::PodTemplate, service};
use crate::decision::{CreationDelay, Decision, Finish, Restart, RestartReason, deadline, decide};
use crate::finished::expiration;
use crate::job::Job;
use crate::job_response::{Children, JobResponse};
use crate::outcome::is_running;
use crate::preconditions::{RECHECK_SECONDS, UnmetPrecondition, unmet_precondition};
use crate::replica_statuses::{summary, update_replica_statuses};
use crate::replicas::{ReplicaState, Replicas};
use crate::time::Time;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_sdk::{Condition, Error, Response};
use serde_json::Value;

/// How often a running job is reconciled even if nothing changes, in seconds.
const RESYNC_SECONDS: u32 = 30;

/// An active job at one moment.
pub struct ActiveJob<'a> {
    /// The job.
    pub job: &'a Job<'a>,
    /// The status as it was last written.
    pub old_status: &'a TrainingJobStatus,
    /// Its observed Pods.
    pub pods: &'a [ObservedPod],
    /// Its observed ConfigMaps.
    pub config_maps: &'a [ConfigMap],
    /// The time of this call.
    pub now: Time,
}

impl<'a> ActiveJob<'a> {
    /// The response.
    ///
    /// # Errors
    /// A lookup fails.
    pub fn respond(&self) -> Result<Response, Error> {
        let replicas = Replicas::observe(self.job, self.pods, self.old_status);
        let decision = decide(self.job, &replicas, self.old_status, self.now);
        if let Some(unmet) = self.unmet_precondition(&decision)? {
            return self.wait(&unmet);
        }
        match decision {
            Decision::Finish(finish) => Ok(self.finish(&replicas, &finish)),
            Decision::Restart(restart) => Ok(self.restart(&replicas, restart)),
            Decision::SyncPods(delay) => self.sync_pods(&replicas, delay),
        }
    }

    /// What keeps the job from starting, or from starting again with a changed spec. A job that has started and keeps its spec
    /// goes on without what it needed for the start.
    fn unmet_precondition(&self, decision: &Decision) -> Result<Option<UnmetPrecondition>, Error> {
        let starts = match decision {
            Decision::Finish(_) => false,
            Decision::Restart(restart) => restart.reason == RestartReason::SpecChanged,
            Decision::SyncPods(_) => self.old_status.start_time.is_none(),
        };
        if !starts {
            return Ok(None);
        }
        // Pods exist only after the scheduler has admitted the PodGroup, which admits all its Pods. So from then on the job
        // does not wait for an admission again.
        let has_pods = self.pods.iter().any(|pod| !pod.is_deleting());
        Ok(unmet_precondition(self.job)?.filter(|unmet| !(unmet.blocks_only_pods && has_pods)))
    }

    fn wait(&self, unmet: &UnmetPrecondition) -> Result<Response, Error> {
        let mut response = self.unsuspended_response();
        if unmet.blocks_only_pods {
            let list = self.children_without_pods(&PodTemplate::of(self.job))?;
            response.children = Children::Exactly { list, removes_pods: false };
        }
        if self.old_status.start_time.is_none() {
            response.status.phase = Some(Phase::Pending);
            response.conditions.set_false("Running", unmet.reason, &unmet.message);
        }
        self.schedule_next_call(&mut response, None);
        Ok(response.wait(unmet.reason, &unmet.message, RECHECK_SECONDS))
    }

    fn finish(&self, replicas: &Replicas<'_>, finish: &Finish) -> Response {
        let mut response = self.unsuspended_response();
        update_replica_statuses(&mut response.status, self.job, replicas);
        response.status.phase = Some(finish.phase);
        response.status.completion_time = Some(self.now.to_rfc3339());
        response.status.start_time.get_or_insert(self.now.to_rfc3339());
        response.status.expiration_time = expiration(self.job, &response.status);
        response.status.retiring_pods.clear();
        let final_condition = if finish.phase == Phase::Succeeded { "Succeeded" } else { "Failed" };
        response.conditions.set_true(final_condition, finish.reason, &finish.message);
        response.conditions.set_false("Running", finish.reason, &finish.message);
        response.conditions.end("Restarting", finish.reason, &finish.message);
        response.requeue_within(0);
        response.done()
    }

    /// Records which Pods go. The next call, at once, no longer returns them.
    fn restart(&self, replicas: &Replicas<'_>, restart: Restart) -> Response {
        let mut response = self.unsuspended_response();
        update_replica_statuses(&mut response.status, self.job, replicas);
        let restarts_all = restart.pods.len() == self.pods.len();
        let keeps_running = !restarts_all && is_running(self.job, replicas);
        response.status.phase = Some(if keeps_running { Phase::Running } else { Phase::Pending });
        response.status.restart_count += restart.counted;
        if restart.counted > 0 {
            response.status.last_restart_time = Some(self.now.to_rfc3339());
        }
        let mut retiring = replicas.still_existing(&self.old_status.retiring_pods);
        let new: Vec<_> = restart.pods.into_iter().filter(|uid| !retiring.contains(uid)).collect();
        retiring.extend(new);
        response.status.retiring_pods = retiring;
        response.conditions.set_true("Restarting", restart.reason.as_str(), &restart.message);
        response.conditions.set_false("Running", restart.reason.as_str(), &restart.message);
        response.requeue_within(0);
        response.done()
    }

    fn sync_pods(&self, replicas: &Replicas<'_>, delay: Option<CreationDelay>) -> Result<Response, Error> {
        let mut response = self.unsuspended_response();
        update_replica_statuses(&mut response.status, self.job, replicas);
        response.status.retiring_pods = replicas.still_existing(&self.old_status.retiring_pods);
        if replicas.is_complete() {
            response.status.start_time.get_or_insert(self.now.to_rfc3339());
        }
        let runs = is_running(self.job, replicas);
        response.status.phase = Some(if runs { Phase::Running } else { Phase::Pending });
        let message = summary(&response.status);
        if runs && replicas.is_complete() {
            response.conditions.end("Restarting", "TrainingJobRunning", &message);
        }
        // `Running` stays `False` with the reason of the restart until all replicas are back.
        if !response.conditions.is_true("Restarting") {
            let reason = if runs { "TrainingJobRunning" } else { "TrainingJobPending" };
            response.conditions.set(Condition::when("Running", runs, reason, &message));
        }
        response.children = self.children(replicas, delay)?;
        self.schedule_next_call(&mut response, delay);
        Ok(response.done())
    }

    fn schedule_next_call(&self, response: &mut JobResponse<'_>, delay: Option<CreationDelay>) {
        if response.status.phase == Some(Phase::Running) {
            response.requeue_within(RESYNC_SECONDS);
        }
        if let Some(CreationDelay::Backoff(seconds)) = delay {
            response.requeue_within(seconds);
        }
        if let Some(deadline) = deadline(self.job, &response.status) {
            response.requeue_within(deadline.since(self.now));
        }
    }

    /// A response for a job that is not suspended, or no longer.
    fn unsuspended_response(&self) -> JobResponse<'a> {
        let mut response = JobResponse::new(self.job, self.old_status);
        response.conditions.end("Suspended", "TrainingJobResumed", "the job goes on");
        response
    }

    /// The Pods that stay, the Pods that are created now, and all other children.
    fn children(&self, replicas: &Replicas<'_>, delay: Option<CreationDelay>) -> Result<Children, Error> {
        // Pods of another template version cannot be returned as they are, so all children stay untouched. Nothing has to be
        // created or removed: otherwise a restart would have been decided.
        if replicas.has_pods_of_other_template_version {
            return Ok(Children::Unchanged);
        }
        let template = PodTemplate::of(self.job);
        let mut list = self.children_without_pods(&template)?;
        let mut staying = 0;
        for replica in &replicas.all {
            let stays = replica.pod.is_some() && replica.state != ReplicaState::Terminating;
            let is_created = replica.state == ReplicaState::Missing && delay.is_none();
            if stays || is_created {
                list.push(template.pod(replica.id));
            }
            staying += usize::from(stays);
        }
        let existing = self.pods.iter().filter(|pod| !pod.is_deleting()).count();
        Ok(Children::Exactly { list, removes_pods: existing > staying })
    }

    fn children_without_pods(&self, template: &PodTemplate<'_, '_>) -> Result<Vec<Value>, Error> {
        let mut list = vec![service::service(self.job)];
        list.extend(config_maps::hyperparameters(self.job));
        list.extend(template.config_map());
        list.extend(config_maps::snapshots(self.job, self.config_maps)?);
        // The host could not apply a PodGroup whose kind is gone, and the whole job would fail with it.
        if !matches!(admission(self.job)?, Admission::NotInstalled(_)) {
            list.extend(pod_group(self.job));
        }
        Ok(list)
    }
}
