//! Hot loops: objects that are reconciled again and again are throttled and reported with the most frequent source of events, and
//! recover. Also the delays that plugins request.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use pilothouse_tests::{
    cluster::{Awaited, PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests, timed},
    test_env::{TestEnv, answering, config_map, deployment, is_ready, misbehaver, returning, scripted},
};

/// The most repairs until the object is reported as throttled: a burst of 60, and some slow ones.
const REPAIRS: usize = 80;

/// The children of one object that come at once.
const CHILDREN: usize = 200;

/// The longest time from one reconcile of a hot object to the next.
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

pub fn register(suite: &mut Suite) {
    timed!(suite, a_plugin_is_called_again_after_exactly_its_requeue_delay);
    tests!(
        suite,
        a_fight_over_a_child_is_throttled_and_reported_until_it_ends,
        a_plugin_that_always_requeues_immediately_is_throttled,
        a_plugin_with_different_children_in_every_answer_is_named_as_the_cause,
        a_plugin_that_does_not_read_the_clock_is_not_called_again_after_its_delay,
        many_children_at_once_are_no_hot_loop,
    );
}

/// Another controller sets seven replicas again and again.
async fn a_fight_over_a_child_is_throttled_and_reported_until_it_ends(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let fight = async {
        loop {
            let deployment = env.namespace.get("Deployment", "web").await?.context("the Deployment is gone")?;
            if deployment["spec"]["replicas"] != 7 {
                env.namespace.patch("Deployment", "web", json!({"spec": {"replicas": 7}})).await?;
            }
        }
    };
    // On a busy machine the other controller is slow, and so is the fight.
    let (began, patience, what) = (Instant::now(), 8 * PATIENCE, "to be throttled");
    let awaited = Awaited { kind: "AppService", name: "web", what };
    let reported = env.namespace.until_within(patience, &awaited, is_throttled);
    let object = tokio::select! {
        ended = fight => { let ended: Result<Value> = ended; ended? }
        reported = reported => reported?,
    };
    let message = condition(&object, "Throttled")["message"].as_str().context("no message")?;
    ensure!(message.contains("Deployment 'web'"), "the source is not named: {message}");
    let repairs = env.host_writes().await?.iter().filter(|write| write.starts_with("patch deployments/ ")).count();
    // An object may be repaired once in a second for ever.
    let allowed = REPAIRS + began.elapsed().as_secs() as usize;
    ensure!(repairs < allowed, "{repairs} repairs before it was slowed down, where {allowed} are allowed");

    let calm = |object: &Value| condition(object, "Throttled").is_null();
    // The last changes may have started one more of the longest pauses.
    eventually(LONGEST_PAUSE + PATIENCE, "AppService 'web' to be throttled no more", async || {
        let object = env.namespace.get("AppService", "web").await?.context("the object is gone")?;
        Ok(Look::of(calm(&object), &object["status"]))
    })
    .await?;
    let repaired = |deployment: &Value| deployment["spec"]["replicas"] == 3;
    env.namespace.until("Deployment", "web", "to be repaired after the last change", repaired).await?;
    env.at_rest("web").await
}

async fn a_plugin_that_always_requeues_immediately_is_throttled(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut restless = misbehaver("restless", "clock");
    restless["spec"]["number"] = 0.into();
    env.namespace.apply(restless).await?;
    let object = env.namespace.until("Misbehaver", "restless", "to be throttled", is_throttled).await?;
    let message = condition(&object, "Throttled")["message"].as_str().context("no message")?;
    ensure!(message.contains("requeue-after"), "the source is not named: {message}");
    let calls = env.calls("misbehaver").await?;
    ensure!(calls < 4.0 * REPAIRS as f64, "{calls} calls before it was slowed down");

    // A change of the object itself ends the pause at once.
    env.namespace.patch("Misbehaver", "restless", json!({"spec": {"act": "well"}})).await?;
    let well = |object: &Value| object["status"]["acted"] == "well" && condition(object, "Throttled").is_null();
    env.namespace.until("Misbehaver", "restless", "to be well", well).await?;
    Ok(())
}

