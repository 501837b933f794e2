//! What loaded plugins keep of the host's memory has a bound: one more is refused in words, takes nothing from those that are at work, and
//! is tried again once another one goes.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cgroup::Cgroup,
    cluster::condition,
    copies::copy,
    gzip::gzipped,
    process::memory,
    registry::Registry,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    canary::arguments,
    copies,
    plugin_objects::{install_crds, next, plugin, plugin_object, sha256, store, text, works},
    registries::{push, source},
    suite::{Suite, Weight, tests},
    test_env::{TestEnv, is_ready},
};

/// What plugins may keep in these tests, in MiB: the first one and a few copies.
const MEMORY: &str = "3";

/// A container in which plugins may keep 16 MiB, and more copies than there is room for.
const CONTAINER: usize = 128 << 20;
const MANY: usize = 60;

/// How long so many may take to be compiled.
const PATIENCE: Duration = Duration::from_secs(240);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_plugin_for_which_there_is_no_memory_waits_until_another_goes,
        a_host_that_starts_serves_first_what_it_served_before,
        a_next_version_takes_no_more_than_there_is_once_it_works,
        other_settings_need_no_more_memory,
        a_version_that_waits_for_approval_has_its_memory_once,
        a_pinned_version_without_memory_is_tried_again,
        a_source_that_is_away_at_the_start_keeps_its_place,
        files_and_plugins_that_worked_come_before_new_files,
    );
    suite.in_container(
        module_path!(),
        stringify!(many_small_plugins_do_not_end_the_host),
        Weight::Light,
        many_small_plugins_do_not_end_the_host,
    );
}

async fn a_plugin_for_which_there_is_no_memory_waits_until_another_goes(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    web(env, &plugin()?).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    let full = fill(env).await?;
    let object = refused(env, &name(full)).await?;
    let message = text(&condition(&object, "Loaded")["message"]);
    for words in ["KiB of the host's memory", "of the 3 MiB", "remove one", "--plugin-memory"] {
        ensure!(message.contains(words), "it does not say '{words}': {message}");
    }
    ensure!(object["status"]["version"].is_null(), "it is at work: {object}");
    let metrics = env.metrics().await?;
    let used = metrics.sum("pilothouse_plugin_memory_bytes", &[]);
    let limit = metrics.sum("pilothouse_plugin_memory_limit_bytes", &[]);
    ensure!(limit == f64::from(3 << 20) && used > limit / 2.0 && used <= limit, "{used} of {limit} bytes are used");

    // From a registry as well.
    let registry = Registry::start(false).await?;
    let pulled = full + 1;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), component(pulled)?)?;
    push(&registry, file.path(), "copy:1").await?;
    copies::define(env, pulled, &["v1"]).await?;
    env.namespace.apply(plugin_object(&name(pulled), source(&registry, "copy:1"))).await?;
    refused(env, &name(pulled)).await?;

    // Those at work go on, and get their next versions.
    works(env, "shop").await?;
    web(env, &next()?).await?;
    let is_next = |object: &Value| object["status"]["version"] == "0.2.0" && is_ready(object);
    env.namespace.until("Plugin", "web", "to show the next version", is_next).await?;

    // The older of both has the room that one leaves.
    env.namespace.delete("Plugin", &name(0)).await?;
    env.namespace.until("Plugin", &name(full), "to be ready", is_ready).await?;
    refused(env, &name(pulled)).await?;
    env.namespace.delete("Plugin", &name(1)).await?;
    env.namespace.until("Plugin", &name(pulled), "to be ready", is_ready).await?;
    works(env, "after").await
}

