//! Two versions of a plugin whose configurations exclude each other: the manifest of each has a schema that refuses what the other one needs.
//! While the new one is tried or held, or was taken back, each has its own. A child shows the configuration that it was made with.

use std::{collections::BTreeSet, ffi::OsString, path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition},
    host::Host,
    proxy::Proxy,
    registry::Registry,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    canary::{LONG, in_step, lead_with_standby, settled, until_passed},
    command::{Ended, pilothouse, repacked},
    plugin_objects::{plugin_object, resume, sha256, start, store, text},
    registries::source,
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready, misbehaver},
};

/// How many objects there are, and how many of them a canary gets.
const OBJECTS: usize = 4;

/// The configuration of the first version, and that of the next one.
const OLD: &str = r#"{"colour":"red"}"#;
const NEXT: &str = r#"{"shade":"dark"}"#;

/// For how long an approval is under way that comes too late.
const READING: Duration = Duration::from_secs(10);

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
        a_canary_ends_when_the_source_has_another_version_that_is_refused,
        an_edit_in_the_midst_begins_the_step_anew,
        an_edit_begins_the_step_anew_for_the_next_leader_too,
        what_nobody_was_shown_is_not_approved,
        a_version_that_leaves_its_source_no_longer_waits,
        a_version_waits_on_while_its_source_is_away,
        a_pin_to_a_version_that_refuses_the_configuration_stops_nobody,
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
    let invalid = |object: &Value| object["status"]["version"] == "0.2.0" && tells_of_the_pinned_one(object);
    env.namespace.until("Plugin", "web", "to tell of the pinned version", invalid).await?;
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

/// By hand, with a change of the source alone; a third version; and while no host runs. Its objects go back, and nothing takes over.
async fn a_canary_ends_when_the_source_has_another_version_that_is_refused(env: &mut TestEnv) -> Result<()> {
    begin(env, canary(LONG)).await?;
    store(env, "third", &[&needing("0.3.0", "colour").await?]).await?;
    for (source, number, is_down) in [("web", "0.1.0", false), ("third", "0.3.0", false), ("web", "0.1.0", true)] {
        change(env, NEXT).await?;
        in_step(env, 1).await?;
        answered_by_next(env, 1).await?;
        if is_down {
            env.host.stop().await?;
        }
        set_source(env, source).await?;
        if is_down {
            resume(env).await?;
        }
        let is_over = |object: &Value| {
            let (status, loaded) = (&object["status"], condition(object, "Loaded"));
            status["rollout"].is_null()
                && status["newVersion"].is_null()
                && loaded["reason"] == "ConfigInvalid"
                && text(&loaded["message"]).contains(&format!("(version {number})"))
        };
        env.namespace.until("Plugin", "web", "to try nothing", is_over).await?;
        answered_by_next(env, 0).await?;
        // Were it tried still, it would take over now.
        env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": canary(1)}})).await?;
        env.metrics_at_rest().await?;
        let object = observed(env).await?;
        ensure!(object["status"]["version"] == "0.1.0" && is_over(&object), "{source}: {}", object["status"]);
        each_is_made_anew(env, &BTreeSet::new()).await?;
        env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": canary(LONG)}})).await?;
    }
    // What it is given last fits, and there is nothing to try.
    env.namespace.patch("Plugin", "web", changed_config(OLD)).await?;
    let is_well = |object: &Value| object["status"]["rollout"].is_null() && is_ready(object);
    env.namespace.until("Plugin", "web", "to have what works", is_well).await.map(drop)
}