/// The plugin counts up with each call. The Deployment controller writes after each of the host's writes, but is not the cause.
async fn a_plugin_with_different_children_in_every_answer_is_named_as_the_cause(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let next = json!({"$next": "count", "at": "/data/count"});
    let mut web = deployment("web", json!({"name": "web", "image": "example.com/web:1"}));
    web["metadata"]["annotations"] = json!({"count": next});
    let children = [config_map("count", json!({"count": next})), web].map(|child| json!({"object": child}));
    env.namespace.apply(answering("restless", json!({"children": children}))).await?;
    // Each call is followed by several writes, and on a busy machine an object is called hardly more often than it may be for ever.
    let (patience, what) = (8 * PATIENCE, "to be throttled");
    let object = env
        .namespace
        .until_within(patience, &Awaited { kind: "Scripted", name: "restless", what }, is_throttled)
        .await?;
    let message = condition(&object, "Throttled")["message"].as_str().context("no message")?;
    ensure!(message.contains("its plugin returns other children again and again"), "others are blamed: {message}");
    ensure!(!message.contains("somebody else"), "others are blamed, too: {message}");
    Ok(())
}

/// A call with the same inputs would return the same answer.
async fn a_plugin_that_does_not_read_the_clock_is_not_called_again_after_its_delay(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut object = misbehaver("pure", "requeue");
    object["spec"]["number"] = 0.into();
    env.namespace.apply(object).await?;
    let ready = |object: &Value| condition(object, "Ready")["status"] == "True";
    env.namespace.until("Misbehaver", "pure", "to be ready", ready).await?;
    eventually(PATIENCE, "the call that is left out", async || {
        let skipped = env.metrics().await?.sum("pilothouse_plugin_calls_skipped_total", &[]);
        Ok(Look::of(skipped > 0.0, skipped))
    })
    .await?;
    let calls = env.calls("misbehaver").await?;
    // Once another object is ready, any further call would have been made.
    env.namespace.apply(misbehaver("other", "well")).await?;
    env.namespace.until("Misbehaver", "other", "to be ready", ready).await?;
    let others = 10.0;
    ensure!(env.calls("misbehaver").await? <= calls + others, "the plugin was asked again and again");
    Ok(())
}

/// Each of the Pods is scheduled and comes to run, which are several events.
async fn many_children_at_once_are_no_hot_loop(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let pods = (0..CHILDREN).map(|number| {
        let container = json!({"name": "main", "image": "example.com/main:1"});
        let metadata = json!({"name": format!("pod-{number}")});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})
    });
    env.namespace.apply(scripted("crowd", returning(pods))).await?;
    let was_throttled = Cell::new(false);
    let holds = |object: &Value| {
        was_throttled.set(was_throttled.get() || !condition(object, "Throttled").is_null());
        is_ready(object)
    };
    let awaited = Awaited { kind: "Scripted", name: "crowd", what: "to be ready with all Pods" };
    env.namespace.until_within(4 * PATIENCE, &awaited, holds).await?;
    let pods = env.namespace.list("Pod").await?;
    let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
    ensure!(running == CHILDREN, "ready with {running} of {CHILDREN} Pods");
    ensure!(!was_throttled.get(), "it was throttled");
    let object = env.namespace.get("Scripted", "crowd").await?.context("the object is gone")?;
    ensure!(condition(&object, "Throttled").is_null(), "it is throttled: {object}");
    Ok(())
}

/// The plugin writes the time of each call into its child.
async fn a_plugin_is_called_again_after_exactly_its_requeue_delay(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let mut object = misbehaver("clock", "clock");
    object["spec"]["number"] = 2.into();
    env.namespace.apply(object).await?;
    let mut before = called_at(&env.namespace.until("ConfigMap", "clock", "to be created", |_| true).await?)?;
    for _ in 0..3 {
        let called_again = |child: &Value| called_at(child).is_ok_and(|at| at != before);
        let child = env.namespace.until("ConfigMap", "clock", "to be written again", called_again).await?;
        let now = called_at(&child)?;
        let after = Duration::try_from(now.duration_since(before))?;
        // The plugin sees whole seconds.
        ensure!(after >= Duration::from_secs(2) && after <= Duration::from_secs(3), "asked again after {after:?}");
        before = now;
    }
    Ok(())
}

fn called_at(child: &Value) -> Result<Timestamp> {
    Ok(child["data"]["now"].as_str().context("no time in the child")?.parse()?)
}

fn is_throttled(object: &Value) -> bool {
    condition(object, "Throttled")["status"] == "True"
}
