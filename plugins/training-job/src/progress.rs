//! How far the training is, as the program reports it in an annotation of the leading Pod, and whether it hangs. Pure.

use crate::api::{Progress, TrainingJobStatus};
use crate::duration::duration;
use crate::job::Job;
use crate::replicas::Replicas;
use pilothouse_pods::time::Time;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The annotation in which a program reports its progress, as JSON.
pub const ANNOTATION: &str = "ml.example.com/progress";

/// The reason of a job whose training hangs.
pub const HANG: &str = "ProgressDeadlineExceeded";

/// The most bytes that are told of a text of the program's, which may write whatever it likes: a report that cannot be read, why it cannot,
/// and a loss.
const MAX_SHOWN_BYTES: usize = 128;

/// How numbers are read that are no JSON.
const NOT_FINITE: [(&str, &str); 3] = [("-Infinity", "-inf"), ("Infinity", "inf"), ("NaN", "nan")];

/// Why JSON that is no object is no report.
const NO_OBJECT: &str = "it is no JSON object";

/// The largest integer that the API server takes. With a larger one in it, no status could be written.
const MAX_COUNT: u64 = i64::MAX.unsigned_abs();

/// What a program reports. Everything may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Report {
    #[serde(deserialize_with = "count")]
    step: Option<u64>,
    #[serde(deserialize_with = "count")]
    total_steps: Option<u64>,
    loss: Option<Value>,
    #[serde(deserialize_with = "count")]
    estimated_remaining_seconds: Option<u64>,
}

/// The progress of a job: the last one, unless the leading Pod reports another.
pub fn progress(job: &Job<'_>, replicas: &Replicas<'_>, old: &TrainingJobStatus, now: Time) -> Option<Progress> {
    let chief = replicas.get(job.chief()).filter(|chief| chief.has_staying_pod());
    let Some(text) = chief.and_then(|chief| chief.pod?.annotation(ANNOTATION)) else { return old.progress.clone() };
    let last_update_time = now.to_rfc3339();
    Some(match (read(text), &old.progress) {
        (Reading::Report(report), Some(old)) => {
            let new = of_report(report, last_update_time);
            // By its numbers: a report that was wrong in between says nothing of them.
            if has_same_numbers(&new, old) { Progress { summary: new.summary, ..old.clone() } } else { new }
        }
        (Reading::Report(report), None) => of_report(report, last_update_time),
        // It may say anything, and so its changes may mean anything. What was known before stays, with its time.
        (Reading::NoObject, last) => {
            let began = || Progress {
                last_update_time: old.running_since.clone().unwrap_or(last_update_time),
                ..Progress::default()
            };
            Progress { summary: unread(text, NO_OBJECT), ..last.clone().unwrap_or_else(began) }
        }
        (Reading::Unread(why), last) => {
            // With the text itself in it, another text is a change: the program goes on.
            let summary = unread(text, &why);
            match last {
                Some(last) if last.summary == summary => last.clone(),
                _ => Progress { summary, last_update_time, ..Progress::default() },
            }
        }
    })
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

/// What a text says of the progress.
enum Reading {
    /// A report.
    Report(Report),
    /// JSON, but no object.
    NoObject,
    /// Nothing that can be read, and why.
    Unread(String),
}

/// Reads a report, also with the numbers that Python's `json.dumps` writes for a loss that has diverged and that are no JSON.
fn read(text: &str) -> Reading {
    let value = serde_json::from_str::<Value>(text).or_else(|error| {
        let quote = |text: String, (number, word): &(&str, &str)| text.replace(number, &format!("\"{word}\""));
        let text = NOT_FINITE.iter().fold(text.to_owned(), quote);
        serde_json::from_str(&text).map_err(|_| error)
    });
    match value {
        Ok(value) if !value.is_object() => Reading::NoObject,
        Ok(value) => serde_json::from_value(value).map_or_else(|why| Reading::Unread(why.to_string()), Reading::Report),
        Err(why) => Reading::Unread(why.to_string()),
    }
}

/// Reads a count. Programs also write it with a fraction, as of a time that they guess, which may be infinite at first.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?.unwrap_or_default();
    let is_not_finite = NOT_FINITE.iter().any(|(_, word)| value == *word);
    if value.is_null() || is_not_finite {
        return Ok(None);
    }
    let with_fraction = value.as_f64().filter(|number| *number >= 0.0);
    // A number that is too large for the type becomes its largest one.
    let whole = value.as_u64().or_else(|| with_fraction.map(|number| number as u64));
    let whole = whole.filter(|whole| *whole <= MAX_COUNT);
    whole.map(Some).ok_or_else(|| D::Error::custom(format!("{value} is no count")))
}

fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)]
}

/// What is told of a text that is no report.
fn unread(text: &str, why: &str) -> String {
    format!("the annotation {ANNOTATION} cannot be read: {}: {}", shown(why), shown(text))
}

fn of_report(report: Report, last_update_time: String) -> Progress {
    let loss = report.loss.map(|loss| loss.as_str().map_or_else(|| loss.to_string(), str::to_owned));
    let loss = loss.map(|loss| shown(&loss).to_owned());
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

fn has_same_numbers(new: &Progress, old: &Progress) -> bool {
    let numbers = |it: &Progress| (it.step, it.total_steps, it.loss.clone(), it.estimated_remaining_seconds);
    numbers(new) == numbers(old)
}
