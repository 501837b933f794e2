//! What counts against a version that is tried: what it has broken itself, whatever becomes of its objects meanwhile, and nothing else.

use anyhow::{Result, ensure};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    canary::{LONG, OBJECTS, apply_plugin, in_step, names, settled, suspend, until_passed, waits_for_an_object},
    canary_ends::set_steps,
    plugin_objects::{resume, scripted_version, stalled, store, text},
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        what_a_version_has_broken_is_held_against_it_after_it_was_out_of_reach,
        objects_that_come_back_are_no_more_than_the_share,
        an_object_that_failed_before_it_came_is_held_against_nobody,
    );
}

/// Whoever takes all objects out of reach for a moment must not make a version look as if it had found them so.
async fn what_a_version_has_broken_is_held_against_it_after_it_was_out_of_reach(env: &mut TestEnv) -> Result<()> {
    start(env, json!([{"objects": 2, "seconds": LONG}, {"percent": 100, "seconds": 1}])).await?;
    let members = try_on(env, 2).await?;
    for name in &members {
        let waits = json!({"wait": {"reason": "Stuck", "message": "for ever", "seconds": LONG}});
        env.namespace.apply(object(name, "third", waits)).await?;
        let is_stuck = |object: &Value| condition(object, "Ready")["reason"] == "Stuck";
        env.namespace.until("Scripted", name, "to be stuck", is_stuck).await?;
    }
    let all: Vec<_> = names().collect();
    suspend(env, "Scripted", &all, json!("true")).await?;
    env.namespace.until("Plugin", "web", "to wait for an object", waits_for_an_object).await?;
    set_steps(env, json!([{"objects": 2, "seconds": 1}, {"percent": 100, "seconds": 1}])).await?;
    suspend(env, "Scripted", &all, Value::Null).await?;
    let object = stalled(env, "RolledBack").await?;
    let rollout = &object["status"]["rollout"];
    ensure!(object["status"]["version"] == "0.1.0" && rollout["step"] == 1, "{rollout}");
    ensure!(rollout["notReadyBefore"] == 0 && rollout["objects"].as_u64() <= Some(2), "{rollout}");
    Ok(())
}

/// Others in the place of those that are suspended for a while would be more than the step asks for, once these come back.
async fn objects_that_come_back_are_no_more_than_the_share(env: &mut TestEnv) -> Result<()> {
    start(env, json!([{"objects": 2, "seconds": LONG}])).await?;
    let members = try_on(env, 2).await?;
    suspend(env, "Scripted", &members, json!("true")).await?;
    let waits = env.namespace.until("Plugin", "web", "to wait for an object", waits_for_an_object).await?;
    ensure!(waits["status"]["rollout"]["objects"] == 0, "{}", waits["status"]);
    let has = |number: u64| move |object: &Value| object["status"]["rollout"]["objects"] == number;
    suspend(env, "Scripted", &members[..1], Value::Null).await?;
    env.namespace.until("Plugin", "web", "to have one object", has(1)).await?;
    suspend(env, "Scripted", &members[1..], Value::Null).await?;
    env.namespace.until("Plugin", "web", "to have two objects", has(2)).await?;
    apply_all(env, "third").await?;
    let by_second = written(env, "third").await?;
    ensure!(by_second == members, "{members:?} belonged to it, and now {by_second:?}");
    Ok(())
}

