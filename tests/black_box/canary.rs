//! A new version of a plugin answers some objects first: which ones, for how long, and what becomes of them when it fails. Objects that a
//! version has touched are counted in the API server's audit log.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition},
    host::Host,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    command::repacked,
    plugin_objects::{next, plugin, plugin_object, resume, sha256, start, store, text},
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready},
};

/// How many objects there are.
pub const OBJECTS: usize = 10;

/// The share of the first step, in percent, and in objects.
pub const SHARE: (usize, usize) = (20, 2);

/// A Lease that expires soon, but can still be renewed in time on a slow machine.
const LEASE: [&str; 4] = [
    "--leader-elect",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=5s",
    "--leader-elect-retry-period=500ms",
];

/// A step that no test waits for.
pub const LONG: u32 = 3600;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_new_version_answers_its_share_and_then_all,
        an_edit_outside_the_canary_is_answered_by_the_old_version,
        the_same_objects_belong_to_it_after_a_restart,
        objects_with_a_label_are_a_wave,
        steps_that_select_nothing_wait_for_an_object,
        corrected_steps_select_at_once,
        two_new_versions_in_a_row,
        a_canary_whose_objects_are_deleted,
        an_object_that_is_pinned_or_suspended_is_no_share,
        other_steps_move_no_object,
        another_leader_goes_on_with_it,
        a_rollout_that_makes_no_sense_is_refused,
    );
}

async fn a_new_version_answers_its_share_and_then_all(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"percent": SHARE.0, "seconds": 3}, {"percent": 50, "seconds": 1}])).await?;
    store(env, "web", &[&next()?]).await?;
    let first = in_step(env, 1).await?;
    ensure!(first["status"]["rollout"]["objects"] == SHARE.1, "{}", first["status"]);
    ensure!(first["status"]["version"] == "0.1.0" && is_ready(&first), "the old version is not at work: {first}");
    ensure!(condition(&first, "Reconciling")["reason"] == "Canary", "it is not told: {first}");
    let second = in_step(env, 2).await?;
    ensure!(second["status"]["rollout"]["objects"] == OBJECTS / 2, "{}", second["status"]);
    taken_over(env).await?;
    marked(env, OBJECTS).await.map(drop)
}

/// Also a new object: it is younger than the canary.
async fn an_edit_outside_the_canary_is_answered_by_the_old_version(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"percent": SHARE.0, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, SHARE.1).await?;
    let mut outside = names().filter(|name| !chosen.contains(name));
    let edited = outside.next().context("all objects belong to it")?;
    for name in chosen.iter().chain([&edited]) {
        env.namespace.patch("AppService", name, json!({"spec": {"replicas": 5}})).await?;
    }
    env.namespace.apply(app("young")).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 5;
    for name in chosen.iter().chain([&edited]) {
        env.namespace.until("Deployment", name, "to be scaled", scaled).await?;
    }
    env.namespace.until("Deployment", "young", "to be there", |_| true).await?;
    ensure!(marked(env, SHARE.1).await? == chosen, "others belong to it now");
    Ok(())
}

async fn the_same_objects_belong_to_it_after_a_restart(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, SHARE.1).await?;
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    // Every object is looked at again, and asked for something new.
    for name in names() {
        env.namespace.patch("AppService", &name, json!({"spec": {"replicas": 4}})).await?;
        let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 4;
        env.namespace.until("Deployment", &name, "to be scaled", scaled).await?;
    }
    ensure!(marked(env, SHARE.1).await? == chosen, "others belong to it after the restart");
    Ok(())
}

async fn objects_with_a_label_are_a_wave(env: &mut TestEnv) -> Result<()> {
    let wave = |name: &str| json!({"selector": {"matchLabels": {"wave": name}}, "seconds": 2});
    begin(env, json!([wave("one"), {"selector": {"matchLabels": {"wave": "two"}}, "seconds": LONG}])).await?;
    for (name, wave) in [("web-0", "one"), ("web-1", "two"), ("web-2", "two")] {
        env.namespace.patch("AppService", name, json!({"metadata": {"labels": {"wave": wave}}})).await?;
    }
    store(env, "web", &[&next()?]).await?;
    in_step(env, 1).await?;
    ensure!(marked(env, 1).await? == set(["web-0"]), "another wave is the first");
    in_step(env, 2).await?;
    ensure!(marked(env, 3).await? == set(["web-0", "web-1", "web-2"]), "other objects are in the second wave");
    // Who gets the label comes to it.
    env.namespace.patch("AppService", "web-3", json!({"metadata": {"labels": {"wave": "two"}}})).await?;
    marked(env, 4).await.map(drop)
}

