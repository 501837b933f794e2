//! A bad version of a plugin goes back by itself, and no object but those of its canary was ever touched. What it has touched is read from the
//! API server's audit log.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    artifacts,
    cluster::{HOST_USER, PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    canary::{LONG, SHARE, apply_plugin, begin, in_step, names, settled},
    command::repacked,
    plugin_objects::{guest_version, next, resume, store, text},
    suite::{Suite, tests},
    test_env::{TestEnv, answering, is_ready},
};

/// How long a step lasts whose end is waited for, in s.
const SHORT: u32 = 3;

/// The finalizer of a version that is taken back.
const OURS: &str = "tests.pilothouse.dev/ours";

/// The finalizer of somebody else.
const THEIRS: &str = "tests.pilothouse.dev/theirs";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_bad_version_goes_back_by_itself,
        a_bad_version_goes_back_though_the_host_is_killed,
        a_version_that_writes_and_then_fails_goes_back,
        a_killed_host_takes_back_what_writes_and_then_fails,
        a_version_that_writes_and_then_waits_goes_back_after_its_step,
        a_version_that_heals_as_many_as_it_breaks_goes_back,
        a_finalizer_of_a_version_that_goes_back_goes_with_it,
    );
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
    killed_twice(env).await?;
    gone_back(env).await?;
    at_most_the_share(env, before).await?;
    healthy(env).await
}

async fn a_version_that_writes_and_then_fails_goes_back(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"percent": SHARE.0, "seconds": LONG}])).await?;
    let before = touched(env, 0).await?.0;
    store(env, "web", &[&fails()?]).await?;
    gone_back(env).await?;
    repaired(env, before).await
}

/// Killed as soon as it has written the first child, and once more as soon as the host works again.
async fn a_killed_host_takes_back_what_writes_and_then_fails(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"percent": SHARE.0, "seconds": LONG}])).await?;
    let before = touched(env, 0).await?.0;
    store(env, "web", &[&fails()?]).await?;
    eventually(PATIENCE, "the bad version to write", async || {
        let touched = touched(env, before).await?.1;
        Ok(Look::of(!touched.is_empty(), touched))
    })
    .await?;
    killed_twice(env).await?;
    gone_back(env).await?;
    repaired(env, before).await
}

/// It never says that anything is wrong. Its objects were ready before, and are not any more.
async fn a_version_that_writes_and_then_waits_goes_back_after_its_step(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"percent": SHARE.0, "seconds": SHORT}, {"percent": 100, "seconds": LONG}])).await?;
    for name in names() {
        let waits = json!({"metadata": {"annotations": {"tests.pilothouse.dev/then": "wait"}}});
        env.namespace.patch("AppService", &name, waits).await?;
        roll_out(env, &name).await?;
        env.namespace.until("AppService", &name, "to be ready", is_ready).await?;
    }
    env.metrics_at_rest().await?;
    let before = touched(env, 0).await?.0;
    store(env, "web", &[&fails()?]).await?;
    let back = gone_back(env).await?;
    ensure!(back["status"]["rollout"]["step"] == 1, "it came to more objects: {}", back["status"]);
    repaired(env, before).await?;
    for name in names() {
        roll_out(env, &name).await?;
        env.namespace.until("AppService", &name, "to be ready again", is_ready).await?;
    }
    Ok(())
}

/// Objects are compared, and not their numbers.
async fn a_version_that_heals_as_many_as_it_breaks_goes_back(env: &mut TestEnv) -> Result<()> {
    let crds = ["crds/plugins.pilothouse.dev.yaml", "tests/guests/scripted/crd.yaml"];
    env.move_to_api_server_with(&crds).await?;
    resume(env).await?;
    // Each of them may return another kind, so that what is right for one is wrong for the other.
    store(env, "web", &[&guest_version("scripted", "0.1.0", "ConfigMap").await?]).await?;
    apply_plugin(env, json!([{"percent": 100, "seconds": SHORT}])).await?;
    for (name, kind) in [("heals", "Secret"), ("breaks", "ConfigMap")] {
        let child = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        env.namespace.apply(answering(name, json!({"children": [{"object": child}]}))).await?;
    }
    env.namespace.until("Scripted", "heals", "to fail", |it| condition(it, "Stalled")["status"] == "True").await?;
    env.namespace.until("Scripted", "breaks", "to be ready", is_ready).await?;
    env.namespace.until("Plugin", "web", "to be at work", |it| it["status"]["stableDigest"].is_string()).await?;
    settled(env, "Scripted").await?;
    store(env, "web", &[&guest_version("scripted", "0.2.0", "Secret").await?]).await?;
    gone_back(env).await.map(drop)
}

