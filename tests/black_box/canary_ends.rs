//! How a canary ends otherwise than by its steps, and what a host that starts does when the source no longer gives what it gave: each row of
//! `docs/rollout.md`, and that the version that works goes on meanwhile.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition, install_crd},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    canary::{
        LONG, OBJECTS, SHARE, apply_plugin, begin, in_step, marked, names, set, settled, suspend, taken_over,
        until_passed, waits_for_an_object,
    },
    command::repacked,
    plugin_objects::{guest_version, next, plugin, resume, sha256, stalled, store, text, works},
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready, returning},
};

/// How often a canary begins and is taken back.
const TURNS: usize = 4;

/// What no component is.
const GARBAGE: &[u8] = b"no component";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_object_that_loses_the_label_goes_back,
        immediate_takes_over_in_the_midst,
        immediate_has_a_version_take_over_that_was_taken_back,
        a_canary_goes_on_without_its_source,
        the_version_that_works_needs_no_source_that_loads,
        a_version_of_another_name_is_not_tried,
        a_plugin_that_is_made_anew_begins_with_what_its_source_has,
        a_kind_that_goes_and_comes_back_has_nothing_to_try_a_version_on,
        cluster_scoped_objects_belong_to_a_canary,
        edits_as_a_canary_begins_are_answered,
        suspended_objects_are_no_test,
        the_time_of_a_step_is_that_in_which_it_is_watched,
        a_digest_that_names_another_version_ends_it,
    );
}

async fn an_object_that_loses_the_label_goes_back(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"selector": {"matchLabels": {"wave": "one"}}, "seconds": LONG}])).await?;
    for name in ["web-0", "web-1"] {
        label(env, name, json!("one")).await?;
    }
    store(env, "web", &[&next()?]).await?;
    marked(env, 2).await?;
    label(env, "web-1", Value::Null).await?;
    ensure!(marked(env, 1).await? == set(["web-0"]), "another one went back");
    // And comes to it again, for its wave has begun.
    label(env, "web-1", json!("one")).await?;
    ensure!(marked(env, 2).await? == set(["web-0", "web-1"]), "others belong to it");
    Ok(())
}

/// What is asked for is then at work, and nothing takes over. Also where nobody has what is named.
async fn a_digest_that_names_another_version_ends_it(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    let nobody = format!("sha256:{}", "0".repeat(64));
    for (named, is_at_work) in [(sha256(&plugin()?), true), (nobody, false)] {
        marked(env, SHARE.1).await?;
        env.namespace.patch("Plugin", "web", json!({"spec": {"digest": named}})).await?;
        let is_over = |object: &Value| {
            let degraded = condition(object, "Degraded");
            object["status"]["rollout"].is_null()
                && degraded["reason"] == "DigestMismatch"
                && text(&degraded["message"]).contains("what is at work is what is asked for") == is_at_work
                && is_ready(object) == is_at_work
        };
        env.namespace.until("Plugin", "web", "to try nothing", is_over).await?;
        marked(env, 0).await?;
        // Were it tried still, it would take over now.
        set_steps(env, share_for(1)).await?;
        env.metrics_at_rest().await?;
        env.host.kill().await?;
        resume(env).await?;
        env.host.ready().await?;
        scale_all(env, if is_at_work { 4 } else { 5 }).await?;
        ensure!(marked(env, 0).await?.is_empty(), "it is tried");
        let object = env.namespace.until("Plugin", "web", "to try nothing still", is_over).await?;
        ensure!(object["status"]["version"] == "0.1.0", "it has taken over: {}", object["status"]);
        set_steps(env, share_for(LONG)).await?;
        env.namespace.patch("Plugin", "web", json!({"spec": {"digest": null}})).await?;
    }
    // It is what the source has all the time, and nothing is held against it.
    marked(env, SHARE.1).await.map(drop)
}

fn share_for(seconds: u32) -> Value {
    json!([{"objects": SHARE.1, "seconds": seconds}])
}

async fn immediate_takes_over_in_the_midst(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    marked(env, SHARE.1).await?;
    be_immediate(env).await?;
    marked(env, OBJECTS).await?;
    taken_over(env).await
}

async fn immediate_has_a_version_take_over_that_was_taken_back(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    store(env, "web", &[&std::fs::read(artifacts::guest("app-service-fails")?)?]).await?;
    stalled(env, "RolledBack").await?;
    be_immediate(env).await?;
    let is_over = |object: &Value| object["status"]["version"] == "0.3.0" && object["status"]["rollout"].is_null();
    let object = env.namespace.until("Plugin", "web", "to have the version for all", is_over).await?;
    ensure!(condition(&object, "Stalled").is_null() && is_ready(&object), "it is held against it: {object}");
    Ok(())
}