/// A mistyped label must not lead to a version that was tried on nothing and answers all objects.
async fn steps_that_select_nothing_wait_for_an_object(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"selector": {"matchLabels": {"wave": "one"}}, "seconds": 1}])).await?;
    store(env, "web", &[&next()?]).await?;
    let waiting = env.namespace.until("Plugin", "web", "to wait for an object", waits_for_an_object).await?;
    until_passed(text(&waiting["status"]["rollout"]["since"]).parse()?, 3).await?;
    let object = env.namespace.get("Plugin", "web").await?.context("no Plugin")?;
    ensure!(
        object["status"]["version"] == "0.1.0" && waits_for_an_object(&object),
        "it does not wait: {}",
        object["status"]
    );
    marked(env, 0).await?;
    env.namespace.patch("AppService", "web-0", json!({"metadata": {"labels": {"wave": "one"}}})).await?;
    marked(env, OBJECTS).await?;
    taken_over(env).await
}

/// The other way out of a mistyped label: the steps are mended, and no object is touched.
async fn corrected_steps_select_at_once(env: &mut TestEnv) -> Result<()> {
    let steps = |wave: &str| json!([{"selector": {"matchLabels": {"wave": wave}}, "seconds": LONG}]);
    begin(env, steps("oen")).await?;
    env.namespace.patch("AppService", "web-0", json!({"metadata": {"labels": {"wave": "one"}}})).await?;
    store(env, "web", &[&next()?]).await?;
    let waits = |object: &Value| {
        let message = condition(object, "Reconciling")["message"].as_str().unwrap_or_default();
        message.contains("none has the labels of its steps")
    };
    env.namespace.until("Plugin", "web", "to wait for an object", waits).await?;
    marked(env, 0).await?;
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"steps": steps("one")}}})).await?;
    ensure!(marked(env, 1).await? == set(["web-0"]), "others are tried");
    let object = in_step(env, 1).await?;
    ensure!(object["status"]["version"] == "0.1.0" && is_ready(&object), "the old version is not at work: {object}");
    Ok(())
}

/// The objects of the first one get the old version back, and the second one begins with its own.
async fn two_new_versions_in_a_row(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    marked(env, SHARE.1).await?;
    let other =
        repacked(&artifacts::guest("app-service-next")?, |manifest| manifest["version"] = "0.3.0".into()).await?;
    store(env, "web", &[&std::fs::read(other.path())?]).await?;
    let is_other = |object: &Value| object["status"]["rollout"]["version"] == "0.3.0";
    let object = env.namespace.until("Plugin", "web", "to try the second version", is_other).await?;
    ensure!(object["status"]["version"] == "0.1.0", "the first one has taken over: {object}");
    marked(env, SHARE.1).await?;
    // Back to the version that works: nothing is tried any more.
    store(env, "web", &[&plugin()?]).await?;
    let is_over = |object: &Value| object["status"]["rollout"].is_null() && is_ready(object);
    env.namespace.until("Plugin", "web", "to try nothing", is_over).await?;
    marked(env, 0).await.map(drop)
}

/// Others take their place: a step says nothing about a version that it was not tried on.
async fn a_canary_whose_objects_are_deleted(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, SHARE.1).await?;
    for name in &chosen {
        env.namespace.delete("AppService", name).await?;
        env.namespace.delete("Deployment", name).await?;
    }
    let others = marked(env, SHARE.1).await?;
    ensure!(others.is_disjoint(&chosen), "{others:?}");
    for name in names() {
        if !chosen.contains(&name) {
            env.namespace.delete("AppService", &name).await?;
        }
    }
    let is_over = |object: &Value| object["status"]["version"] == "0.2.0" && object["status"]["rollout"].is_null();
    env.namespace.until("Plugin", "web", "to take over where there is nothing to try it on", is_over).await.map(drop)
}

/// The new version would not be asked about it, and would be tried on nothing.
async fn an_object_that_is_pinned_or_suspended_is_no_share(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": 1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    let first = marked(env, 1).await?.pop_first().context("no object")?;
    let pin = json!([{"namespace": env.namespace.name, "name": first, "digest": sha256(&plugin()?)}]);
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"pins": pin}}})).await?;
    let is_another = |found: &BTreeSet<String>| found.len() == 1 && !found.contains(&first);
    let second = eventually(PATIENCE, "another object in its place", async || {
        let found = all_marked(env).await?;
        Ok(if is_another(&found) { Look::Found(found) } else { Look::NotYet(format!("{found:?}")) })
    })
    .await?;
    store(env, "web", &[&plugin()?]).await?;
    marked(env, 0).await?;
    let suspended = json!({"metadata": {"annotations": {"pilothouse.dev/suspended": "true"}}});
    env.namespace.patch("AppService", &first, suspended).await?;
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"pins": null}}})).await?;
    store(env, "web", &[&next()?]).await?;
    let object = in_step(env, 1).await?;
    ensure!(marked(env, 1).await? == second, "the order of the objects is another one: {object}");
    Ok(())
}

