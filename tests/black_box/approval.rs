//! A new version of a plugin is held until somebody approves the plan that the status of its `Plugin` shows.

use std::{ffi::OsString, path::PathBuf};

use anyhow::{Context, Result, ensure};
use axum::http::StatusCode;
use pilothouse_tests::{
    artifacts,
    cluster::{HOST_USER, condition},
    proxy::{Moment, Proxy},
};
use serde_json::{Value, json};

use crate::{
    canary::{is_marked, lead_with_standby, marked, settled},
    command::{Ended, pilothouse, repacked},
    plugin_objects::{
        install_by_command, next, plugin, plugin_object, resume, sha256, start, store, text, told, works,
    },
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready},
};

/// The number of objects.
const OBJECTS: usize = 3;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_new_version_is_held_until_it_is_approved,
        the_first_version_of_all_needs_an_approval_too,
        a_host_that_starts_holds_what_nobody_has_approved,
        of_two_new_versions_only_the_approved_one_takes_over,
        an_approval_that_comes_late_takes_no_other_one_back,
        an_approved_version_is_tried_in_a_canary,
        a_plan_after_a_canary_is_about_all_objects,
        another_leader_knows_the_plan,
        a_plan_that_fails_is_told_and_can_be_overruled,
        a_version_of_another_kind_is_held_too,
        install_says_that_a_version_waits,
        a_version_whose_kind_is_taken_says_so_while_it_waits,
    );
}

async fn a_new_version_is_held_until_it_is_approved(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({})).await?;
    let before = env.writes_of(HOST_USER).await?.len();
    store(env, "web", &[&next()?]).await?;
    let digest = sha256(&next()?);
    let waiting = planned(env, &digest).await?;
    let plan = &waiting["status"]["plan"];
    let objects = &plan["summary"]["objects"];
    ensure!(plan["version"] == "0.2.0" && objects["changed"] == OBJECTS && objects["inError"] == 0, "{plan}");
    let lines: Vec<_> = plan["summary"]["lines"].as_array().into_iter().flatten().map(text).collect();
    let object = format!("~ {}/web-0", env.namespace.name);
    ensure!(lines.first() == Some(&&*object), "{lines:?}");
    let is_told = |line: &&str| line.contains("~ Deployment web-0: ") && line.contains("apps.example.com~1revision");
    ensure!(lines.iter().any(is_told), "{lines:?}");
    let reconciling = condition(&waiting, "Reconciling");
    let command = format!("pilothouse approve web --digest {digest}");
    ensure!(reconciling["reason"] == "AwaitingApproval" && is_ready(&waiting), "{waiting}");
    ensure!(text(&reconciling["message"]).contains(&command), "{reconciling}");
    told(env, &[("Normal", "AwaitingApproval", &command)]).await?;
    // The version that works goes on, and nothing else has happened.
    scale(env, "web-0", 5).await?;
    ensure!(marked(env, 0).await?.is_empty(), "the new version works");
    let writes = env.writes_of(HOST_USER).await?;
    let of_others = |write: &&String| write.contains("web-1") || write.contains("web-2");
    let writes: Vec<_> = writes.iter().skip(before).filter(of_others).collect();
    ensure!(writes.is_empty(), "the plan wrote: {writes:?}");

    let other = format!("sha256:{}", "0".repeat(64));
    set_approved(env, &other).await?;
    planned(env, &digest).await?;
    ensure!(marked(env, 0).await?.is_empty(), "an approval of another version counts");
    approve(env, &["--yes", "--digest", &other]).await?.failed_with(&[&digest, &other])?;
    approve(env, &[]).await?.failed_with(&["--yes"])?;
    let approved = approve(env, &["--yes", "--digest", &digest]).await?;
    ensure!(approved.output.contains("~ Deployment web-0") && approved.output.contains("3 changed"), "{approved:?}");
    approved.succeeded()?;
    marked(env, OBJECTS).await?;
    let is_over =
        |object: &Value| object["status"]["plan"]["state"] == "Approved" && condition(object, "Reconciling").is_null();
    env.namespace.until("Plugin", "web", "to have an approved plan", is_over).await?;
    told(env, &[("Normal", "Approved", &digest)]).await?;
    approve(env, &["--yes"]).await?.failed_with(&["no version of 'web' waits"])
}