/// Neither a running host nor one that starts has it go to work less than before.
async fn a_canary_goes_on_without_its_source(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, SHARE.1).await?;
    env.namespace.delete("ConfigMap", "web").await?;
    let is_told = |object: &Value| goes_on(object, "ConfigMapMissing");
    let object = env.namespace.until("Plugin", "web", "to miss its source", is_told).await?;
    ensure!(object["status"]["rollout"]["phase"] == "Progressing", "the canary is over: {}", object["status"]);
    scale_all(env, 4).await?;
    ensure!(marked(env, SHARE.1).await? == chosen, "others belong to it");

    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    scale_all(env, 5).await?;
    ensure!(marked(env, SHARE.1).await? == chosen, "others belong to it after the restart");
    env.namespace.until("Plugin", "web", "to miss its source", is_told).await?;
    // It comes back, and so does the way on.
    store(env, "web", &[&next()?]).await?;
    let is_whole = |object: &Value| condition(object, "Degraded").is_null() && is_ready(object);
    env.namespace.until("Plugin", "web", "to have its source again", is_whole).await?;
    ensure!(in_step(env, 1).await?["status"]["rollout"]["objects"] == SHARE.1, "it began anew");
    be_immediate(env).await?;
    marked(env, OBJECTS).await.map(drop)
}

/// A host that starts goes on with it, whatever the source has by then.
async fn the_version_that_works_needs_no_source_that_loads(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    env.host.stop().await?;
    store(env, "web", &[GARBAGE]).await?;
    resume(env).await?;
    env.host.ready().await?;
    scale_all(env, 4).await?;
    let is_told = |object: &Value| goes_on(object, "NoPlugin");
    env.namespace.until("Plugin", "web", "to say what is wrong", is_told).await?;
    store(env, "web", &[&next()?]).await?;
    marked(env, SHARE.1).await.map(drop)
}

async fn a_version_of_another_name_is_not_tried(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    let renamed =
        repacked(&artifacts::guest("app-service-next")?, |manifest| manifest["name"] = "other".into()).await?;
    store(env, "web", &[&std::fs::read(renamed.path())?]).await?;
    let is_refused = |object: &Value| goes_on(object, "CanaryImpossible");
    let object = env.namespace.until("Plugin", "web", "to refuse it", is_refused).await?;
    ensure!(text(&condition(&object, "Loaded")["message"]).contains("Immediate"), "it does not help: {object}");
    env.host.stop().await?;
    resume(env).await?;
    env.host.ready().await?;
    scale_all(env, 4).await?;
    ensure!(marked(env, 0).await?.is_empty(), "it is tried by a host that starts");
    env.namespace.until("Plugin", "web", "to refuse it still", is_refused).await?;
    be_immediate(env).await?;
    marked(env, OBJECTS).await.map(drop)
}

/// The new `Plugin` knows of no version before: its first one takes over at once.
async fn a_plugin_that_is_made_anew_begins_with_what_its_source_has(env: &mut TestEnv) -> Result<()> {
    let steps = json!([{"objects": SHARE.1, "seconds": LONG}]);
    begin(env, steps.clone()).await?;
    store(env, "web", &[&next()?]).await?;
    marked(env, SHARE.1).await?;
    env.namespace.delete("Plugin", "web").await?;
    env.namespace.until_gone("Plugin", "web").await?;
    apply_plugin(env, steps).await?;
    marked(env, OBJECTS).await?;
    taken_over(env).await
}

