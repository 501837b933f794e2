//! The log of the host's decisions: each has its cause and its real delay, and errors are sentences.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, answering, config_map, is_ready, sextet},
};

/// The number of retries that a test waits for, and the least delay of the last one.
const RETRIES: usize = 9;
const GROWN: Duration = Duration::from_millis(500);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        each_write_of_a_child_is_logged_with_its_cause,
        a_delete_of_a_child_that_is_no_longer_returned_is_logged_with_its_cause,
        a_delete_that_waits_for_a_refused_sibling_is_not_logged,
        a_delete_of_a_kind_that_is_no_longer_declared_is_logged_with_its_cause,
        a_delete_before_a_recreation_is_logged_with_its_cause,
        a_retry_is_logged_with_its_number_and_its_delay,
        errors_of_the_api_server_are_logged_in_words,
    );
}

/// Only a change by somebody else counts as repaired drift.
async fn each_write_of_a_child_is_logged_with_its_cause(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    returns(env, &[child("child", "one")]).await?;
    logged(env, "Creating ConfigMap.", "it does not exist").await?;
    ensure!(env.drift_repaired("scripted").await? == 0.0, "what is created is counted as repaired");

    env.namespace.patch("ConfigMap", "child", json!({"data": {"value": "evil"}})).await?;
    let has = |value: &'static str| move |child: &Value| child["data"]["value"] == value;
    env.namespace.until("ConfigMap", "child", "to be repaired", has("one")).await?;
    logged(env, "Drift detected. Updating ConfigMap.", "somebody else changed it").await?;
    ensure!(env.drift_repaired("scripted").await? == 1.0, "the repair is not counted");

    returns(env, &[child("child", "two")]).await?;
    env.namespace.until("ConfigMap", "child", "to be updated", has("two")).await?;
    logged(env, "Drift detected. Updating ConfigMap.", "the plugin returns something else").await?;
    ensure!(env.drift_repaired("scripted").await? == 1.0, "what the plugin changed is counted as repaired");
    Ok(())
}

async fn a_delete_of_a_child_that_is_no_longer_returned_is_logged_with_its_cause(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    returns(env, &[child("child", "one"), child("other", "one")]).await?;
    env.namespace.until("ConfigMap", "other", "to be created", |_| true).await?;
    returns(env, &[child("child", "one")]).await?;
    env.namespace.until_gone("ConfigMap", "other").await?;
    logged(env, "Deleting ConfigMap: no longer wanted.", "no longer returned").await
}

/// Deletes wait until everything else is applied, so the log must not report one before.
async fn a_delete_that_waits_for_a_refused_sibling_is_not_logged(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    returns(env, &[child("other", "one")]).await?;
    env.namespace.until("ConfigMap", "other", "to be created", |_| true).await?;
    let mut refused = child("child", "one");
    refused["object"]["data"] = json!({"no/key": "x"});
    returns(env, &[refused]).await?;
    let is_refused = |object: &Value| condition(object, "Ready")["reason"] == "ChildInvalid";
    env.namespace.until("Scripted", "object", "to report the refused child", is_refused).await?;
    let deletes = env.log_lines().into_iter().filter(|line| line["message"].to_string().contains("Deleting")).count();
    ensure!(deletes == 0, "{deletes} deletes are logged");
    returns(env, &[child("child", "one")]).await?;
    env.namespace.until_gone("ConfigMap", "other").await?;
    logged(env, "Deleting ConfigMap: no longer wanted.", "no longer returned").await
}

/// The next version of the plugin no longer declares Secrets.
async fn a_delete_of_a_kind_that_is_no_longer_declared_is_logged_with_its_cause(env: &mut TestEnv) -> Result<()> {
    env.start(&["sextet"]).await?;
    env.namespace.apply(sextet("web")).await?;
    env.namespace.until("Sextet", "web", "to be ready", is_ready).await?;
    env.replace("sextet", "sextet-next")?;
    env.namespace.until_gone("Secret", "web-a").await?;
    logged(env, "Deleting Secret: no longer wanted.", "its kind is no longer declared").await
}

async fn a_delete_before_a_recreation_is_logged_with_its_cause(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let immutable = |value: &str| {
        let mut child = child("child", value);
        child["onImmutable"] = "recreate".into();
        child["object"]["immutable"] = true.into();
        child
    };
    returns(env, &[immutable("one")]).await?;
    env.namespace.until("ConfigMap", "child", "to be created", |_| true).await?;
    returns(env, &[immutable("two")]).await?;
    let anew = |child: &Value| child["data"]["value"] == "two";
    env.namespace.until("ConfigMap", "child", "to be made anew", anew).await?;
    logged(env, "Deleting ConfigMap", "recreate: a field cannot change").await
}