/// The version that works knows nothing of it, and nobody would ever take it off. The host is another one by then.
async fn a_finalizer_of_a_version_that_goes_back_goes_with_it(env: &mut TestEnv) -> Result<()> {
    let crds = ["crds/plugins.pilothouse.dev.yaml", "tests/guests/scripted/crd.yaml"];
    env.move_to_api_server_with(&crds).await?;
    resume(env).await?;
    store(env, "web", &[&guest_version("scripted", "0.1.0", "ConfigMap").await?]).await?;
    apply_plugin(env, json!([{"percent": 100, "seconds": LONG}])).await?;
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}});
    let mut object = answering("web", json!({"children": [{"object": child}]}));
    object["metadata"]["finalizers"] = json!([THEIRS]);
    env.namespace.apply(object).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.namespace.until("Plugin", "web", "to be at work", |it| it["status"]["stableDigest"].is_string()).await?;
    settled(env, "Scripted").await?;

    let packed = repacked(&artifacts::guest("scripted-finalizing")?, |manifest| {
        (manifest["name"], manifest["version"]) = ("scripted".into(), "0.2.0".into());
        manifest["finalizer"] = OURS.into();
        manifest["children"] = json!([{"apiVersion": "v1", "kind": "Secret"}]);
        (manifest["lookups"], manifest["ordersChildren"]) = (json!([]), false.into());
    })
    .await?;
    store(env, "web", &[&std::fs::read(packed.path())?]).await?;
    let has = |finalizers: Value| move |object: &Value| object["metadata"]["finalizers"] == finalizers;
    env.namespace.until("Scripted", "web", "to have the finalizer", has(json!([THEIRS, OURS]))).await?;
    env.host.kill().await?;
    resume(env).await?;
    gone_back(env).await?;
    env.namespace.until("Scripted", "web", "to have the finalizer no more", has(json!([THEIRS]))).await?;
    let forgotten = |object: &Value| !object["status"]["finalizers"].to_string().contains(OURS);
    env.namespace.until("Plugin", "web", "to forget it", forgotten).await.map(drop)
}

/// Kills the host, and once more as soon as it works again.
async fn killed_twice(env: &mut TestEnv) -> Result<()> {
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    env.host.kill().await?;
    resume(env).await
}

/// A version whose answers are all refused: it returns a kind that its manifest does not name.
pub async fn bad() -> Result<Vec<u8>> {
    let change = |manifest: &mut Value| {
        manifest["version"] = "0.3.0".into();
        manifest["children"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    };
    let bad = repacked(&artifacts::guest("app-service-next")?, change).await?;
    Ok(std::fs::read(bad.path())?)
}

/// A version that writes, and fails or waits when it sees what it has written.
fn fails() -> Result<Vec<u8>> {
    Ok(std::fs::read(artifacts::guest("app-service-fails")?)?)
}

async fn gone_back(env: &TestEnv) -> Result<Value> {
    let is_back = |object: &Value| {
        object["status"]["rollout"]["phase"] == "RolledBack" && condition(object, "Stalled")["reason"] == "RolledBack"
    };
    env.namespace.until("Plugin", "web", "to have gone back", is_back).await
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

/// Nothing is left of what the bad version wrote, and it wrote about its share of the objects only.
async fn repaired(env: &mut TestEnv, before: usize) -> Result<()> {
    healthy(env).await?;
    eventually(PATIENCE, "what the bad version wrote to be gone", async || {
        let deployments = env.namespace.list("Deployment").await?;
        let is_bad = |it: &&Value| it["metadata"]["annotations"]["apps.example.com/revision"] == "3";
        let left: Vec<_> = deployments.iter().filter(is_bad).map(|it| text(&it["metadata"]["name"])).collect();
        Ok(Look::of(left.is_empty(), format!("{left:?}")))
    })
    .await?;
    env.metrics_at_rest().await?;
    at_most_the_share(env, before).await
}

/// Has a Deployment be rolled out: nobody runs its Pods here.
async fn roll_out(env: &TestEnv, name: &str) -> Result<()> {
    let deployment = env.namespace.get("Deployment", name).await?.context("no Deployment")?;
    let replicas = &deployment["spec"]["replicas"];
    let status = json!({"status": {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}],
    }});
    env.namespace.api("Deployment")?.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}
