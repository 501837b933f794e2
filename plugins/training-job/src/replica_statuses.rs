//! What the status says of the members of a job. It says nothing of the job as a whole.

use crate::api::{TrainingJobStatus, WorkerStatus};
use crate::group::{Group, Member, State};
use crate::job::{Job, Role};
use crate::live::LivePod;

/// The most of a Pod's own message that is shown.
const LONGEST_MESSAGE: usize = 256;

/// Fills in how every member is, and how many are how.
pub fn describe(status: &mut TrainingJobStatus, job: &Job<'_>, group: &Group<'_>) {
    let of =
        |role| group.members.iter().filter(move |member| member.role == role).map(|member| member_status(job, member));
    status.worker_statuses = of(Role::Worker).collect();
    status.parameter_server_statuses = of(Role::ParameterServer).collect();
    let count = |state| u32::try_from(group.count(state)).unwrap_or(u32::MAX);
    status.replicas = u32::try_from(group.workers().filter(|worker| has_pod(worker)).count()).unwrap_or(u32::MAX);
    (status.active, status.succeeded, status.failed) =
        (count(State::Running), count(State::Succeeded), count(State::Failed));
}

/// How far the workers are, in a sentence.
pub fn summary(status: &TrainingJobStatus) -> String {
    let all = status.worker_statuses.len();
    let mut text = format!("{} of {all} workers run", status.active);
    for (count, word) in [(status.succeeded, "succeeded"), (status.failed, "failed")] {
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    if let Some(trouble) = status.members().find(|member| member.reason.is_some()) {
        let (reason, message) = (trouble.reason.as_deref(), trouble.message.as_deref());
        text.push_str(&format!("; {}: {}", trouble.pod_name, reason.unwrap_or_default()));
        text.push_str(&message.map(|message| format!(": {message}")).unwrap_or_default());
    }
    text
}

fn has_pod(member: &Member<'_>) -> bool {
    member.pod.is_some() && member.state != State::Leaving
}

fn member_status(job: &Job<'_>, member: &Member<'_>) -> WorkerStatus {
    let plain = |status: &str| WorkerStatus {
        worker_id: member.index,
        pod_name: member.name.clone(),
        status: status.to_owned(),
        ..WorkerStatus::default()
    };
    match (member.pod, member.state) {
        (Some(_), State::Leaving) => plain("Terminating"),
        (Some(pod), _) => of_pod(job, pod, plain(pod.word())),
        // Its Pod was collected, and what is known of it stays.
        (None, State::Succeeded) => member.known.cloned().unwrap_or_else(|| plain("Succeeded")),
        (None, _) => plain("Missing"),
    }
}

fn of_pod(job: &Job<'_>, pod: &LivePod, plain: WorkerStatus) -> WorkerStatus {
    let container = job.spec.framework.word();
    let why = pod.why();
    let said = |text: &str| (!text.is_empty()).then(|| text[..text.floor_char_boundary(LONGEST_MESSAGE)].to_owned());
    WorkerStatus {
        reason: said(why.reason),
        message: said(why.message),
        exit_code: pod.exit_code(container),
        restarts: Some(pod.restarts(container)).filter(|restarts| *restarts > 0),
        pod_uid: Some(pod.uid().to_owned()),
        ..plain
    }
}