/// Its objects go with the kind.
async fn a_kind_that_goes_and_comes_back_has_nothing_to_try_a_version_on(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    marked(env, SHARE.1).await?;
    env.namespace.delete("CustomResourceDefinition", "appservices.apps.example.com").await?;
    env.namespace.until_gone("CustomResourceDefinition", "appservices.apps.example.com").await?;
    let crd = artifacts::repository().join("crds/appservices.apps.example.com.yaml");
    install_crd(&env.namespace.client(), &crd).await?;
    taken_over(env).await?;
    works(env, "after").await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

/// Who may annotate objects must not be able to have a version take over that has stood no test.
async fn suspended_objects_are_no_test(env: &mut TestEnv) -> Result<()> {
    let steps = |seconds: u32| json!([{"selector": {"matchLabels": {"wave": "one"}}, "seconds": seconds}]);
    begin(env, steps(LONG)).await?;
    for name in ["web-0", "web-1"] {
        label(env, name, json!("one")).await?;
    }
    let all: Vec<_> = names().collect();
    for suspended in [&all[..2], &all] {
        set_steps(env, steps(LONG)).await?;
        store(env, "web", &[&next()?]).await?;
        marked(env, 2).await?;
        suspend(env, "AppService", suspended, json!("true")).await?;
        env.namespace.until("Plugin", "web", "to wait for an object", waits_for_an_object).await?;
        // Now its step is over.
        set_steps(env, steps(1)).await?;
        until_passed(jiff::Timestamp::now(), 3).await?;
        let object = env.namespace.get("Plugin", "web").await?.context("no Plugin")?;
        let has_waited = object["status"]["version"] == "0.1.0" && waits_for_an_object(&object);
        ensure!(has_waited, "it does not wait: {}", object["status"]);
        store(env, "web", &[&plugin()?]).await?;
        suspend(env, "AppService", suspended, Value::Null).await?;
        marked(env, 0).await?;
    }
    Ok(())
}

/// Nobody watches the objects of a plugin that is suspended.
async fn the_time_of_a_step_is_that_in_which_it_is_watched(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": 2, "seconds": 6}, {"objects": 3, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    in_step(env, 1).await?;
    let suspended = |suspended: bool| json!({"spec": {"suspended": suspended}});
    env.namespace.patch("Plugin", "web", suspended(true)).await?;
    let is_suspended = |object: &Value| condition(object, "Loaded")["reason"] == "Suspended";
    env.namespace.until("Plugin", "web", "to be suspended", is_suspended).await?;
    until_passed(jiff::Timestamp::now(), 6).await?;
    let resumed = jiff::Timestamp::now();
    env.namespace.patch("Plugin", "web", suspended(false)).await?;
    let second = in_step(env, 2).await?;
    let since: jiff::Timestamp = text(&second["status"]["rollout"]["since"]).parse()?;
    // Times in the status have whole seconds.
    let watched = since.duration_since(resumed);
    ensure!(watched >= jiff::SignedDuration::from_secs(5), "the step was over after {watched}: {}", second["status"]);
    Ok(())
}

/// Sets the steps, and waits until the host knows them.
pub async fn set_steps(env: &TestEnv, steps: Value) -> Result<()> {
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"steps": steps}}})).await?;
    let is_seen = |object: &Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
    env.namespace.until("Plugin", "web", "to be looked at", is_seen).await.map(drop)
}