/// The one that was refused is the oldest of all, and its name is the first.
async fn a_host_that_starts_serves_first_what_it_served_before(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    env.namespace.apply(plugin_object("a", json!({"source": {"configMap": {"name": "a"}}}))).await?;
    let is_missing = |object: &Value| condition(object, "Loaded")["reason"] == "ConfigMapMissing";
    env.namespace.until("Plugin", "a", "to miss its ConfigMap", is_missing).await?;
    web(env, &plugin()?).await?;
    env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    let full = fill(env).await?;
    store(env, "a", &[&component(full + 1)?]).await?;
    copies::define(env, full + 1, &["v1"]).await?;
    refused(env, "a").await?;
    let served: Vec<_> = (0..full).map(name).chain(["web".to_owned()]).collect();
    for _ in 0..2 {
        env.host.kill().await?;
        env.host.resume().await?;
        env.host.ready().await?;
        for name in &served {
            let was_loaded = || env.host.log().contains(&format!("\"source\":\"the Plugin '{name}'\",\"plugin\""));
            eventually(PATIENCE, &format!("{name} to be loaded"), async || Ok(Look::of(was_loaded(), env.host.log())))
                .await?;
        }
        refused(env, "a").await?;
        let log = env.host.log();
        for name in &served {
            let is_refused =
                |line: &&str| line.contains("the plugin was not loaded") && line.contains(&format!("'{name}'"));
            ensure!(!log.lines().any(|line| is_refused(&line)), "{name} was refused:\n{log}");
        }
    }
    works(env, "shop").await
}

/// Files of a directory. Without a bound they take more than this host has.
async fn many_small_plugins_do_not_end_the_host(env: &mut TestEnv) -> Result<()> {
    let container = Cgroup::with_memory(CONTAINER)?;
    env.set_up_host(|setup| setup.cgroup = Some(container.folder().to_owned()))?;
    for number in 0..MANY {
        std::fs::write(env.host.plugins().join(format!("copy-{number:03}.wasm")), component(number)?)?;
    }
    env.host.resume().await?;
    env.host.logged("all plugins together may keep 16 MiB of memory").await?;
    let told = |log: &str, words: &str| log.lines().filter(|line| line.contains(words)).count();
    let (loaded, without_memory) = ("\"plugin loaded\"", "(--plugin-memory)");
    eventually(PATIENCE, "each plugin to be loaded or refused", async || {
        let log = env.host.log();
        let (loaded, refused) = (told(&log, loaded), told(&log, without_memory));
        Ok(Look::of(loaded + refused >= MANY, format!("{loaded} are loaded, {refused} are refused")))
    })
    .await?;
    let served = told(&env.host.log(), loaded);
    ensure!((10..MANY).contains(&served), "{served} of {MANY} are loaded");
    let pid = env.host.pid()?;
    let (now, most) = memory(pid)?;
    println!("{served} plugins are loaded, and the host has {now:.0} MiB, and had {most:.0} at most");

    // What has room once others are gone is loaded, and a host that starts has the same ones.
    let is_loaded = |log: &str, number: usize| {
        log.lines().any(|line| line.contains(loaded) && line.contains(&format!("copy-{number:03}")))
    };
    let log = env.host.log();
    let (here, gone): (Vec<_>, Vec<_>) = (0..MANY).partition(|number| is_loaded(&log, *number));
    for number in &here[..2] {
        env.host.remove(&format!("copy-{number:03}.wasm"))?;
    }
    eventually(PATIENCE, "two others to be loaded", async || {
        let log = env.host.log();
        let more = gone.iter().filter(|number| is_loaded(&log, **number)).count();
        Ok(Look::of(more == 2, format!("{more} are")))
    })
    .await?;
    let log = env.host.log();
    let served: Vec<_> = (0..MANY).filter(|number| is_loaded(&log, *number) && !here[..2].contains(number)).collect();
    ensure!(env.host.pid()? == pid, "the host was started again");
    env.host.stop().await?;
    env.host.resume().await?;
    eventually(PATIENCE, "the same ones to be loaded", async || {
        let log = env.host.log();
        let again: Vec<_> = (0..MANY).filter(|number| is_loaded(&log, *number)).collect();
        Ok(Look::of(again == served, format!("{again:?} are, and {served:?} were")))
    })
    .await?;
    env.host.stop().await
}

