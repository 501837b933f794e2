//! Two versions of a plugin whose configurations exclude each other: the manifest of each has a schema that refuses what the other one needs.
//! While the new one is tried or held, or was taken back, each has its own. A child shows the configuration that it was made with.

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
    canary::{LONG, in_step, lead_with_standby, settled},
    command::repacked,
    plugin_objects::{plugin_object, resume, sha256, start, store, text},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready, misbehaver},
};

/// How many objects there are, and how many of them a canary gets.
const OBJECTS: usize = 4;

/// The configuration of the first version, and that of the next one.
const OLD: &str = r#"{"colour":"red"}"#;
const NEXT: &str = r#"{"shade":"dark"}"#;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_new_version_that_refuses_the_configuration_touches_no_object,
        a_canary_with_a_configuration_of_its_own,
        a_version_that_is_taken_back_takes_its_configuration_with_it,
        an_approval_is_of_the_configuration_too,
        another_leader_knows_the_configuration_that_works,
        a_configuration_that_fits_nobody_stops_nobody,
        a_pinned_version_keeps_the_configuration_that_it_takes,
        a_host_that_starts_goes_on_with_the_configuration_that_fitted,
    );
}

/// The configuration follows later, in a change of its own.
async fn a_new_version_that_refuses_the_configuration_touches_no_object(env: &mut TestEnv) -> Result<()> {
    begin(env, canary(LONG)).await?;
    store(env, "web", &[&next().await?]).await?;
    let invalid = |object: &Value| condition(object, "Loaded")["reason"] == "ConfigInvalid";
    let object = env.namespace.until("Plugin", "web", "to refuse the configuration", invalid).await?;
    let message = text(&condition(&object, "Degraded")["message"]);
    let words = ["(version 0.2.0)", "colour", "version 0.1.0 goes on"];
    ensure!(words.iter().all(|word| message.contains(word)), "{message}");
    ensure!(object["status"]["rollout"].is_null(), "it is tried: {object}");
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    each_is_made_anew(env, &BTreeSet::new()).await?;
    env.namespace.patch("Plugin", "web", changed_config(NEXT)).await?;
    in_step(env, 1).await?;
    answered_by_next(env, 1).await.map(drop)
}

/// Both come in one change, as from a repository. A host that is killed in the midst goes on with both.
async fn a_canary_with_a_configuration_of_its_own(env: &mut TestEnv) -> Result<()> {
    begin(env, canary(LONG)).await?;
    change(env, NEXT).await?;
    let object = in_step(env, 1).await?;
    let message = text(&condition(&object, "Reconciling")["message"]);
    ensure!(message.contains("keeps the configuration"), "it is not told: {message}");
    let kept = json!({"digest": sha256(&old().await?), "config": OLD});
    ensure!(object["status"]["stableConfig"] == kept, "{}", object["status"]);
    let chosen = answered_by_next(env, 1).await?;
    each_is_made_anew(env, &chosen).await?;
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    each_is_made_anew(env, &chosen).await?;
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": canary(1)}})).await?;
    answered_by_next(env, OBJECTS).await?;
    let is_over = |object: &Value| {
        let status = &object["status"];
        let is_stable = status["version"] == "0.2.0" && status["stableConfig"]["config"] == NEXT;
        is_stable && status["rollout"].is_null() && is_ready(object)
    };
    env.namespace.until("Plugin", "web", "to have the new version for all", is_over).await.map(drop)
}