/// A reader of the log learns when the next try comes.
async fn a_retry_is_logged_with_its_number_and_its_delay(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(answering("object", json!({"verdict": {"retry": "try again"}}))).await?;
    let lines = eventually(PATIENCE, &format!("{RETRIES} retries"), async || {
        let lines: Vec<_> = env.log_lines().into_iter().filter(|line| line["reason"] == "Retrying").collect();
        Ok(if lines.len() >= RETRIES { Look::Found(lines) } else { Look::NotYet(format!("{} retries", lines.len())) })
    })
    .await?;
    let mut delay = Duration::ZERO;
    // The first try writes the status. Where its watch event comes before its answer, it is a change of the object, which is
    // looked at without waiting for retry 1.
    for (number, pair) in (1..).zip(lines.windows(2)).skip(1) {
        let decision = pair[0]["decision"].as_str().context("no decision")?;
        delay = delay_of(decision, number)
            .with_context(|| format!("the decision of try {number} does not say when retry {number} is: {decision}"))?;
        let passed = Duration::try_from(time(&pair[1])?.duration_since(time(&pair[0])?))?;
        // The delay in the log may be rounded.
        ensure!(passed >= delay.mul_f64(0.9), "retry {number} came after {passed:?}, but the log says {decision}");
    }
    ensure!(delay >= GROWN, "the delay has only grown to {delay:?}");
    Ok(())
}

/// The errors of reads, writes and Events.
async fn errors_of_the_api_server_are_logged_in_words(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.install("scripted")?;
    proxy.faults().fail(Method::GET, "configmaps", StatusCode::INTERNAL_SERVER_ERROR);
    proxy.watches().refuse(StatusCode::INTERNAL_SERVER_ERROR);
    env.host.resume().await?;
    for text in ["failed to watch v1 ConfigMap", "failed to watch v1 Secret"] {
        env.host.logged(text).await?;
    }
    proxy.faults().heal();
    proxy.watches().admit();
    env.host.ready().await?;
    proxy.faults().fail(Method::PATCH, "scripteds/status", StatusCode::INTERNAL_SERVER_ERROR);
    proxy.faults().fail(Method::POST, "events", StatusCode::FORBIDDEN);
    env.namespace.apply(answering("object", json!({"verdict": {"invalid": "this cannot be"}}))).await?;
    for text in ["failed to write the status", "failed to write an event"] {
        env.host.logged(text).await?;
    }
    let log = env.host.log();
    let structures: Vec<_> = log.lines().filter(|line| line.contains("Status {")).collect();
    ensure!(structures.is_empty(), "a structure is logged: {structures:#?}");
    Ok(())
}

/// Waits for a line of the log that begins with a text and has this cause.
async fn logged(env: &TestEnv, begin: &str, cause: &str) -> Result<()> {
    eventually(PATIENCE, &format!("a line '{begin}' with the cause '{cause}'"), async || {
        let begins = |line: &Value| line["message"].as_str().is_some_and(|message| message.starts_with(begin));
        let lines: Vec<_> = env.log_lines().into_iter().filter(begins).collect();
        Ok(Look::of(lines.iter().any(|line| line["cause"] == cause), lines))
    })
    .await
}

fn time(line: &Value) -> Result<Timestamp> {
    Ok(line["timestamp"].as_str().context("a line without a timestamp")?.parse()?)
}

/// The delay in a decision such as `retry 10 in 2.5s`, if the decision is about this retry.
fn delay_of(decision: &str, number: u32) -> Option<Duration> {
    let (_, rest) = decision.split_once(&format!("retry {number} in "))?;
    let text = rest.split([' ', ',', ';']).next()?;
    let unit = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (value, unit) = text.split_at(unit);
    let seconds = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "µs" => 1e-6,
        _ => return None,
    };
    Duration::try_from_secs_f64(value.parse::<f64>().ok()? * seconds).ok()
}

/// Lets the plugin return these children.
async fn returns(env: &TestEnv, children: &[Value]) -> Result<()> {
    env.namespace.apply(answering("object", json!({"children": children}))).await?;
    Ok(())
}

fn child(name: &str, value: &str) -> Value {
    json!({"object": config_map(name, json!({"value": value}))})
}