/// What is written in the place of a step that has begun comes with none of its objects.
async fn other_steps_move_no_object(env: &mut TestEnv) -> Result<()> {
    let wave = |name: &str| json!({"selector": {"matchLabels": {"wave": name}}, "seconds": LONG});
    begin(env, json!([wave("one"), wave("two")])).await?;
    for (name, wave) in [("web-0", "one"), ("web-1", "two"), ("web-2", "two")] {
        env.namespace.patch("AppService", name, json!({"metadata": {"labels": {"wave": wave}}})).await?;
    }
    store(env, "web", &[&next()?]).await?;
    ensure!(marked(env, 1).await? == set(["web-0"]), "another wave is the first");
    let steps = json!({"spec": {"rollout": {"steps": [wave("two"), wave("one"), wave("three")]}}});
    env.namespace.patch("Plugin", "web", steps).await?;
    let is_seen = |object: &Value| {
        let message = text(&condition(object, "Reconciling")["message"]);
        object["status"]["observedGeneration"] == object["metadata"]["generation"]
            && object["status"]["rollout"]["steps"] == 3
            && message.contains("step 1 of 3")
    };
    env.namespace.until("Plugin", "web", "to tell of the steps that there are now", is_seen).await?;
    for name in names() {
        env.namespace.patch("AppService", &name, json!({"spec": {"replicas": 5}})).await?;
        let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 5;
        env.namespace.until("Deployment", &name, "to be scaled", scaled).await?;
    }
    ensure!(all_marked(env).await? == set(["web-0"]), "others belong to it: {:?}", all_marked(env).await?);
    Ok(())
}

async fn another_leader_goes_on_with_it(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    let mut second = lead_with_standby(env).await?;
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, SHARE.1).await?;
    // The standby host has learnt of the canary from the status.
    second.logged(r#""version":"0.2.0""#).await?;
    env.host.kill().await?;
    second.logged("this host leads").await?;
    for name in names() {
        env.namespace.patch("AppService", &name, json!({"spec": {"replicas": 4}})).await?;
        let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 4;
        env.namespace.until("Deployment", &name, "to be scaled", scaled).await?;
    }
    ensure!(marked(env, SHARE.1).await? == chosen, "others belong to it for the new leader");
    second.stop().await
}

async fn a_rollout_that_makes_no_sense_is_refused(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    for (rollout, why) in [
        (json!({"strategy": "Canary"}), "Canary needs steps"),
        (json!({"steps": [{"objects": 1, "seconds": 1}]}), "Immediate has none"),
        (json!({"strategy": "Canary", "steps": [{"seconds": 1}]}), "names one of percent"),
        (json!({"strategy": "Canary", "steps": [{"objects": 1, "percent": 1, "seconds": 1}]}), "names one of percent"),
        (json!({"strategy": "Canary", "steps": [{"percent": 101, "seconds": 1}]}), "percent"),
        (json!({"pins": [{"name": "web", "digest": "latest"}]}), "digest"),
        (json!({"pins": [{"name": "web"}]}), "names one of digest and version"),
        (json!({"pins": [{"name": "web", "version": "1", "digest": sha256(b"")}]}), "names one of digest and version"),
    ] {
        let spec = json!({"source": {"configMap": {"name": "web"}}, "rollout": rollout});
        let refused = env.namespace.apply(plugin_object("web", spec)).await.err().context("it is accepted")?;
        let said = format!("{refused:#}");
        ensure!(said.contains(why), "{rollout}: {said}");
    }
    Ok(())
}

/// The first version with its objects, and a canary of these steps for the next one.
pub async fn begin(env: &mut TestEnv, steps: Value) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    apply_plugin(env, steps).await?;
    for name in names() {
        env.namespace.apply(app(&name)).await?;
    }
    for name in names() {
        env.namespace.until("Deployment", &name, "to be there", |_| true).await?;
    }
    let counted = |object: &Value| is_ready(object) && object["status"]["stableDigest"].is_string();
    env.namespace.until("Plugin", "web", "to be at work", counted).await?;
    settled(env, "AppService").await?;
    // Whoever counts writes from here on counts none of the first version: Services and statuses come after Deployments.
    env.metrics_at_rest().await.map(drop)
}