/// Four plugins of 720 KiB have 2,880 of 3,072 KiB, and 960 more are there for swaps.
async fn a_next_version_takes_no_more_than_there_is_once_it_works(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    for number in 0..4 {
        copies::define(env, number, &["v1"]).await?;
        install(env, number, 720, json!({})).await?;
        env.namespace.until("Plugin", &name(number), "to be ready", is_ready).await?;
    }
    // Both versions have room beside each other, and the larger one has none by itself.
    store_packed(env, 0, 930).await?;
    let object = refused(env, &name(0)).await?;
    ensure!(object["status"]["digest"] == sha256(&sized(0, 720)?), "the version before does not go on: {object}");
    for (number, size) in [(3, 721), (0, 722)] {
        store_packed(env, number, size).await?;
        at_work(env, number, size).await?;
    }
    Ok(())
}

/// Twice as much as the plugin keeps is more than there is.
async fn other_settings_need_no_more_memory(env: &mut TestEnv) -> Result<()> {
    start_with(env, &["--plugin-memory", "1"]).await?;
    copies::define(env, 0, &["v1"]).await?;
    install(env, 0, 700, json!({})).await?;
    at_work(env, 0, 700).await?;
    for settings in [json!({"limits": {"concurrency": 2}}), json!({"config": {"colour": "green"}})] {
        let asked = install(env, 0, 700, settings.clone()).await?;
        let is_observed = |object: &Value| {
            object["status"]["observedGeneration"] == asked["metadata"]["generation"] && is_ready(object)
        };
        let object = env.namespace.until("Plugin", &name(0), "to be ready as asked", is_observed).await?;
        ensure!(object["status"]["lastError"].is_null(), "{settings}: {object}");
    }
    Ok(())
}

async fn a_version_that_waits_for_approval_has_its_memory_once(env: &mut TestEnv) -> Result<()> {
    start_with(env, &["--plugin-memory", "1"]).await?;
    copies::define(env, 0, &["v1"]).await?;
    let waits = |object: &Value| object["status"]["newVersion"] == "AwaitingApproval";
    let gated = json!({"rollout": {"plan": "Require"}});
    install(env, 0, 700, gated.clone()).await?;
    env.namespace.until("Plugin", &name(0), "to wait for approval", waits).await?;
    let suspended = json!({"rollout": {"plan": "Require"}, "suspended": true});
    install(env, 0, 700, suspended).await?;
    memory_used(env, "nothing", |used| used == 0.0).await?;
    install(env, 0, 700, gated).await?;
    env.namespace.until("Plugin", &name(0), "to wait again", waits).await?;
    let approved = json!({"rollout": {"plan": "Require", "approved": sha256(&sized(0, 700)?)}});
    install(env, 0, 700, approved).await?;
    let object = at_work(env, 0, 700).await?;
    ensure!(object["status"]["lastError"].is_null(), "{object}");
    Ok(())
}

/// Another plugin has the memory that the former version needs.
async fn a_pinned_version_without_memory_is_tried_again(env: &mut TestEnv) -> Result<()> {
    start_with(env, &["--plugin-memory", "2"]).await?;
    for number in [0, 1] {
        copies::define(env, number, &["v1"]).await?;
        install(env, number, 700, json!({"rollout": {}})).await?;
        at_work(env, number, 700).await?;
    }
    install(env, 0, 701, json!({"rollout": {}})).await?;
    at_work(env, 0, 701).await?;
    let pin = json!({"namespace": env.namespace.name, "name": "one", "digest": sha256(&sized(0, 700)?)});
    install(env, 0, 701, json!({"rollout": {"pins": [pin]}})).await?;
    let is_told = |reason: &'static str| move |object: &Value| object["status"]["pins"]["reason"] == reason;
    env.namespace.until("Plugin", &name(0), "to say what is missing", is_told("PluginMemoryUsed")).await?;
    env.namespace.delete("Plugin", &name(1)).await?;
    // The version is there by then, and the object is not.
    env.namespace.until("Plugin", &name(0), "to have both versions", is_told("PinnedObjectMissing")).await?;
    memory_used(env, "both versions", |used| used > f64::from(1_400 << 10)).await
}

