//! A rollout that gets on no more counts as stuck after its deadline, and one that was complete has none.

use crate::case::{case, run, with_live};
use llm_serving::testing::condition;
use pilothouse_sdk::Error;
use pilothouse_sdk::testing::{Answer, Case};
use serde_json::{Value, json};

const SPEC: &str = "replicas: 2, progressDeadlineSeconds: 60";

/// What the status remembers, and the time of the call.
fn at(case: Case, time: &str, progress: Option<&Value>) -> Result<Answer, Error> {
    let status = progress.map(|progress| json!({ "progress": progress }));
    let case = case.now(&format!("2026-01-01T00:{time}Z"));
    run(match status {
        Some(status) => case.status(status),
        None => case,
    })
}

fn remembered(answer: &Answer) -> Result<Value, Error> {
    Ok(answer.status::<Value>()?["progress"].clone())
}

fn conditions(answer: &Answer) -> [String; 4] {
    ["Stalled", "Degraded", "Progressing", "Ready"].map(|name| condition(answer, name))
}

const GOES_ON: [&str; 4] = ["", "False Progressing", "True Progressing", "False Progressing"];
const STUCK: [&str; 4] = [
    "True ProgressDeadlineExceeded",
    "True ProgressDeadlineExceeded",
    "False ProgressDeadlineExceeded",
    "False Progressing",
];

#[test]
fn a_model_that_never_gets_pods_is_stalled_after_its_deadline() -> Result<(), Error> {
    let first = at(case(SPEC)?, "00:00", None)?;
    let since =
        json!({ "generation": 1, "summary": "0 of 2 replicas ready", "lastUpdateTime": "2026-01-01T00:00:00Z" });
    assert_eq!((conditions(&first), first.response.requeue_after), (GOES_ON.map(str::to_owned), Some(60)));
    assert_eq!(remembered(&first)?, since);
    let later = at(case(SPEC)?, "00:59", Some(&since))?;
    assert_eq!((conditions(&later), later.response.requeue_after), (GOES_ON.map(str::to_owned), Some(1)));
    let stuck = at(case(SPEC)?, "01:00", Some(&since))?;
    assert_eq!((conditions(&stuck), stuck.response.requeue_after), (STUCK.map(str::to_owned), None));
    let message = stuck.condition("Stalled").map(|condition| condition.message.as_str());
    assert_eq!(message, Some("the rollout has not got on for the 60 s that it has; 0 of 2 replicas ready"));
    assert_eq!(remembered(&stuck)?, since);
    Ok(())
}

#[test]
fn every_step_and_every_change_of_the_spec_has_the_time_anew() -> Result<(), Error> {
    let old = |generation: i64, summary: &str| json!({ "generation": generation, "summary": summary, "lastUpdateTime": "2026-01-01T00:00:00Z" });
    for progress in [old(1, "1 of 2 replicas ready"), old(0, "0 of 2 replicas ready"), old(0, "complete")] {
        let answer = at(case(SPEC)?, "05:00", Some(&progress))?;
        assert_eq!(conditions(&answer), GOES_ON, "{progress}");
        assert_eq!(remembered(&answer)?["lastUpdateTime"], "2026-01-01T00:05:00Z", "{progress}");
    }
    Ok(())
}

/// As with a Deployment: a node that is lost later is no rollout that fails.
#[test]
fn what_was_complete_has_no_deadline() -> Result<(), Error> {
    let first = at(with_live(case(SPEC)?, 2), "00:00", None)?;
    let complete = json!({ "generation": 1, "summary": "complete", "lastUpdateTime": "2026-01-01T00:00:00Z" });
    assert_eq!((remembered(&first)?, first.response.requeue_after), (complete.clone(), None));
    for case in [with_live(case(SPEC)?, 2), with_live(case(SPEC)?, 1)] {
        let later = at(case, "59:00", Some(&complete))?;
        assert_eq!((remembered(&later)?, later.response.requeue_after), (complete.clone(), None));
        assert_eq!(condition(&later, "Stalled"), "");
    }
    Ok(())
}

/// An old workload that stays, as one with a finalizer does.
#[test]
fn an_old_workload_that_never_goes_is_told() -> Result<(), Error> {
    let spec = format!("{SPEC}, tensorParallelSize: 16");
    let first = at(with_live(case(&spec)?, 2), "00:00", None)?;
    let stuck = at(with_live(case(&spec)?, 2), "01:00", Some(&remembered(&first)?))?;
    let [stalled, .., ready] = conditions(&stuck);
    assert_eq!([&*stalled, &*ready], ["True ProgressDeadlineExceeded", "False AwaitingRemoval"]);
    Ok(())
}

#[test]
fn the_deadline_follows_from_what_a_model_takes() -> Result<(), Error> {
    let seconds =
        |spec: &str| -> Result<Option<u32>, Error> { Ok(at(case(spec)?, "00:00", None)?.response.requeue_after) };
    assert_eq!(seconds("")?, Some(1200));
    assert_eq!(
        seconds("startupTimeoutSeconds: 3600, modelSource: {uri: 'hf://a/b', deadlineSeconds: 900}")?,
        Some(5100)
    );
    assert_eq!(seconds("startupTimeoutSeconds: 3600, progressDeadlineSeconds: 7")?, Some(7));
    Ok(())
}
