//! How far the training is, as the program reports it in an annotation of the leading Pod, and whether it hangs. Pure.

use crate::api::{Progress, TrainingJobStatus};
use crate::duration::duration;
use crate::job::Job;
use crate::replicas::Replicas;
use pilothouse_pods::time::Time;
use serde::Deserialize;
use serde_json::Value;

/// The annotation in which a program reports its progress, as JSON.
pub const ANNOTATION: &str = "ml.example.com/progress";

/// The reason of a job whose training hangs.
pub const HANG: &str = "ProgressDeadlineExceeded";

/// The most bytes that are told of a report which cannot be read.
const MAX_SHOWN_BYTES: usize = 128;

/// What a program reports. Everything may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Report {
    step: Option<u64>,
    total_steps: Option<u64>,
    loss: Option<Value>,
    estimated_remaining_seconds: Option<u64>,
}

/// The progress of a job: the last one, unless the leading Pod reports another.
pub fn progress(job: &Job<'_>, replicas: &Replicas<'_>, old: &TrainingJobStatus, now: Time) -> Option<Progress> {
    let chief = replicas.get(job.chief()).filter(|chief| chief.has_staying_pod());
    let text = chief.and_then(|chief| chief.pod?.annotation(ANNOTATION));
    let new = text.map(|text| of_report(text, now));
    match (new, &old.progress) {
        (Some(new), Some(old)) if is_same(&new, old) => Some(old.clone()),
        (Some(new), _) => Some(new),
        (None, old) => old.clone(),
    }
}

/// When the training hangs unless it makes progress, if the job has a limit for that and has been running.
pub fn deadline(job: &Job<'_>, status: &TrainingJobStatus, progress: Option<&Progress>) -> Option<Time> {
    let seconds = job.progress_deadline_seconds()?;
    let running = status.running_since.as_deref().and_then(Time::parse)?;
    let changed = progress.and_then(|progress| Time::parse(&progress.last_update_time));
    Some(changed.map_or(running, |changed| changed.max(running)).plus(seconds))
}

/// Why the job hangs, if it does.
pub fn hang(job: &Job<'_>, status: &TrainingJobStatus, progress: Option<&Progress>, now: Time) -> Option<String> {
    let limit = job.progress_deadline_seconds()?;
    let last = progress.map_or("no progress", |progress| progress.summary.as_str());
    let message = format!("the training has not got on for the progressDeadlineSeconds of {limit}; last: {last}");
    deadline(job, status, progress).filter(|deadline| now >= *deadline).map(|_| message)
}

/// Reads a report, also with the numbers that Python's `json.dumps` writes for a loss that has diverged and that are no JSON.
fn read(text: &str) -> Result<Report, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        let quoted = [("-Infinity", "\"-inf\""), ("Infinity", "\"inf\""), ("NaN", "\"nan\"")];
        let text = quoted.iter().fold(text.to_owned(), |text, (number, quoted)| text.replace(number, quoted));
        serde_json::from_str(&text).map_err(|_| error)
    })
}

fn of_report(text: &str, now: Time) -> Progress {
    let last_update_time = now.to_rfc3339();
    let report = match read(text) {
        Ok(report) => report,
        Err(error) => {
            // With the text itself in it, another text is a change: the program goes on.
            let shown = &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)];
            let summary = format!("the annotation {ANNOTATION} cannot be read: {error}: {shown}");
            return Progress { summary, last_update_time, ..Progress::default() };
        }
    };
    let loss = report.loss.map(|loss| loss.as_str().map_or_else(|| loss.to_string(), str::to_owned));
    Progress {
        summary: summary(&report.step, &report.total_steps, &loss, &report.estimated_remaining_seconds),
        step: report.step,
        total_steps: report.total_steps,
        loss,
        estimated_remaining_seconds: report.estimated_remaining_seconds,
        last_update_time,
    }
}

fn summary(step: &Option<u64>, total: &Option<u64>, loss: &Option<String>, seconds: &Option<u64>) -> String {
    let step = step.map(|step| match total {
        Some(total) => format!("step {step}/{total}"),
        None => format!("step {step}"),
    });
    let loss = loss.as_ref().map(|loss| format!("loss {loss}"));
    let left = seconds.map(|seconds| format!("{} left", duration(seconds)));
    [step, loss, left].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn is_same(new: &Progress, old: &Progress) -> bool {
    Progress { last_update_time: String::new(), ..new.clone() }
        == Progress { last_update_time: String::new(), ..old.clone() }
}
