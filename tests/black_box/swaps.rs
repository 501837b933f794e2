//! Plugins that are installed, replaced and removed at run time: a good version works at once for all objects, a bad one changes
//! nothing.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    bad_plugins::components::of_contract,
    cluster::{Awaited, PATIENCE, install_crd},
    proxy::Proxy,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    plugin_objects::{self, plugin_object, scripted_version, store},
    suite::{Suite, tests, timed},
    test_env::{TestEnv, app, config_map, is_ready, misbehaver, scripted},
};

/// The longest time until a new version has reached every object, without the time to compile it.
const SWAP: Duration = Duration::from_secs(2);

/// How long a call computes that is in flight at a swap, roughly in milliseconds: longer than what is compiled takes to be at work.
const COMPUTE: u32 = 3_000;

/// The number of objects that a new version must reach.
const OBJECTS: usize = 5;

pub fn register(suite: &mut Suite) {
    timed!(suite, a_new_version_reaches_every_object_within_two_seconds);
    tests!(
        suite,
        a_broken_version_changes_nothing,
        a_half_written_file_changes_nothing,
        a_removed_plugin_does_nothing_until_it_is_installed_again,
        a_mounted_config_map_is_followed,
        two_files_of_one_plugin_are_not_mixed,
        a_watch_that_nobody_uses_any_more_ends,
        a_call_in_flight_at_a_swap_is_made_by_the_new_version_alone,
    );
}

async fn a_new_version_reaches_every_object_within_two_seconds(env: &mut TestEnv) -> Result<()> {
    // With an empty cache the new version has to be compiled, as on its first installation.
    let cache = tempfile::tempdir()?;
    env.set_up_host(|setup| setup.cache = cache.path().join("compiled"))?;
    env.start(&["app-service"]).await?;
    let names = env.many_at_rest(OBJECTS).await?;
    let loading = async || {
        let loads = [("plugin", "app-service")];
        Ok::<_, anyhow::Error>(env.metrics().await?.sum("pilothouse_plugin_load_seconds_sum", &loads))
    };
    let before = loading().await?;
    let installed = Instant::now();
    replace_with_next(env)?;
    for name in &names {
        env.namespace.until("Deployment", name, "to have the marks of the new version", is_next).await?;
    }
    let took = installed.elapsed();
    let compiled = Duration::from_secs_f64(loading().await? - before);
    eprintln!("a new version reached {OBJECTS} objects in {took:?}, {compiled:?} of them to compile it");
    ensure!(took < SWAP + compiled, "the swap took {took:?}, {compiled:?} of them to compile");
    for name in &names {
        env.at_rest(name).await?;
    }
    Ok(())
}

/// Each replacement is refused with its own message, and the active version goes on.
async fn a_broken_version_changes_nothing(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let good = fs::read(artifacts::guest("app-service-next")?)?;
    let broken = [
        ("garbage", b"this is not WebAssembly".to_vec(), "not a whole WebAssembly file"),
        ("empty", Vec::new(), "not a whole WebAssembly file"),
        ("truncated", good[..good.len() / 2].to_vec(), "not a whole WebAssembly file"),
        ("damaged inside", damaged(&good), "the plugin was not loaded"),
        ("core module", b"\0asm\x01\0\0\0".to_vec(), "a core WebAssembly module, not a component"),
        ("bare component", b"\0asm\x0d\0\x01\0".to_vec(), "a component without a manifest"),
        ("other contract", of_contract(&good, "0.3.0")?, "built for contract 0.3.0"),
    ];
    let folder = tempfile::tempdir()?;
    for (number, (what, bytes, message)) in broken.iter().enumerate() {
        let file = folder.path().join("broken.wasm");
        fs::write(&file, bytes)?;
        env.host.install(&file, "app-service.wasm")?;
        failed_loads(env, number + 1).await.with_context(|| format!("the replacement is {what}"))?;
        env.host.logged(message).await?;
        works_as_before(env).await.with_context(|| format!("the replacement is {what}"))?;
    }
    ensure!(env.host.get("health", "/readyz").await?.0 == 200, "the host is not ready though a version works");
    replace_with_next(env)?;
    env.namespace.until("Deployment", "web", "to have the marks of the new version", is_next).await?;
    env.at_rest("web").await
}

