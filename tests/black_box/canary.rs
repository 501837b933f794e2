//! A new version of a plugin answers some objects first: which ones, for how long, and what becomes of them when it fails. Objects that a
//! version has touched are counted in the API server's audit log.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{HOST_USER, PATIENCE, condition},
    host::Host,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    command::repacked,
    plugin_objects::{install_by_command, next, plugin, plugin_object, resume, sha256, start, store, text, works},
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready},
};

/// How many objects there are.
const OBJECTS: usize = 10;

/// The share of the first step, in percent, and in objects.
const SHARE: (usize, usize) = (20, 2);

/// A Lease that expires soon, but can still be renewed in time on a slow machine.
const LEASE: [&str; 4] = [
    "--leader-elect",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=5s",
    "--leader-elect-retry-period=500ms",
];

/// A step that no test waits for.
const LONG: u32 = 3600;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_new_version_answers_its_share_and_then_all,
        an_edit_outside_the_canary_is_answered_by_the_old_version,
        a_bad_version_goes_back_by_itself,
        a_bad_version_goes_back_though_the_host_is_killed,
        the_same_objects_belong_to_it_after_a_restart,
        objects_with_a_label_are_a_wave,
        two_new_versions_in_a_row,
        a_canary_whose_objects_are_deleted,
        another_leader_goes_on_with_it,
        a_version_that_nobody_has_any_more_is_not_skipped,
        a_host_with_an_empty_cache_gets_the_old_version_from_where_it_came,
        a_pinned_object_keeps_its_version,
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
    let is_over = |object: &Value| object["status"]["version"] == "0.2.0" && object["status"]["rollout"].is_null();
    env.namespace.until("Plugin", "web", "to have the new version for all", is_over).await?;
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

async fn a_bad_version_goes_back_by_itself(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"percent": SHARE.0, "seconds": LONG}])).await?;
    let before = touched(env, 0).await?.0;
    store(env, "web", &[&bad().await?]).await?;
    let back = gone_back(env).await?;
    ensure!(condition(&back, "Degraded")["status"] == "True", "it is not told: {back}");
    ensure!(back["status"]["version"] == "0.1.0", "the old version is not at work: {back}");
    at_most_the_share(env, before).await?;
    healthy(env).await?;
    // It is not tried again, also not by a host that starts.
    env.host.stop().await?;
    resume(env).await?;
    env.host.ready().await?;
    gone_back(env).await?;
    env.metrics_at_rest().await?;
    at_most_the_share(env, before).await?;
    store(env, "web", &[&next()?]).await?;
    in_step(env, 1).await.map(drop)
}

/// Killed as soon as the first object has failed, and once more as soon as it works again.
async fn a_bad_version_goes_back_though_the_host_is_killed(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"percent": SHARE.0, "seconds": LONG}])).await?;
    let before = touched(env, 0).await?.0;
    store(env, "web", &[&bad().await?]).await?;
    eventually(PATIENCE, "an object to fail", async || {
        let failing = failing(env).await?;
        Ok(Look::of(!failing.is_empty(), failing))
    })
    .await?;
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    env.host.kill().await?;
    resume(env).await?;
    gone_back(env).await?;
    at_most_the_share(env, before).await?;
    healthy(env).await
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

/// Without it there is nothing to go back to, so nothing goes forward.
async fn a_version_that_nobody_has_any_more_is_not_skipped(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    env.host.stop().await?;
    store(env, "web", &[&next()?]).await?;
    let cache = tempfile::tempdir()?;
    let arguments = arguments(env, &[]);
    env.set_up_host(|setup| {
        setup.arguments = arguments;
        setup.cache = cache.path().join("cache");
    })?;
    env.host.resume().await?;
    let stalled = |object: &Value| condition(object, "Stalled")["reason"] == "StableVersionMissing";
    let object = env.namespace.until("Plugin", "web", "to miss the old version", stalled).await?;
    let message = text(&condition(&object, "Stalled")["message"]).to_owned();
    ensure!(message.contains(&sha256(&plugin()?)) && message.contains("Immediate"), "it does not help: {message}");
    ensure!(marked(env, 0).await?.is_empty(), "somebody works");
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": null}})).await?;
    marked(env, OBJECTS).await.map(drop)
}