/// Of 3,072 KiB the two that work have 2,800, one of which is replaced by a larger one that is refused, as is a third one.
async fn a_source_that_is_away_at_the_start_keeps_its_place(env: &mut TestEnv) -> Result<()> {
    let files = tempfile::tempdir()?;
    start_with(env, &["--plugin-memory", MEMORY, "--plugin-files", &files.path().to_string_lossy()]).await?;
    let file = |number: usize| files.path().join(format!("{}.wasm", name(number)));
    for (number, size) in [(0, 450), (1, 2_350), (2, 1_000)] {
        put(&file(number), &sized(number, size)?)?;
        copies::define(env, number, &["v1"]).await?;
        let source = json!({"source": {"directory": {"fileName": format!("{}.wasm", name(number))}}});
        env.namespace.apply(plugin_object(&name(number), source)).await?;
        match number {
            2 => drop(refused(env, &name(2)).await?),
            _ => drop(at_work(env, number, size).await?),
        }
    }
    put(&file(0), &sized(0, 900)?)?;
    refused(env, &name(0)).await?;

    env.host.kill().await?;
    let away = files.path().join("away");
    std::fs::rename(file(1), &away)?;
    env.host.resume().await?;
    env.host.ready().await?;
    let is_away = |object: &Value| condition(object, "Loaded")["reason"] == "FileMissing";
    let object = env.namespace.until("Plugin", &name(1), "to miss its file", is_away).await?;
    ensure!(object["status"]["memoryBytes"].as_u64() >= Some(2_350 << 10), "it has no place: {object}");
    for number in [0, 2] {
        env.host.logged(&format!("\"source\":\"the Plugin '{}'\"", name(number))).await?;
        refused(env, &name(number)).await?;
    }
    std::fs::rename(&away, file(1))?;
    at_work(env, 1, 2_350).await?;
    // Its place is not kept any longer than that.
    env.namespace.delete("Plugin", &name(1)).await?;
    for (number, size) in [(0, 900), (2, 1_000)] {
        at_work(env, number, size).await?;
    }
    Ok(())
}

/// Two of these copies have room, whatever their code keeps. The machine code of the file that is refused is there, and its name is the first.
async fn files_and_plugins_that_worked_come_before_new_files(env: &mut TestEnv) -> Result<()> {
    const KEPT: usize = 780;
    let file = |env: &TestEnv, number: usize| env.host.plugins().join(format!("{}.wasm", name(number)));
    start_with(env, &["--plugin-memory", "2"]).await?;
    for number in [0, 1, 2, 3] {
        copies::define(env, number, &["v1"]).await?;
    }
    put(&file(env, 0), &sized(0, KEPT)?)?;
    loaded(env, 0).await?;
    std::fs::remove_file(file(env, 0))?;
    memory_used(env, "nothing", |used| used == 0.0).await?;

    for number in [1, 2] {
        put(&file(env, number), &sized(number, KEPT)?)?;
        loaded(env, number).await?;
    }
    put(&file(env, 0), &sized(0, KEPT)?)?;
    not_loaded(env, 0).await?;
    restart(env).await?;
    for number in [1, 2] {
        loaded(env, number).await?;
    }
    not_loaded(env, 0).await?;

    // So it is with a Plugin in the place of a file.
    env.host.kill().await?;
    for number in [0, 1] {
        std::fs::remove_file(file(env, number))?;
    }
    env.host.resume().await?;
    install(env, 3, KEPT, json!({})).await?;
    at_work(env, 3, KEPT).await?;
    env.host.kill().await?;
    put(&file(env, 0), &sized(0, KEPT)?)?;
    env.host.resume().await?;
    not_loaded(env, 0).await?;
    loaded(env, 2).await?;
    env.host.logged(&format!("\"source\":\"the Plugin '{}'\",\"plugin\"", name(3))).await
}

/// Starts a host for `Plugin`s with little memory for them.
async fn start(env: &mut TestEnv) -> Result<()> {
    start_with(env, &["--plugin-memory", MEMORY]).await
}

/// Starts a host for `Plugin`s with these arguments.
async fn start_with(env: &mut TestEnv, more: &[&str]) -> Result<()> {
    install_crds(env).await?;
    let arguments = arguments(env, more);
    env.set_up_host(|setup| setup.arguments = arguments)?;
    env.host.resume().await?;
    env.host.ready().await
}

async fn restart(env: &mut TestEnv) -> Result<()> {
    env.host.kill().await?;
    env.host.resume().await?;
    env.host.ready().await
}

