//! Known mistakes of other controllers, which this host must not make.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{artifacts, cluster::condition};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests, timed},
    test_env::{TestEnv, app, is_ready, misbehaver},
};

/// The number of objects whose calls do not end.
const HANGING: usize = 20;

/// The longest delay that a hanging plugin may cause for another plugin's object: half of the time that one of its calls may take, so that
/// nobody waits for one, on a busy machine either.
const LATER: Duration = Duration::from_millis(500);

/// The longest time from the start of the fixed version until it has reconciled all objects.
const FIXED: Duration = Duration::from_secs(1);

/// The number of changes of which the median latency is taken.
const CHANGES: usize = 15;

pub fn register(suite: &mut Suite) {
    timed!(suite, a_plugin_that_hangs_delays_neither_others_nor_its_own_fix);
    tests!(
        suite,
        a_child_of_another_controller_is_not_taken_and_outlives_the_object,
        a_refused_child_deletes_no_others_and_updates_the_conditions,
        users_are_not_kept_waiting_by_a_host_that_is_down,
    );
}

async fn a_child_of_another_controller_is_not_taken_and_outlives_the_object(env: &mut TestEnv) -> Result<()> {
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "their-owner"}});
    let owner = env.namespace.apply(owner).await?;
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "their-owner", "uid": owner["metadata"]["uid"], "controller": true,
    }]);
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "shared", "ownerReferences": reference}, "data": {"whose": "theirs"},
    });
    env.namespace.apply(theirs).await?;
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("shared", "well")).await?;
    env.stalled("Misbehaver", "shared", "NameConflict").await?;
    env.namespace.delete("Misbehaver", "shared").await?;
    env.namespace.until_gone("Misbehaver", "shared").await?;
    // Once another object is ready, the host has finished whatever the deletion caused.
    env.namespace.apply(misbehaver("other", "well")).await?;
    env.namespace.until("Misbehaver", "other", "to be ready", is_ready).await?;
    let still = env.namespace.get("ConfigMap", "shared").await?.context("it was deleted")?;
    ensure!(still["data"]["whose"] == "theirs" && still["metadata"]["ownerReferences"] == reference, "{still}");
    Ok(())
}

async fn a_refused_child_deletes_no_others_and_updates_the_conditions(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    env.namespace.apply(misbehaver("web", "several")).await?;
    env.namespace.until("Misbehaver", "web", "to be ready", is_ready).await?;
    env.namespace.patch("Misbehaver", "web", json!({"spec": {"act": "refused-child"}})).await?;
    let object = env.stalled("Misbehaver", "web", "ChildInvalid").await?;
    ensure!(condition(&object, "Ready")["observedGeneration"] == object["metadata"]["generation"], "{object}");
    for name in ["web-0", "web-1", "web-2"] {
        ensure!(env.namespace.get("ConfigMap", name).await?.is_some(), "{name} was deleted before all was applied");
    }
    Ok(())
}

async fn users_are_not_kept_waiting_by_a_host_that_is_down(env: &mut TestEnv) -> Result<()> {
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    env.at_rest("web").await?;
    env.host.kill().await?;
    env.namespace.patch("AppService", "web", json!({"spec": {"replicas": 2}})).await?;
    env.namespace.apply(app("other")).await?;
    env.namespace.delete("AppService", "web").await?;
    env.namespace.until_gone("AppService", "web").await?;
    env.namespace.until_gone("Deployment", "web").await?;
    Ok(())
}

async fn a_plugin_that_hangs_delays_neither_others_nor_its_own_fix(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver", "app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    env.at_rest("web").await?;
    let alone = latency(env, 1).await?;
    for number in 0..HANGING {
        env.namespace.apply(misbehaver(&format!("hanging-{number}"), "loop")).await?;
    }
    env.stalled("Misbehaver", "hanging-0", "PluginDeadlineExceeded").await?;
    let beside = latency(env, 100).await?;
    eprintln!("a change reaches its child in {alone:?} alone, in {beside:?} beside {HANGING} hanging objects");
    ensure!(beside < alone + LATER, "{beside:?} in the place of {alone:?}");

    // The guest `forgetful` is another version of the plugin, whose calls all end.
    env.host.install(&artifacts::guest("forgetful")?, "misbehaver.wasm")?;
    env.host.logged("\"version\":\"9.0.0\"").await?;
    let loaded = Instant::now();
    for number in 0..HANGING {
        env.namespace.until("Misbehaver", &format!("hanging-{number}"), "to be ready", is_ready).await?;
    }
    let took = loaded.elapsed();
    eprintln!("the version that does not hang had acted on all {HANGING} objects after {took:?}");
    ensure!(took < FIXED, "the fix took {took:?}");
    Ok(())
}

/// The median time from a change of an AppService to its Deployment.
async fn latency(env: &TestEnv, first: usize) -> Result<Duration> {
    let mut times = Vec::new();
    for number in first..first + CHANGES {
        let image = format!("example.com/web:{number}");
        let changed = Instant::now();
        env.namespace.patch("AppService", "web", json!({"spec": {"image": image}})).await?;
        let has_it = |child: &Value| child["spec"]["template"]["spec"]["containers"][0]["image"] == *image;
        env.namespace.until("Deployment", "web", "to have the image", has_it).await?;
        times.push(changed.elapsed());
    }
    times.sort();
    times.get(CHANGES / 2).copied().context("no change was made")
}