/// As on another node: `install` leaves the pieces of the version that works there for as long as they are needed.
async fn a_host_with_an_empty_cache_gets_the_old_version_from_where_it_came(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    for name in names() {
        works(env, &name).await?;
    }
    settled(env).await?;
    let rollout = json!({"strategy": "Canary", "steps": [{"objects": SHARE.1, "seconds": LONG}]});
    env.namespace.patch("Plugin", "app-service", json!({"spec": {"rollout": rollout}})).await?;
    install_by_command(env, &artifacts::guest("app-service-next")?, &[]).await?.succeeded()?;
    let chosen = marked(env, SHARE.1).await?;
    env.host.kill().await?;
    let cache = tempfile::tempdir()?;
    let arguments = arguments(env, &[]);
    env.set_up_host(|setup| {
        setup.arguments = arguments;
        setup.cache = cache.path().join("cache");
    })?;
    env.host.resume().await?;
    env.host.ready().await?;
    for name in names() {
        env.namespace.patch("AppService", &name, json!({"spec": {"replicas": 4}})).await?;
        let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 4;
        env.namespace.until("Deployment", &name, "to be scaled", scaled).await?;
    }
    ensure!(marked(env, SHARE.1).await? == chosen, "others belong to it for the new host");
    Ok(())
}

async fn a_pinned_object_keeps_its_version(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    let pin = |name: &str, digest: &str| json!({"namespace": env.namespace.name, "name": name, "digest": digest});
    let (old, unknown) = (sha256(&plugin()?), format!("sha256:{}", "0".repeat(64)));
    let pins = json!([pin("web-0", &old), pin("web-1", &unknown)]);
    // The first version is kept from now on, and the second takes over at once.
    env.namespace
        .patch("Plugin", "web", json!({"spec": {"rollout": {"pins": pins, "strategy": "Immediate", "steps": null}}}))
        .await?;
    let misses = |object: &Value| condition(object, "Degraded")["reason"] == "PinnedVersionMissing";
    env.namespace.until("Plugin", "web", "to miss a version", misses).await?;
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, OBJECTS - 2).await?;
    ensure!(!chosen.contains("web-0") && !chosen.contains("web-1"), "{chosen:?}");
    let scale = json!({"spec": {"replicas": 5}});
    env.namespace.patch("AppService", "web-0", scale.clone()).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 5;
    env.namespace.until("Deployment", "web-0", "to be scaled", scaled).await?;
    ensure!(!is_marked(&env.namespace.get("Deployment", "web-0").await?.context("it is gone")?), "by the new version");
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"pins": null}}})).await?;
    marked(env, OBJECTS).await.map(drop)
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
    ] {
        let spec = json!({"source": {"configMap": {"name": "web"}}, "rollout": rollout});
        let refused = env.namespace.apply(plugin_object("web", spec)).await.err().context("it is accepted")?;
        let said = format!("{refused:#}");
        ensure!(said.contains(why), "{rollout}: {said}");
    }
    Ok(())
}

/// The first version with its objects, and a canary of these steps for the next one.
async fn begin(env: &mut TestEnv, steps: Value) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    let rollout = json!({"strategy": "Canary", "steps": steps});
    let spec = json!({"source": {"configMap": {"name": "web"}}, "rollout": rollout});
    env.namespace.apply(plugin_object("web", spec)).await?;
    for name in names() {
        env.namespace.apply(app(&name)).await?;
    }
    for name in names() {
        env.namespace.until("Deployment", &name, "to be there", |_| true).await?;
    }
    let counted = |object: &Value| is_ready(object) && object["status"]["stableDigest"].is_string();
    env.namespace.until("Plugin", "web", "to be at work", counted).await?;
    settled(env).await
}