/// Applies the `Plugin` of a copy that keeps so many KiB, with these fields beside its source.
async fn install(env: &TestEnv, number: usize, kibibytes: usize, mut spec: Value) -> Result<Value> {
    store_packed(env, number, kibibytes).await?;
    let name = name(number);
    spec["source"] = json!({"configMap": {"name": name}});
    env.namespace.apply(plugin_object(&name, spec)).await
}

/// Stores a copy that keeps so many KiB, compressed: a ConfigMap has one MiB at most.
async fn store_packed(env: &TestEnv, number: usize, kibibytes: usize) -> Result<()> {
    store(env, &name(number), &[&gzipped(&sized(number, kibibytes)?)?]).await
}

/// Waits until this version of a copy is at work.
async fn at_work(env: &TestEnv, number: usize, kibibytes: usize) -> Result<Value> {
    let digest = sha256(&sized(number, kibibytes)?);
    let is_it = |object: &Value| object["status"]["digest"] == digest && is_ready(object);
    env.namespace.until("Plugin", &name(number), &format!("to be ready with {kibibytes} KiB"), is_it).await
}

/// Waits until what plugins keep is as much as is said here.
async fn memory_used(env: &TestEnv, what: &str, holds: impl Fn(f64) -> bool) -> Result<()> {
    eventually(PATIENCE, &format!("plugins to keep {what}"), async || {
        let used = env.metrics().await?.sum("pilothouse_plugin_memory_bytes", &[]);
        Ok(Look::of(holds(used), format!("{used} bytes")))
    })
    .await
}

/// Waits until the log says that the file of a copy is loaded.
async fn loaded(env: &TestEnv, number: usize) -> Result<()> {
    logged(env, number, "\"plugin loaded\"").await
}

/// Waits until the log says that the file of a copy has no memory.
async fn not_loaded(env: &TestEnv, number: usize) -> Result<()> {
    logged(env, number, "(--plugin-memory)").await
}

async fn logged(env: &TestEnv, number: usize, words: &str) -> Result<()> {
    let file = format!("{}.wasm", name(number));
    let is_it = |line: &str| line.contains(&file) && line.contains(words);
    eventually(PATIENCE, &format!("the log of {file} to say {words}"), async || {
        let log = env.host.log();
        Ok(Look::of(log.lines().any(is_it), log))
    })
    .await
}

/// Puts a file into a directory in one step.
fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    std::fs::write(&unfinished, bytes)?;
    Ok(std::fs::rename(unfinished, path)?)
}

/// The `Plugin` web with this component in a ConfigMap of its name.
async fn web(env: &TestEnv, component: &[u8]) -> Result<()> {
    store(env, "web", &[component]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await.map(drop)
}

/// Creates `Plugin`s of copies until one is refused, and returns its number. Those before are at work.
async fn fill(env: &TestEnv) -> Result<usize> {
    for number in 0..20 {
        let name = name(number);
        store(env, &name, &[&component(number)?]).await?;
        copies::define(env, number, &["v1"]).await?;
        env.namespace.apply(plugin_object(&name, json!({"source": {"configMap": {"name": name}}}))).await?;
        let is_judged = |object: &Value| is_ready(object) || condition(object, "Loaded")["status"] == "False";
        let object = env.namespace.until("Plugin", &name, "to be at work or refused", is_judged).await?;
        if !is_ready(&object) {
            return Ok(number);
        }
    }
    anyhow::bail!("20 plugins have room")
}

async fn refused(env: &TestEnv, name: &str) -> Result<Value> {
    let is_refused = |object: &Value| condition(object, "Stalled")["reason"] == "PluginMemoryUsed";
    env.namespace.until("Plugin", name, "to be refused for want of memory", is_refused).await
}

fn name(number: usize) -> String {
    format!("copy-{number:03}")
}

/// A copy that keeps so many KiB.
fn sized(number: usize, kibibytes: usize) -> Result<Vec<u8>> {
    Ok(copies::keeping(component(number)?, kibibytes))
}

fn component(number: usize) -> Result<Vec<u8>> {
    let original = std::fs::read(artifacts::guest("copies")?).context("the guest copies")?;
    Ok(copy(&original, number))
}