/// A file that is written in place is seen half-written. The half is refused, and the whole file is loaded.
async fn a_half_written_file_changes_nothing(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let good = fs::read(artifacts::guest("app-service-next")?)?;
    let file = env.host.plugins().join("app-service.wasm");
    fs::write(&file, &good[..good.len() / 2])?;
    failed_loads(env, 1).await?;
    works_as_before(env).await?;
    fs::write(&file, &good)?;
    env.namespace.until("Deployment", "web", "to have the marks of the new version", is_next).await?;
    Ok(())
}

async fn a_removed_plugin_does_nothing_until_it_is_installed_again(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver", "app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    env.at_rest("web").await?;
    fs::remove_file(env.host.plugins().join("app-service.wasm"))?;
    env.host.logged("plugin removed").await?;
    let before = env.reconciles("app-service").await?;
    env.namespace.patch("AppService", "web", json!({"spec": {"replicas": 4}})).await?;
    // The other plugin still works, so the host has seen the earlier change as well.
    env.namespace.apply(misbehaver("other", "well")).await?;
    env.namespace.until("ConfigMap", "other", "to be created", |_| true).await?;
    ensure!(env.reconciles("app-service").await? == before, "it was reconciled without its plugin");
    let deployment = env.namespace.get("Deployment", "web").await?.context("the Deployment is gone")?;
    ensure!(deployment["spec"]["replicas"] == 3, "somebody still works: {deployment}");
    let loaded = env.metrics().await?.has("pilothouse_plugin_loaded", &[("plugin", "app-service")]);
    ensure!(!loaded, "the metrics still show the plugin");
    env.install("app-service")?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 4;
    env.namespace.until("Deployment", "web", "to have 4 replicas", scaled).await?;
    Ok(())
}

/// The kubelet updates a mounted ConfigMap by renaming one symlink; no file of the directory itself changes.
async fn a_mounted_config_map_is_followed(env: &mut TestEnv) -> Result<()> {
    let folder = env.host.plugins();
    let publish = |revision: &str, plugin: &Path| -> Result<()> {
        let data = folder.join(revision);
        fs::create_dir(&data)?;
        fs::copy(plugin, data.join("app-service.wasm"))?;
        std::os::unix::fs::symlink(revision, folder.join("..data_tmp"))?;
        Ok(fs::rename(folder.join("..data_tmp"), folder.join("..data"))?)
    };
    publish("..2026_01", &artifacts::plugin("app-service")?)?;
    std::os::unix::fs::symlink("..data/app-service.wasm", folder.join("app-service.wasm"))?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.namespace.apply(app("web")).await?;
    env.at_rest("web").await?;
    let published = Instant::now();
    publish("..2026_02", &artifacts::guest("app-service-next")?)?;
    fs::remove_dir_all(folder.join("..2026_01"))?;
    env.namespace.until("Deployment", "web", "to have the marks of the new version", is_next).await?;
    eprintln!("a symlink swap took {:?}", published.elapsed());
    env.at_rest("web").await
}

/// Two files with the same plugin would overwrite each other's children for ever, so the second one is refused.
async fn two_files_of_one_plugin_are_not_mixed(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    env.host.install(&artifacts::guest("app-service-next")?, "other.wasm")?;
    failed_loads(env, 1).await?;
    works_as_before(env).await?;
    let deployment = env.namespace.get("Deployment", "web").await?.context("the Deployment is gone")?;
    ensure!(!is_next(&deployment), "the second file works: {deployment}");
    // When the first file is removed, the second one is loaded.
    fs::remove_file(env.host.plugins().join("app-service.wasm"))?;
    env.namespace.until("Deployment", "web", "to have the marks of the other file", is_next).await?;
    Ok(())
}

/// Replaces the plugin `app-service` by its next version.
fn replace_with_next(env: &TestEnv) -> Result<()> {
    env.host.install(&artifacts::guest("app-service-next")?, "app-service.wasm")
}

fn is_next(deployment: &Value) -> bool {
    let metadata = &deployment["metadata"];
    metadata["annotations"]["apps.example.com/revision"] == "2"
        && metadata["labels"]["apps.example.com/generation"] == "2"
}

/// Checks that the previous version still repairs drift.
async fn works_as_before(env: &TestEnv) -> Result<()> {
    env.namespace.patch("Deployment", "web", json!({"spec": {"replicas": 1}})).await?;
    let repaired = |deployment: &Value| deployment["spec"]["replicas"] == 3;
    let deployment = env.namespace.until("Deployment", "web", "to be repaired", repaired).await?;
    ensure!(!is_next(&deployment), "another version works: {deployment}");
    Ok(())
}