async fn the_first_version_of_all_needs_an_approval_too(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    let spec =
        json!({"source": {"configMap": {"name": "web"}}, "digest": sha256(&plugin()?), "rollout": {"plan": "Require"}});
    env.namespace.apply(plugin_object("web", spec)).await?;
    env.namespace.apply(app("shop")).await?;
    let waiting = planned(env, &sha256(&plugin()?)).await?;
    ensure!(condition(&waiting, "Ready")["reason"] == "AwaitingApproval" && !is_ready(&waiting), "{waiting}");
    let counted = |object: &Value| object["status"]["plan"]["summary"]["children"]["created"] == 2;
    ensure!(counted(&waiting), "it would create a Deployment and a Service: {waiting}");
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    planned(env, &sha256(&plugin()?)).await?;
    ensure!(env.namespace.list("Deployment").await?.is_empty(), "it works though nobody has approved it");
    approve(env, &["--yes"]).await?.succeeded()?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await.map(drop)
}

async fn a_host_that_starts_holds_what_nobody_has_approved(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({})).await?;
    env.host.stop().await?;
    store(env, "web", &[&next()?]).await?;
    resume(env).await?;
    env.host.ready().await?;
    planned(env, &sha256(&next()?)).await?;
    for name in names() {
        scale(env, &name, 4).await?;
    }
    ensure!(marked(env, 0).await?.is_empty(), "it works though nobody has approved it");
    set_approved(env, &sha256(&next()?)).await?;
    marked(env, OBJECTS).await?;
    // An approval can be given ahead of the version, and the version at work needs none.
    set_approved(env, &sha256(&plugin()?)).await?;
    env.metrics_at_rest().await?;
    ensure!(marked(env, OBJECTS).await?.len() == OBJECTS, "the version at work is taken from it");
    store(env, "web", &[&plugin()?]).await?;
    marked(env, 0).await.map(drop)
}

async fn of_two_new_versions_only_the_approved_one_takes_over(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({})).await?;
    store(env, "web", &[&next()?]).await?;
    let (first, third) = (sha256(&next()?), third().await?);
    planned(env, &first).await?;
    store(env, "web", &[&third]).await?;
    planned(env, &sha256(&third)).await?;
    // Whoever has read the plan of the one before.
    set_approved(env, &first).await?;
    planned(env, &sha256(&third)).await?;
    ensure!(marked(env, 0).await?.is_empty(), "nobody has approved it");
    set_approved(env, &sha256(&third)).await?;
    marked(env, OBJECTS).await?;
    let shows =
        |object: &Value| object["status"]["version"] == "0.3.0" && object["status"]["plan"]["state"] == "Approved";
    env.namespace.until("Plugin", "web", "to show the third version", shows).await.map(drop)
}

/// Two approve at once: what the first one was shown is no longer what waits when the approval reaches the API server.
async fn an_approval_that_comes_late_takes_no_other_one_back(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({})).await?;
    store(env, "web", &[&next()?]).await?;
    planned(env, &sha256(&next()?)).await?;
    let proxy = Proxy::start(env.upstream().await?, &env.namespace.name).await?;
    proxy.writes().hold(1, Moment::Before);
    let first = tokio::spawn(pilothouse(arguments("web", proxy.kubeconfig(), &["--yes"])));
    proxy.writes().until_held().await?;

    let third = third().await?;
    store(env, "web", &[&third]).await?;
    planned(env, &sha256(&third)).await?;
    approve(env, &["--yes"]).await?.succeeded()?;
    marked(env, OBJECTS).await?;
    let answer = proxy.writes().release().await?;
    ensure!(answer == StatusCode::CONFLICT, "the approval of the version before came through: {answer}");
    let approved =
        env.namespace.get("Plugin", "web").await?.context("no Plugin")?["spec"]["rollout"]["approved"].take();
    ensure!(approved == sha256(&third), "{approved}");
    first.abort();
    Ok(())
}

async fn an_approved_version_is_tried_in_a_canary(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({"strategy": "Canary", "steps": [{"objects": 1, "seconds": 3600}]})).await?;
    store(env, "web", &[&next()?]).await?;
    let waiting = planned(env, &sha256(&next()?)).await?;
    ensure!(waiting["status"]["rollout"].is_null() && marked(env, 0).await?.is_empty(), "it is tried: {waiting}");
    approve(env, &["--yes"]).await?.succeeded()?;
    marked(env, 1).await?;
    // An approval can be taken back.
    set_approved(env, &sha256(&plugin()?)).await?;
    marked(env, 0).await?;
    let waiting = planned(env, &sha256(&next()?)).await?;
    ensure!(waiting["status"]["rollout"].is_null(), "it is still tried: {waiting}");
    Ok(())
}