/// Each child says which version wrote it.
async fn cluster_scoped_objects_belong_to_a_canary(env: &mut TestEnv) -> Result<()> {
    let crds = ["crds/plugins.pilothouse.dev.yaml", "tests/guests/scripted-cluster/crd.yaml"];
    env.move_to_api_server_with(&crds).await?;
    resume(env).await?;
    env.host.ready().await?;
    store(env, "web", &[&guest_version("scripted-cluster", "0.1.0", "ConfigMap").await?]).await?;
    apply_plugin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    apply_cluster_scoped(env, "first").await?;
    written_by(env, "first", 0).await?;
    env.namespace.until("Plugin", "web", "to be at work", |it| it["status"]["stableDigest"].is_string()).await?;
    settled(env, "ClusterScripted").await?;
    store(env, "web", &[&guest_version("scripted-cluster", "0.2.0", "ConfigMap").await?]).await?;
    ensure!(in_step(env, 1).await?["status"]["rollout"]["objects"] == SHARE.1, "other objects belong to it");
    // The status says it before the new version begins, and who is asked until then is the old one.
    env.host.logged(r#""plugin at work","plugin":"scripted-cluster","version":"0.2.0""#).await?;
    apply_cluster_scoped(env, "second").await?;
    let chosen = written_by(env, "second", SHARE.1).await?;
    env.host.kill().await?;
    resume(env).await?;
    apply_cluster_scoped(env, "third").await?;
    ensure!(written_by(env, "third", SHARE.1).await? == chosen, "others belong to it after the restart");
    Ok(())
}

/// Whichever version has begun with an object as the other one gets it, the last edit counts.
async fn edits_as_a_canary_begins_are_answered(env: &mut TestEnv) -> Result<()> {
    let crds = ["crds/plugins.pilothouse.dev.yaml", "tests/guests/scripted-cluster/crd.yaml"];
    env.move_to_api_server_with(&crds).await?;
    resume(env).await?;
    env.host.ready().await?;
    let old = guest_version("scripted-cluster", "0.1.0", "ConfigMap").await?;
    let new = guest_version("scripted-cluster", "0.2.0", "ConfigMap").await?;
    store(env, "web", &[&old]).await?;
    apply_plugin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    apply_cluster_scoped(env, "first").await?;
    written_by(env, "first", 0).await?;
    env.namespace.until("Plugin", "web", "to be at work", |it| it["status"]["stableDigest"].is_string()).await?;
    settled(env, "ClusterScripted").await?;
    for turn in 0..TURNS {
        store(env, "web", &[&new]).await?;
        let mut edit = 0;
        let mut edited = async |env: &TestEnv| {
            edit += 1;
            let text = format!("{turn}-{edit}");
            apply_cluster_scoped(env, &text).await.map(|()| text)
        };
        let begun = |plugin: &Value| plugin["status"]["rollout"]["phase"] == "Progressing";
        let last = loop {
            let text = edited(env).await?;
            if env.namespace.get("Plugin", "web").await?.is_some_and(|plugin| begun(&plugin)) {
                break text;
            }
        };
        written(env, &last).await?;
        eventually(PATIENCE, "the new version to answer its share", async || {
            let text = edited(env).await?;
            let by_second = written(env, &text).await?;
            Ok(Look::of(by_second.len() == SHARE.1, by_second))
        })
        .await?;
        store(env, "web", &[&old]).await?;
        env.namespace.until("Plugin", "web", "to take it back", |plugin| !begun(plugin)).await?;
    }
    Ok(())
}

/// Applies the objects, with children that have this text.
async fn apply_cluster_scoped(env: &TestEnv, written: &str) -> Result<()> {
    for name in names() {
        let mut child = config_map(&format!("child-{name}"), json!({"text": written}));
        child["metadata"]["namespace"] = env.namespace.name.clone().into();
        let spec = returning([child]);
        let metadata = json!({"name": name});
        let object = json!({"apiVersion": "test.pilothouse.dev/v1", "kind": "ClusterScripted", "metadata": metadata, "spec": spec});
        env.namespace.apply(object).await?;
    }
    Ok(())
}

/// Waits until all children have this text, and so many are of the second version. Returns their names.
async fn written_by(env: &TestEnv, text: &str, second: usize) -> Result<Vec<String>> {
    eventually(PATIENCE, &format!("{second} children with the text '{text}' by the second version"), async || {
        let (count, by_second) = children(env, text).await?;
        let is_so = count == OBJECTS && by_second.len() == second;
        Ok(if is_so { Look::Found(by_second) } else { Look::NotYet(format!("{count} {by_second:?}")) })
    })
    .await
}

/// Waits until all children have this text. Returns the names of those that the second version has written.
async fn written(env: &TestEnv, text: &str) -> Result<Vec<String>> {
    eventually(PATIENCE, &format!("children with the text '{text}'"), async || {
        let (count, by_second) = children(env, text).await?;
        Ok(if count == OBJECTS { Look::Found(by_second) } else { Look::NotYet(format!("{count}")) })
    })
    .await
}

/// How many children have this text, and the names of those that the second version has written.
async fn children(env: &TestEnv, written: &str) -> Result<(usize, Vec<String>)> {
    let maps = env.namespace.list("ConfigMap").await?;
    let children: Vec<_> = maps.iter().filter(|map| map["data"]["text"] == written).collect();
    let is_second = |map: &&&Value| map["metadata"]["annotations"]["pilothouse.dev/plugin-version"] == "0.2.0";
    let by_second = children.iter().filter(is_second).map(|map| text(&map["metadata"]["name"]).to_owned()).collect();
    Ok((children.len(), by_second))
}

/// Whether a `Plugin` says why its source gives nothing, and that the first version works all the same.
fn goes_on(plugin: &Value, reason: &str) -> bool {
    let degraded = condition(plugin, "Degraded");
    degraded["reason"] == reason
        && text(&degraded["message"]).ends_with("version 0.1.0 goes on")
        && condition(plugin, "Loaded")["reason"] == reason
        && plugin["status"]["version"] == "0.1.0"
}

async fn label(env: &TestEnv, name: &str, wave: Value) -> Result<()> {
    env.namespace.patch("AppService", name, json!({"metadata": {"labels": {"wave": wave}}})).await.map(drop)
}

/// Has a new version take over at once.
async fn be_immediate(env: &TestEnv) -> Result<()> {
    let rollout = json!({"strategy": "Immediate", "steps": null});
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": rollout}})).await.map(drop)
}

async fn scale_all(env: &TestEnv, replicas: u32) -> Result<()> {
    for name in names() {
        env.namespace.patch("AppService", &name, json!({"spec": {"replicas": replicas}})).await?;
    }
    for name in names() {
        let scaled = |deployment: &Value| deployment["spec"]["replicas"] == replicas;
        env.namespace.until("Deployment", &name, "to be scaled", scaled).await?;
    }
    Ok(())
}