/// The guest `forgetful` is a version of `misbehaver` without lookups. `sextet` has ConfigMaps, too. Children are watched by the
/// host's label, with one watch for both plugins.
async fn a_watch_that_nobody_uses_any_more_ends(env: &mut TestEnv) -> Result<()> {
    const ALL: &str = "";
    const CHILDREN: &str = "pilothouse.dev/plugin";
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.start(&["misbehaver", "sextet"]).await?;
    watched(&proxy, [&[ALL, CHILDREN], &[ALL], &[CHILDREN]]).await?;
    env.replace("misbehaver", "forgetful")?;
    watched(&proxy, [&[CHILDREN], &[ALL], &[CHILDREN]]).await?;
    fs::remove_file(env.host.plugins().join("misbehaver.wasm"))?;
    watched(&proxy, [&[CHILDREN], &[], &[CHILDREN]]).await?;
    env.install("misbehaver")?;
    watched(&proxy, [&[ALL, CHILDREN], &[ALL], &[CHILDREN]]).await
}

/// A call writes nothing, so it can be dropped. Counted: the old version has made none, and what follows is written once.
async fn a_call_in_flight_at_a_swap_is_made_by_the_new_version_alone(env: &mut TestEnv) -> Result<()> {
    plugin_objects::start(env).await?;
    let crd = artifacts::repository().join("tests/guests/scripted/crd.yaml");
    install_crd(&env.namespace.client(), &crd).await?;
    let (old, new) = (scripted_version("0.1.0").await?, scripted_version("0.2.0").await?);
    // The new one first, so that it is compiled already when the call is in flight.
    for (version, component) in [("0.2.0", &new), ("0.1.0", &old)] {
        store(env, "web", &[component]).await?;
        let limits = json!({"cpuMilliseconds": 30_000, "timeoutSeconds": 60});
        let spec = json!({"source": {"configMap": {"name": "web"}}, "limits": limits});
        env.namespace.apply(plugin_object("web", spec)).await?;
        is_at_work(env, version).await?;
    }
    env.namespace.apply(computing("slow")).await?;
    env.host.logged("lookups done").await?;
    store(env, "web", &[&new]).await?;
    is_at_work(env, "0.2.0").await?;
    ensure!(env.calls("scripted").await? == 0.0, "the call was over before the new version was at work");
    let awaited = Awaited { kind: "Scripted", name: "slow", what: "to be ready" };
    env.namespace.until_within(3 * PATIENCE, &awaited, is_ready).await?;
    env.metrics_at_rest().await?;
    let made = env.namespace.get("ConfigMap", "slow").await?.context("no child")?;
    let version = &made["metadata"]["annotations"]["pilothouse.dev/plugin-version"];
    ensure!(version == "0.2.0", "another version made it: {made}");
    let writes = env.host_writes().await?;
    for (written, what) in [("configmaps/ slow", "child"), ("scripteds/status slow", "status")] {
        let times = writes.iter().filter(|write| write.contains(written)).count();
        ensure!(times == 1, "its {what} was written {times} times: {writes:?}");
    }
    Ok(())
}

/// An object whose calls take long and return a child of its name.
fn computing(name: &str) -> Value {
    scripted(name, json!({"compute": COMPUTE, "response": {"children": [{"object": config_map(name, json!({}))}]}}))
}

async fn is_at_work(env: &TestEnv, version: &str) -> Result<()> {
    let shows = |object: &Value| object["status"]["version"] == version && is_ready(object);
    env.namespace.until("Plugin", "web", &format!("to show version {version}"), shows).await.map(drop)
}

/// Waits until the open watches of three kinds have exactly these label selectors.
async fn watched(proxy: &Proxy, selectors: [&[&str]; 3]) -> Result<()> {
    let kinds = ["configmaps", "misbehavers", "secrets"];
    eventually(PATIENCE, &format!("watches of {kinds:?} with {selectors:?}"), async || {
        let open = kinds.map(|kind| proxy.watches().open(kind));
        Ok(Look::of(open.iter().eq(selectors.iter()), open))
    })
    .await
}

/// Waits until this many plugins have been refused since the host started.
async fn failed_loads(env: &TestEnv, number: usize) -> Result<()> {
    eventually(PATIENCE, &format!("{number} refused plugins"), async || {
        let failed = env.metrics().await?.sum("pilothouse_plugin_load_failures_total", &[]);
        Ok(Look::of(failed >= number as f64, failed))
    })
    .await
}

/// A component with intact sections and damaged code.
fn damaged(good: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let middle = bytes.len() / 4;
    bytes[middle..middle + 64].fill(0xff);
    bytes
}