/// What the version before has done to the objects of its canary is undone first.
async fn a_plan_after_a_canary_is_about_all_objects(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({"strategy": "Canary", "steps": [{"objects": 1, "seconds": 3600}]})).await?;
    store(env, "web", &[&next()?]).await?;
    planned(env, &sha256(&next()?)).await?;
    approve(env, &["--yes"]).await?.succeeded()?;
    marked(env, 1).await?;
    // It would make the same marks.
    let third = third().await?;
    store(env, "web", &[&third]).await?;
    let waiting = planned(env, &sha256(&third)).await?;
    let objects = &waiting["status"]["plan"]["summary"]["objects"];
    ensure!(objects["changed"] == OBJECTS && objects["unchanged"] == 0, "{objects}");
    Ok(())
}

async fn another_leader_knows_the_plan(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({})).await?;
    let mut second = lead_with_standby(env).await?;
    store(env, "web", &[&next()?]).await?;
    let digest = sha256(&next()?);
    let first = planned(env, &digest).await?["status"]["plan"].clone();
    env.host.kill().await?;
    second.logged("this host leads").await?;
    scale(env, "web-0", 4).await?;
    let now = planned(env, &digest).await?["status"]["plan"].clone();
    ensure!(now == first, "the plan is another one: {now}");
    approve(env, &["--yes"]).await?.succeeded()?;
    marked(env, OBJECTS).await?;
    second.stop().await
}

/// The kind of its objects is not there.
async fn a_plan_that_fails_is_told_and_can_be_overruled(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&std::fs::read(artifacts::guest("sextet")?)?]).await?;
    let spec = json!({"source": {"configMap": {"name": "web"}}, "rollout": {"plan": "Require"}});
    env.namespace.apply(plugin_object("web", spec)).await?;
    let has_failed = |object: &Value| object["status"]["plan"]["state"] == "Failed";
    let failed = env.namespace.until("Plugin", "web", "to have no plan", has_failed).await?;
    let message = text(&condition(&failed, "Reconciling")["message"]).to_owned();
    ensure!(message.contains("the cluster has no") && message.contains("pilothouse approve web"), "{message}");
    told(env, &[("Warning", "PlanFailed", "CustomResourceDefinition")]).await?;
    let approved = approve(env, &["--yes"]).await?;
    ensure!(approved.output.contains("could not be found out"), "{approved:?}");
    approved.succeeded()?;
    let starts = |object: &Value| condition(object, "Ready")["reason"] == "Starting" || is_unavailable(object);
    env.namespace.until("Plugin", "web", "to be loaded", starts).await.map(drop)
}

async fn a_version_of_another_kind_is_held_too(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({})).await?;
    let other = std::fs::read(artifacts::guest("misbehaver")?)?;
    store(env, "web", &[&other]).await?;
    let waiting = planned(env, &sha256(&other)).await?;
    let left = json!({"apiVersion": "apps.example.com/v1", "kind": "AppService", "objects": OBJECTS});
    ensure!(waiting["status"]["plan"]["summary"]["leftBehind"] == left, "{}", waiting["status"]["plan"]);
    let message = text(&condition(&waiting, "Reconciling")["message"]).to_owned();
    ensure!(message.contains("nobody would reconcile the 3 objects of kind AppService"), "it is not told: {message}");
    scale(env, "web-0", 4).await?;
    let shown = approve(env, &["--yes"]).await?.succeeded()?;
    ensure!(shown.contains("left behind: 3 objects of kind AppService (apps.example.com/v1)"), "{shown}");
    let shows = |object: &Value| object["status"]["reconciles"]["kind"] == "Misbehaver" && is_ready(object);
    env.namespace.until("Plugin", "web", "to reconcile the other kind", shows).await.map(drop)
}

/// And keeps the pieces of the version that works.
async fn install_says_that_a_version_waits(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    env.namespace.patch("Plugin", "app-service", json!({"spec": {"rollout": {"plan": "Require"}}})).await?;
    works(env, "shop").await?;
    let waiting = install_by_command(env, &artifacts::guest("app-service-next")?, &[]).await?;
    let command = format!("pilothouse approve app-service --digest {}", sha256(&next()?));
    ensure!(waiting.code == 0 && waiting.errors.contains(&command), "{waiting:?}");
    ensure!(pieces(env).await? == 2, "the pieces of the version that works are gone");
    approve_named(env, "app-service", &["--yes"]).await?.succeeded()?;
    env.namespace.until("Deployment", "shop", "to have the marks of the new version", is_marked).await?;
    install_by_command(env, &artifacts::guest("app-service-next")?, &[]).await?.succeeded()?;
    ensure!(pieces(env).await? == 1, "former pieces are left");
    Ok(())
}