/// The version before works on with the configuration before, also in a host that starts; and gets another one with its own source.
async fn a_version_that_is_taken_back_takes_its_configuration_with_it(env: &mut TestEnv) -> Result<()> {
    begin(env, canary(LONG)).await?;
    change(env, NEXT).await?;
    let chosen = answered_by_next(env, 1).await?;
    let failing = chosen.first().context("no object")?;
    env.namespace.patch("Misbehaver", failing, json!({"spec": {"act": "invalid"}})).await?;
    let taken_back = |object: &Value| condition(object, "Stalled")["reason"] == "RolledBack";
    let object = env.namespace.until("Plugin", "web", "to take it back", taken_back).await?;
    let message = text(&condition(&object, "Degraded")["message"]);
    ensure!(message.ends_with("version 0.1.0 goes on with the configuration that it had"), "{message}");
    env.namespace.patch("Misbehaver", failing, json!({"spec": {"act": "config"}})).await?;
    answered_by_next(env, 0).await?;
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    each_is_made_anew(env, &BTreeSet::new()).await?;
    let mut back = changed_config(r#"{"colour":"green"}"#);
    back["spec"]["source"] = json!({"configMap": {"name": "web"}});
    env.namespace.patch("Plugin", "web", back).await?;
    shown(env, OBJECTS, "green").await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

/// What is approved is a version with its configuration. Until then neither reaches an object.
async fn an_approval_is_of_the_configuration_too(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({"plan": "Require", "approved": sha256(&old().await?)})).await?;
    change(env, NEXT).await?;
    let waits = |object: &Value| object["status"]["plan"]["state"] == "AwaitingApproval";
    let object = env.namespace.until("Plugin", "web", "to wait for approval", waits).await?;
    ensure!(object["status"]["plan"]["summary"]["objects"]["changed"] == OBJECTS, "{}", object["status"]["plan"]);
    let message = text(&condition(&object, "Reconciling")["message"]);
    ensure!(message.contains("keeps the configuration"), "it is not told: {message}");
    each_is_made_anew(env, &BTreeSet::new()).await?;
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    each_is_made_anew(env, &BTreeSet::new()).await?;
    let approved = json!({"spec": {"rollout": {"approved": sha256(&next().await?)}}});
    env.namespace.patch("Plugin", "web", approved).await?;
    answered_by_next(env, OBJECTS).await.map(drop)
}

async fn another_leader_knows_the_configuration_that_works(env: &mut TestEnv) -> Result<()> {
    begin(env, canary(LONG)).await?;
    let mut second: Host = lead_with_standby(env).await?;
    change(env, NEXT).await?;
    let chosen = answered_by_next(env, 1).await?;
    second.logged(r#""version":"0.2.0""#).await?;
    env.host.kill().await?;
    second.logged("this host leads").await?;
    each_is_made_anew(env, &chosen).await?;
    second.stop().await
}

/// In the midst of a canary, also for a host that starts; but that one cannot know what the new version had, and its objects wait.
async fn a_configuration_that_fits_nobody_stops_nobody(env: &mut TestEnv) -> Result<()> {
    begin(env, canary(LONG)).await?;
    change(env, NEXT).await?;
    let chosen = answered_by_next(env, 1).await?;
    let fits_nobody = json!({"spec": {"config": {"colour": "red", "shade": "dark"}}});
    env.namespace.patch("Plugin", "web", fits_nobody).await?;
    let invalid = |object: &Value| condition(object, "Loaded")["reason"] == "ConfigInvalid";
    env.namespace.until("Plugin", "web", "to refuse the configuration", invalid).await?;
    each_is_made_anew(env, &chosen).await?;
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    for name in names().filter(|name| !chosen.contains(name)) {
        is_made_anew(env, &name, OLD).await?;
    }
    let waiting = chosen.first().context("no object")?;
    env.namespace.delete("ConfigMap", waiting).await?;
    env.metrics_at_rest().await?;
    ensure!(env.namespace.get("ConfigMap", waiting).await?.is_none(), "a version answers that has no configuration");
    env.namespace.patch("Plugin", "web", json!({"spec": {"config": {"colour": null}}})).await?;
    let is_there = |child: &Value| text(&child["data"]["config"]) == NEXT;
    env.namespace.until("ConfigMap", waiting, "to be there again", is_there).await?;
    each_is_made_anew(env, &chosen).await
}

/// While it does not take the present one, that is told.
async fn a_pinned_version_keeps_the_configuration_that_it_takes(env: &mut TestEnv) -> Result<()> {
    let pin = json!([{"namespace": env.namespace.name, "name": "web-0", "digest": sha256(&old().await?)}]);
    begin(env, json!({"pins": pin, "strategy": "Canary", "steps": [{"percent": 100, "seconds": 1}]})).await?;
    change(env, NEXT).await?;
    let invalid = |object: &Value| {
        object["status"]["version"] == "0.2.0" && condition(object, "Loaded")["reason"] == "ConfigInvalid"
    };
    let object = env.namespace.until("Plugin", "web", "to tell of the pinned version", invalid).await?;
    let message = text(&condition(&object, "Loaded")["message"]);
    ensure!(message.contains("(version 0.1.0)") && message.contains("shade"), "{message}");
    let others: BTreeSet<_> = names().filter(|name| name != "web-0").collect();
    ensure!(answered_by_next(env, OBJECTS - 1).await? == others, "the pinned one is answered by the new version");
    each_is_made_anew(env, &others).await?;
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"pins": null}}})).await?;
    answered_by_next(env, OBJECTS).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

/// One version, and a configuration that does not fit it.
async fn a_host_that_starts_goes_on_with_the_configuration_that_fitted(env: &mut TestEnv) -> Result<()> {
    begin(env, canary(LONG)).await?;
    env.namespace.patch("Plugin", "web", changed_config(NEXT)).await?;
    let invalid = |object: &Value| condition(object, "Loaded")["reason"] == "ConfigInvalid";
    env.namespace.until("Plugin", "web", "to refuse the configuration", invalid).await?;
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    each_is_made_anew(env, &BTreeSet::new()).await
}