/// What was so when a label brings it is not the new version's doing.
async fn an_object_that_failed_before_it_came_is_held_against_nobody(env: &mut TestEnv) -> Result<()> {
    start(env, json!([{"selector": {"matchLabels": {"wave": "one"}}, "seconds": LONG}])).await?;
    env.namespace.apply(object("web-1", "first", json!({"invalid": "no version takes it"}))).await?;
    let is_failing = |object: &Value| condition(object, "Stalled")["status"] == "True";
    let failing = env.namespace.until("Scripted", "web-1", "to be stalled", is_failing).await?;
    // Within one second nobody knows what came first.
    until_passed(text(&condition(&failing, "Stalled")["lastTransitionTime"]).parse()?, 1).await?;
    let label =
        |name: &'static str| env.namespace.patch("Scripted", name, json!({"metadata": {"labels": {"wave": "one"}}}));
    label("web-0").await?;
    store(env, "web", &[&scripted_version("0.2.0").await?]).await?;
    let has = |number: u64| move |object: &Value| object["status"]["rollout"]["objects"] == number;
    env.namespace.until("Plugin", "web", "to have one object", has(1)).await?;
    label("web-1").await?;
    let object = env.namespace.until("Plugin", "web", "to have two objects", has(2)).await?;
    let rollout = &object["status"]["rollout"];
    ensure!(rollout["failing"] == 1 && rollout["failingBefore"] == 1 && rollout["phase"] == "Progressing", "{rollout}");
    // What it does break counts.
    env.namespace.apply(object_with_label("web-0", json!({"invalid": "this version does not take it"}))).await?;
    stalled(env, "RolledBack").await.map(drop)
}

/// The first version at work, with its objects, and a canary of these steps for the next one.
async fn start(env: &mut TestEnv, steps: Value) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml", "tests/guests/scripted/crd.yaml"]).await?;
    resume(env).await?;
    env.host.ready().await?;
    store(env, "web", &[&scripted_version("0.1.0").await?]).await?;
    apply_plugin(env, steps).await?;
    apply_all(env, "first").await?;
    for name in names() {
        env.namespace.until("Scripted", &name, "to be ready", is_ready).await?;
    }
    env.namespace.until("Plugin", "web", "to be at work", |it| it["status"]["stableDigest"].is_string()).await?;
    settled(env, "Scripted").await
}

/// The next version, which is tried on so many objects. Returns their names.
async fn try_on(env: &TestEnv, objects: usize) -> Result<Vec<String>> {
    store(env, "web", &[&scripted_version("0.2.0").await?]).await?;
    ensure!(in_step(env, 1).await?["status"]["rollout"]["objects"] == objects, "others belong to it");
    // The status says it before the new version begins, and who is asked until then is the old one.
    env.host.logged(r#""plugin at work","plugin":"scripted","version":"0.2.0""#).await?;
    apply_all(env, "second").await?;
    written(env, "second").await
}

async fn apply_all(env: &TestEnv, text: &str) -> Result<()> {
    for name in names() {
        env.namespace.apply(object(&name, text, json!("done"))).await?;
    }
    Ok(())
}

/// An object whose child has this text, about which its plugin says this.
fn object(name: &str, text: &str, verdict: Value) -> Value {
    let child = config_map(name, json!({"text": text}));
    scripted(name, json!({"response": {"verdict": verdict, "children": [{"object": child}]}}))
}

fn object_with_label(name: &str, verdict: Value) -> Value {
    let mut object = object(name, "third", verdict);
    object["metadata"]["labels"] = json!({"wave": "one"});
    object
}

/// Waits until all children have this text. Returns the names of those that the second version has written.
async fn written(env: &TestEnv, expected: &str) -> Result<Vec<String>> {
    eventually(PATIENCE, &format!("children with the text '{expected}'"), async || {
        let maps = env.namespace.list("ConfigMap").await?;
        let (ours, others): (Vec<_>, Vec<_>) = maps.iter().partition(|map| map["data"]["text"] == expected);
        let is_second = |map: &&&Value| map["metadata"]["annotations"]["pilothouse.dev/plugin-version"] == "0.2.0";
        let by_second = ours.iter().filter(is_second).map(|map| text(&map["metadata"]["name"]).to_owned());
        let is_all = ours.len() == OBJECTS;
        Ok(if is_all { Look::Found(by_second.collect()) } else { Look::NotYet(format!("{} others", others.len())) })
    })
    .await
}