/// Before somebody approves it for nothing. It is no longer in the way once that plugin is gone.
async fn a_version_whose_kind_is_taken_says_so_while_it_waits(env: &mut TestEnv) -> Result<()> {
    begin(env, json!({})).await?;
    let younger = repacked(&artifacts::guest("app-service-next")?, |it| it["name"] = "younger".into()).await?;
    store(env, "younger", &[&std::fs::read(younger.path())?]).await?;
    let spec = json!({"source": {"configMap": {"name": "younger"}}, "rollout": {"plan": "Require"}});
    env.namespace.apply(plugin_object("younger", spec)).await?;
    let says = |object: &Value, words: &str| {
        let ready = condition(object, "Ready");
        let message = text(&ready["message"]);
        ready["reason"] == "AwaitingApproval"
            && message.contains("pilothouse approve younger")
            && message.contains("would not be loaded") != words.is_empty()
            && message.contains(words)
    };
    let taken = |object: &Value| says(object, "already, from the Plugin 'web'") && says(object, "KindTaken");
    env.namespace.until("Plugin", "younger", "to say that the kind is taken", taken).await?;
    env.namespace.delete("Plugin", "web").await?;
    let is_free = |object: &Value| says(object, "");
    env.namespace.until("Plugin", "younger", "to wait for the approval alone", is_free).await.map(drop)
}

fn is_unavailable(object: &Value) -> bool {
    condition(object, "Ready")["reason"] == "KindUnavailable"
}

/// The first version, approved, with its objects.
pub async fn begin(env: &mut TestEnv, rollout: Value) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    let mut rollout = rollout;
    rollout["plan"] = "Require".into();
    rollout["approved"] = sha256(&plugin()?).into();
    let spec = json!({"source": {"configMap": {"name": "web"}}, "rollout": rollout});
    env.namespace.apply(plugin_object("web", spec)).await?;
    for name in names() {
        works(env, &name).await?;
    }
    let is_at_work = |object: &Value| is_ready(object) && object["status"]["stableDigest"].is_string();
    env.namespace.until("Plugin", "web", "to be at work", is_at_work).await?;
    settled(env, "AppService").await?;
    env.metrics_at_rest().await.map(drop)
}

fn names() -> impl Iterator<Item = String> {
    (0..OBJECTS).map(|number| format!("web-{number}"))
}

/// A third version.
async fn third() -> Result<Vec<u8>> {
    let guest = artifacts::guest("app-service-next")?;
    let third = repacked(&guest, |manifest| manifest["version"] = "0.3.0".into()).await?;
    std::fs::read(third.path()).context("failed to read it")
}

/// Waits until the plan of a version is there.
async fn planned(env: &TestEnv, digest: &str) -> Result<Value> {
    let is_there = |object: &Value| {
        let (plan, generation) = (&object["status"]["plan"], &object["metadata"]["generation"]);
        plan["state"] == "AwaitingApproval" && plan["digest"] == digest && plan["observedGeneration"] == *generation
    };
    env.namespace.until("Plugin", "web", &format!("to have a plan of {digest}"), is_there).await
}

async fn set_approved(env: &TestEnv, digest: &str) -> Result<()> {
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"approved": digest}}})).await.map(drop)
}

async fn approve(env: &TestEnv, arguments: &[&str]) -> Result<Ended> {
    approve_named(env, "web", arguments).await
}

async fn approve_named(env: &TestEnv, name: &str, more: &[&str]) -> Result<Ended> {
    pilothouse(arguments(name, env.namespace.setup().kubeconfig, more)).await
}

fn arguments(name: &str, kubeconfig: PathBuf, more: &[&str]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["approve".into(), name.into()];
    arguments.extend(["--kubeconfig".into(), kubeconfig.into()]);
    arguments.extend(more.iter().map(Into::into));
    arguments
}

async fn scale(env: &TestEnv, name: &str, replicas: u32) -> Result<()> {
    env.namespace.patch("AppService", name, json!({"spec": {"replicas": replicas}})).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == replicas;
    env.namespace.until("Deployment", name, "to be scaled", scaled).await.map(drop)
}

/// How many ConfigMaps hold components.
async fn pieces(env: &TestEnv) -> Result<usize> {
    let of_plugin = |map: &&Value| map["metadata"]["labels"]["pilothouse.dev/component-of"] == "app-service";
    Ok(env.namespace.list("ConfigMap").await?.iter().filter(of_plugin).count())
}