/// A version is watched with each configuration for all the seconds of a step.
async fn an_edit_in_the_midst_begins_the_step_anew(env: &mut TestEnv) -> Result<()> {
    const SECONDS: u32 = 15;
    begin(env, canary(SECONDS)).await?;
    change(env, NEXT).await?;
    let first = step_since(&in_step(env, 1).await?)?;
    until_passed(first, 4).await?;
    env.namespace.patch("Plugin", "web", changed_config(r#"{"shade":"light"}"#)).await?;
    let anew = watched_with(env, r#"{"shade":"light"}"#).await?;
    ensure!(anew["status"]["version"] == "0.1.0" && anew["status"]["rollout"]["step"] == 1, "{}", anew["status"]);
    let since = step_since(&anew)?;
    ensure!(since.duration_since(first).as_secs() >= 4, "it does not begin anew: {since}, after {first}");
    shown(env, OBJECTS, "light").await?;
    let is_over = |object: &Value| object["status"]["version"] == "0.2.0" && object["status"]["rollout"].is_null();
    let over = env.namespace.until("Plugin", "web", "to have the new version for all", is_over).await?;
    let swapped: jiff::Timestamp = text(&over["status"]["lastSwapTime"]).parse()?;
    let lasted = swapped.duration_since(since).as_secs();
    // Both times are whole seconds.
    ensure!(lasted >= i64::from(SECONDS) - 1, "the second configuration was watched for {lasted} s");
    Ok(())
}

/// Neither a host that starts nor another leader takes what was watched before for what works now.
async fn an_edit_begins_the_step_anew_for_the_next_leader_too(env: &mut TestEnv) -> Result<()> {
    begin(env, canary(LONG)).await?;
    change(env, NEXT).await?;
    let first = step_since(&watched_with(env, NEXT).await?)?;
    until_passed(first, 2).await?;
    env.host.kill().await?;
    env.namespace.patch("Plugin", "web", changed_config(r#"{"shade":"light"}"#)).await?;
    resume(env).await?;
    let second = step_since(&watched_with(env, r#"{"shade":"light"}"#).await?)?;
    ensure!(second > first, "it does not begin anew for a host that starts");
    let mut standby: Host = lead_with_standby(env).await?;
    let same = step_since(&watched_with(env, r#"{"shade":"light"}"#).await?)?;
    ensure!(same == second, "it begins anew without an edit");
    until_passed(second, 2).await?;
    env.host.kill().await?;
    env.namespace.patch("Plugin", "web", changed_config(NEXT)).await?;
    standby.logged("this host leads").await?;
    let third = step_since(&watched_with(env, NEXT).await?)?;
    ensure!(third > second, "it does not begin anew for another leader");
    answered_by_next(env, 1).await?;
    standby.stop().await
}

/// Neither a configuration that is edited while somebody reads a plan, nor one that is edited in the midst of what is approved.
async fn what_nobody_was_shown_is_not_approved(env: &mut TestEnv) -> Result<()> {
    let mut rollout = canary(LONG);
    (rollout["plan"], rollout["approved"]) = ("Require".into(), sha256(&old().await?).into());
    begin(env, rollout).await?;
    change(env, NEXT).await?;
    let shown_first = waits(env).await?;
    let proxy = Proxy::start(env.upstream().await?, &env.namespace.name).await?;
    proxy.faults().delay(Method::PATCH, "plugins", READING);
    let reader = tokio::spawn(pilothouse(approval(proxy.kubeconfig())));
    eventually(PATIENCE, "the approval to be under way", async || {
        let seen = proxy.writes().seen();
        Ok(Look::of(!seen.is_empty(), seen))
    })
    .await?;
    env.namespace.patch("Plugin", "web", changed_config(r#"{"shade":"light"}"#)).await?;
    let anew = waits(env).await?;
    let digest = |object: &Value| text(&object["status"]["plan"]["configDigest"]).to_owned();
    ensure!(digest(&anew) != digest(&shown_first), "one digest for two configurations: {}", anew["status"]["plan"]);
    reader.await??.failed_with(&["changed the Plugin 'web'", "pilothouse approve web"])?;
    let object = observed(env).await?;
    ensure!(object["spec"]["rollout"]["approved"] == sha256(&old().await?), "{}", object["spec"]["rollout"]);

    approve(env).await?.succeeded()?;
    shown(env, 1, "light").await?;
    let object = in_step(env, 1).await?;
    ensure!(object["spec"]["rollout"]["approvedConfig"] == digest(&anew), "{}", object["spec"]["rollout"]);
    ensure!(object["status"]["plan"]["state"] == "Approved", "{}", object["status"]["plan"]);

    env.namespace.patch("Plugin", "web", changed_config(NEXT)).await?;
    let held = waits(env).await?;
    ensure!(held["status"]["rollout"].is_null(), "it is tried still: {}", held["status"]);
    let message = text(&condition(&held, "Reconciling")["message"]);
    ensure!(message.contains("approved with another configuration"), "it does not say why: {message}");
    shown(env, OBJECTS, OLD).await?;
    approve(env).await?.succeeded()?;
    answered_by_next(env, 1).await?;

    // One that it does not take is not the approved one either.
    env.namespace.patch("Plugin", "web", json!({"spec": {"config": {"colour": "red"}}})).await?;
    let is_refused = |object: &Value| {
        let status = &object["status"];
        condition(object, "Loaded")["reason"] == "ConfigInvalid"
            && ["rollout", "plan", "newVersion"].iter().all(|field| status[*field].is_null())
    };
    env.namespace.until("Plugin", "web", "to refuse the configuration", is_refused).await?;
    shown(env, OBJECTS, OLD).await?;
    approve(env).await?.failed_with(&["no version of 'web' waits for approval", "ConfigInvalid"])
}

/// It went back, it is gone, or another one is named: nobody can approve it for whenever it comes again.
async fn a_version_that_leaves_its_source_no_longer_waits(env: &mut TestEnv) -> Result<()> {
    let first = sha256(&old().await?);
    begin(env, json!({"plan": "Require", "approved": first})).await?;
    for (what, spec, reason) in [
        ("it went back", json!({"source": {"configMap": {"name": "web"}}}), "ConfigInvalid"),
        ("it is gone", json!({"source": {"configMap": {"name": "nowhere"}}}), "ConfigMapMissing"),
        ("another one is named", json!({"digest": first}), "ConfigInvalid"),
    ] {
        change(env, NEXT).await?;
        waits(env).await?;
        env.namespace.patch("Plugin", "web", json!({"spec": spec})).await?;
        let waits_no_more = |object: &Value| {
            object["status"]["plan"].is_null()
                && object["status"]["newVersion"].is_null()
                && condition(object, "Degraded")["reason"] == reason
        };
        env.namespace.until("Plugin", "web", &format!("to hold nothing: {what}"), waits_no_more).await?;
        approve(env).await?.failed_with(&["no version of 'web' waits for approval", reason])?;
        each_is_made_anew(env, &BTreeSet::new()).await?;
        env.namespace.patch("Plugin", "web", json!({"spec": {"digest": null}})).await?;
    }
    Ok(())
}

/// A registry that does not answer says nothing. But nobody approves what it would be now.
async fn a_version_waits_on_while_its_source_is_away(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({"plan": "Require", "approved": sha256(&old().await?)})).await?;
    change(env, NEXT).await?;
    waits(env).await?;
    let mut registry = Registry::start(false).await?;
    registry.stop().await?;
    let mut away = source(&registry, "web:latest");
    away["source"]["configMap"] = Value::Null;
    env.namespace.patch("Plugin", "web", json!({"spec": away})).await?;
    let is_told = |object: &Value| condition(object, "Loaded")["reason"] == "RegistryUnavailable";
    let object = env.namespace.until("Plugin", "web", "to miss the registry", is_told).await?;
    let status = &object["status"];
    ensure!(status["newVersion"] == "AwaitingApproval" && status["plan"]["state"] == "AwaitingApproval", "{status}");
    approve(env).await?.failed_with(&["an earlier state of 'web'", "RegistryUnavailable"])?;
    let back = json!({"spec": {"source": {"oci": null, "configMap": {"name": "next"}}}});
    env.namespace.patch("Plugin", "web", back).await?;
    waits(env).await?;
    approve(env).await?.succeeded()?;
    answered_by_next(env, OBJECTS).await.map(drop)
}

/// With any strategy, for a new version and for a change of the configuration alone.
async fn a_pin_to_a_version_that_refuses_the_configuration_stops_nobody(env: &mut TestEnv) -> Result<()> {
    let pin = json!([{"namespace": env.namespace.name, "name": "web-0", "digest": sha256(&old().await?)}]);
    begin(env, json!({"pins": pin, "strategy": "Immediate"})).await?;
    change(env, NEXT).await?;
    let others: BTreeSet<_> = names().filter(|name| name != "web-0").collect();
    ensure!(answered_by_next(env, OBJECTS - 1).await? == others, "the pinned one is answered by the new version");
    let is_told = |object: &Value| object["status"]["version"] == "0.2.0" && tells_of_the_pinned_one(object);
    env.namespace.until("Plugin", "web", "to tell of the pinned version", is_told).await?;
    each_is_made_anew(env, &others).await?;
    env.namespace.patch("Plugin", "web", changed_config(r#"{"shade":"light"}"#)).await?;
    shown(env, OBJECTS - 1, "light").await?;
    is_made_anew(env, "web-0", OLD).await?;
    env.namespace.until("Plugin", "web", "to tell of the pinned version still", is_told).await?;

    // Which configuration it had is not known to a host that starts: its objects stay as they are.
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    let is_left_out = |object: &Value| {
        is_told(object) && text(&condition(object, "Degraded")["message"]).contains("stay as they are")
    };
    env.namespace.until("Plugin", "web", "to say that it is not loaded", is_left_out).await?;
    env.namespace.delete("ConfigMap", "web-0").await?;
    for name in &others {
        is_made_anew(env, name, r#"{"shade":"light"}"#).await?;
    }
    env.metrics_at_rest().await?;
    ensure!(env.namespace.get("ConfigMap", "web-0").await?.is_none(), "a version answers that has no configuration");
    Ok(())
}

/// Whether a `Plugin` is at work but for the pinned version, which does not take the configuration.
fn tells_of_the_pinned_one(object: &Value) -> bool {
    let degraded = condition(object, "Degraded");
    let words = ["(version 0.1.0)", "shade"];
    degraded["reason"] == "ConfigInvalid"
        && words.iter().all(|word| text(&degraded["message"]).contains(word))
        && condition(object, "Loaded")["status"] == "True"
        && is_ready(object)
}

/// Waits until the new version is watched with this configuration.
async fn watched_with(env: &TestEnv, config: &str) -> Result<Value> {
    let digest = sha256(config.as_bytes());
    let is_it = |object: &Value| object["status"]["rollout"]["configDigest"] == digest;
    env.namespace.until("Plugin", "web", &format!("to be watched with {config}"), is_it).await
}

fn step_since(object: &Value) -> Result<jiff::Timestamp> {
    Ok(text(&object["status"]["rollout"]["since"]).parse()?)
}

/// Waits until the host has looked at the `Plugin` as it is.
async fn observed(env: &TestEnv) -> Result<Value> {
    let is_it = |object: &Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
    env.namespace.until("Plugin", "web", "to be looked at", is_it).await
}

/// Waits until a version waits for approval with a plan of what is asked for now.
async fn waits(env: &TestEnv) -> Result<Value> {
    let is_it = |object: &Value| {
        let (plan, generation) = (&object["status"]["plan"], &object["metadata"]["generation"]);
        plan["state"] == "AwaitingApproval" && plan["observedGeneration"] == *generation
    };
    env.namespace.until("Plugin", "web", "to wait for approval", is_it).await
}

async fn approve(env: &TestEnv) -> Result<Ended> {
    pilothouse(approval(env.namespace.setup().kubeconfig)).await
}

fn approval(kubeconfig: PathBuf) -> Vec<OsString> {
    vec!["approve".into(), "web".into(), "--yes".into(), "--kubeconfig".into(), kubeconfig.into()]
}

async fn set_source(env: &TestEnv, name: &str) -> Result<()> {
    env.namespace.patch("Plugin", "web", json!({"spec": {"source": {"configMap": {"name": name}}}})).await.map(drop)
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