/// Waits until the newest object is so old that no other one can be created in its second.
pub async fn settled(env: &TestEnv) -> Result<()> {
    eventually(PATIENCE, "the objects to be of a second that is over", async || {
        let created: Option<jiff::Timestamp> = env
            .namespace
            .list("AppService")
            .await?
            .iter()
            .filter_map(|object| text(&object["metadata"]["creationTimestamp"]).parse().ok())
            .max();
        let age = created.map(|created| jiff::Timestamp::now().duration_since(created).as_secs());
        Ok(Look::of(age >= Some(3), age))
    })
    .await
}

fn names() -> impl Iterator<Item = String> {
    (0..OBJECTS).map(|number| format!("web-{number}"))
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// A version whose answers are all refused: it returns a kind that its manifest does not name.
async fn bad() -> Result<Vec<u8>> {
    let change = |manifest: &mut Value| {
        manifest["version"] = "0.3.0".into();
        manifest["children"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    };
    let bad = repacked(&artifacts::guest("app-service-next")?, change).await?;
    Ok(std::fs::read(bad.path())?)
}

async fn in_step(env: &TestEnv, step: u32) -> Result<Value> {
    let is_there = |object: &Value| {
        object["status"]["rollout"]["phase"] == "Progressing" && object["status"]["rollout"]["step"] == step
    };
    env.namespace.until("Plugin", "web", &format!("to be in step {step}"), is_there).await
}

async fn gone_back(env: &TestEnv) -> Result<Value> {
    let is_back = |object: &Value| {
        object["status"]["rollout"]["phase"] == "RolledBack" && condition(object, "Stalled")["reason"] == "RolledBack"
    };
    env.namespace.until("Plugin", "web", "to have gone back", is_back).await
}

pub fn is_marked(deployment: &Value) -> bool {
    deployment["metadata"]["annotations"]["apps.example.com/revision"] == "2"
}

/// Waits until this many Deployments have the marks of the second version, and says which.
pub async fn marked(env: &TestEnv, count: usize) -> Result<BTreeSet<String>> {
    eventually(PATIENCE, &format!("{count} objects to be answered by the new version"), async || {
        let deployments = env.namespace.list("Deployment").await?;
        let marked = deployments.iter().filter(|it| is_marked(it)).map(|it| text(&it["metadata"]["name"]).to_owned());
        let marked: BTreeSet<_> = marked.collect();
        Ok(if marked.len() == count { Look::Found(marked) } else { Look::NotYet(format!("{marked:?}")) })
    })
    .await
}

async fn failing(env: &TestEnv) -> Result<BTreeSet<String>> {
    let objects = env.namespace.list("AppService").await?;
    let failing = objects.iter().filter(|object| condition(object, "Stalled")["status"] == "True");
    Ok(failing.map(|object| text(&object["metadata"]["name"]).to_owned()).collect())
}

/// Waits until no object is stalled.
async fn healthy(env: &TestEnv) -> Result<()> {
    eventually(PATIENCE, "all objects to recover", async || {
        let failing = failing(env).await?;
        Ok(Look::of(failing.is_empty(), failing))
    })
    .await
}

/// How many writes the host has made, and the objects that it has touched after so many of them.
async fn touched(env: &TestEnv, before: usize) -> Result<(usize, BTreeSet<String>)> {
    let writes = env.writes_of(HOST_USER).await?;
    let of_objects = writes.iter().skip(before).filter(|write| !write.contains(" events/"));
    let names = of_objects.filter_map(|write| write.split_whitespace().nth(2));
    Ok((writes.len(), names.filter(|name| name.starts_with("web-")).map(str::to_owned).collect()))
}

async fn at_most_the_share(env: &TestEnv, before: usize) -> Result<()> {
    let (_, touched) = touched(env, before).await?;
    ensure!((1..=SHARE.1).contains(&touched.len()), "it has touched {touched:?}");
    Ok(())
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

fn arguments(env: &TestEnv, more: &[&str]) -> Vec<String> {
    let own = ["--plugin-objects", "--host-namespace", &env.namespace.name];
    own.iter().chain(more).map(ToString::to_string).collect()
}