/// The first version with its objects and its configuration.
async fn begin(env: &mut TestEnv, rollout: Value) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&old().await?]).await?;
    let config: Value = serde_json::from_str(OLD)?;
    let spec = json!({"source": {"configMap": {"name": "web"}}, "config": config, "rollout": rollout});
    env.namespace.apply(plugin_object("web", spec)).await?;
    for name in names() {
        env.namespace.apply(misbehaver(&name, "config")).await?;
    }
    shown(env, OBJECTS, OLD).await?;
    let counted = |object: &Value| is_ready(object) && object["status"]["stableConfig"].is_object();
    env.namespace.until("Plugin", "web", "to be at work", counted).await?;
    settled(env, "Misbehaver").await?;
    env.metrics_at_rest().await.map(drop)
}

/// Another version and another configuration in one change.
async fn change(env: &TestEnv, config: &str) -> Result<()> {
    store(env, "next", &[&next().await?]).await?;
    let mut patch = changed_config(config);
    patch["spec"]["source"] = json!({"configMap": {"name": "next"}});
    env.namespace.patch("Plugin", "web", patch).await.map(drop)
}

/// A merge patch that replaces the configuration, of which it has to name what is to go.
fn changed_config(config: &str) -> Value {
    let mut fields = json!({"colour": null, "shade": null});
    let wanted: Value = serde_json::from_str(config).unwrap_or_default();
    for (field, value) in wanted.as_object().into_iter().flatten() {
        fields[field] = value.clone();
    }
    json!({"spec": {"config": fields}})
}

fn canary(seconds: u32) -> Value {
    json!({"strategy": "Canary", "steps": [{"objects": 1, "seconds": seconds}]})
}

async fn old() -> Result<Vec<u8>> {
    needing("0.1.0", "colour").await
}

async fn next() -> Result<Vec<u8>> {
    needing("0.2.0", "shade").await
}

/// A version of the plugin that needs one field in its configuration, and takes no other one.
async fn needing(version: &str, field: &str) -> Result<Vec<u8>> {
    let schema = json!({
        "type": "object", "required": [field], "properties": {field: {"type": "string"}}, "additionalProperties": false,
    });
    let packed = repacked(&artifacts::guest("misbehaver")?, |manifest| {
        manifest["version"] = version.into();
        manifest["configSchema"] = schema;
    })
    .await?;
    Ok(std::fs::read(packed.path())?)
}

fn names() -> impl Iterator<Item = String> {
    (0..OBJECTS).map(|number| format!("web-{number}"))
}

/// Waits until this many children show the configuration of the next version, and says whose; all others show that of the first one.
async fn answered_by_next(env: &TestEnv, count: usize) -> Result<BTreeSet<String>> {
    shown(env, OBJECTS - count, OLD).await?;
    shown(env, count, NEXT).await
}

/// Waits until this many children show a configuration with these words, and says whose.
async fn shown(env: &TestEnv, count: usize, words: &str) -> Result<BTreeSet<String>> {
    eventually(PATIENCE, &format!("{count} children to show {words}"), async || {
        let children: Vec<_> =
            env.namespace.list("ConfigMap").await?.into_iter().filter(|it| !it["data"]["config"].is_null()).collect();
        let is_it = |child: &&Value| text(&child["data"]["config"]).contains(words);
        let found = children.iter().filter(is_it).map(|it| text(&it["metadata"]["name"]).to_owned());
        let found: BTreeSet<_> = found.collect();
        Ok(if found.len() == count { Look::Found(found) } else { Look::NotYet(format!("{children:?}")) })
    })
    .await
}

/// Deletes all children, and waits until each is there again with the configuration of the version that answers its object.
async fn each_is_made_anew(env: &TestEnv, by_next: &BTreeSet<String>) -> Result<()> {
    for name in names() {
        let config = if by_next.contains(&name) { NEXT } else { OLD };
        is_made_anew(env, &name, config).await?;
    }
    Ok(())
}

async fn is_made_anew(env: &TestEnv, name: &str, config: &str) -> Result<()> {
    let before = env.namespace.get("ConfigMap", name).await?.context("no child")?;
    env.namespace.delete("ConfigMap", name).await?;
    let is_anew = |child: &Value| child["metadata"]["uid"] != before["metadata"]["uid"];
    let anew = env.namespace.until("ConfigMap", name, "to be made anew", is_anew).await?;
    ensure!(text(&anew["data"]["config"]) == config, "{name} is made with {}", anew["data"]);
    Ok(())
}