/// The `Plugin` web, with a canary of these steps.
pub async fn apply_plugin(env: &TestEnv, steps: Value) -> Result<()> {
    let rollout = json!({"strategy": "Canary", "steps": steps});
    let spec = json!({"source": {"configMap": {"name": "web"}}, "rollout": rollout});
    env.namespace.apply(plugin_object("web", spec)).await.map(drop)
}

/// Suspends objects of a kind, or with null has them reconciled again.
pub async fn suspend(env: &TestEnv, kind: &str, names: &[String], value: Value) -> Result<()> {
    for name in names {
        let suspended = json!({"metadata": {"annotations": {"pilothouse.dev/suspended": value}}});
        env.namespace.patch(kind, name, suspended).await?;
    }
    Ok(())
}

/// Whether a `Plugin` says that its new version waits for an object.
pub fn waits_for_an_object(plugin: &Value) -> bool {
    let message = condition(plugin, "Reconciling")["message"].as_str().unwrap_or_default();
    message.contains("waits for an object that it can be tried on")
}

/// Waits until more than so many seconds have passed since a time.
pub async fn until_passed(since: jiff::Timestamp, seconds: i64) -> Result<()> {
    eventually(PATIENCE, "the time of the step to be over", async || {
        let passed = jiff::Timestamp::now().duration_since(since);
        Ok(Look::of(passed > jiff::SignedDuration::from_secs(seconds), passed))
    })
    .await
}

/// Waits until the newest object of a kind is so old that no other one can be created in its second.
pub async fn settled(env: &TestEnv, kind: &str) -> Result<()> {
    eventually(PATIENCE, "the objects to be of a second that is over", async || {
        let created: Option<jiff::Timestamp> = env
            .namespace
            .list(kind)
            .await?
            .iter()
            .filter_map(|object| text(&object["metadata"]["creationTimestamp"]).parse().ok())
            .max();
        let age = created.map(|created| jiff::Timestamp::now().duration_since(created).as_secs());
        Ok(Look::of(age >= Some(3), age))
    })
    .await
}

pub fn names() -> impl Iterator<Item = String> {
    (0..OBJECTS).map(|number| format!("web-{number}"))
}

pub fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

pub async fn in_step(env: &TestEnv, step: u32) -> Result<Value> {
    let is_there = |object: &Value| {
        object["status"]["rollout"]["phase"] == "Progressing" && object["status"]["rollout"]["step"] == step
    };
    env.namespace.until("Plugin", "web", &format!("to be in step {step}"), is_there).await
}

/// Waits until the second version answers all objects.
pub async fn taken_over(env: &TestEnv) -> Result<()> {
    let is_over = |object: &Value| object["status"]["version"] == "0.2.0" && object["status"]["rollout"].is_null();
    env.namespace.until("Plugin", "web", "to have the new version for all", is_over).await.map(drop)
}

pub fn is_marked(deployment: &Value) -> bool {
    deployment["metadata"]["annotations"]["apps.example.com/revision"] == "2"
}

/// Waits until this many Deployments have the marks of the second version, and says which.
pub async fn marked(env: &TestEnv, count: usize) -> Result<BTreeSet<String>> {
    eventually(PATIENCE, &format!("{count} objects to be answered by the new version"), async || {
        let marked = all_marked(env).await?;
        Ok(if marked.len() == count { Look::Found(marked) } else { Look::NotYet(format!("{marked:?}")) })
    })
    .await
}

async fn all_marked(env: &TestEnv) -> Result<BTreeSet<String>> {
    let deployments = env.namespace.list("Deployment").await?;
    let marked = deployments.iter().filter(|it| is_marked(it));
    Ok(marked.map(|it| text(&it["metadata"]["name"]).to_owned()).collect())
}

/// Lets the host lead, and starts another one that stands by.
pub async fn lead_with_standby(env: &mut TestEnv) -> Result<Host> {
    env.host.stop().await?;
    let of_host = arguments(env, &LEASE);
    env.set_up_host(|setup| setup.arguments = of_host)?;
    env.host.resume().await?;
    env.host.logged("this host leads").await?;
    let mut second = env.namespace.setup();
    second.arguments = arguments(env, &LEASE);
    let second = Host::start(second).await?;
    second.logged("plugin stands by").await?;
    Ok(second)
}

pub fn arguments(env: &TestEnv, more: &[&str]) -> Vec<String> {
    let own = ["--plugin-objects", "--host-namespace", &env.namespace.name];
    own.iter().chain(more).map(ToString::to_string).collect()
}
