//! What loaded plugins keep of the host's memory has a bound: one more is refused in words, takes nothing from those that are at work, and
//! is tried again once another one goes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cgroup::Cgroup,
    cluster::condition,
    copies::copy,
    process::memory,
    registry::Registry,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    copies,
    plugin_objects::{install_crds, next, plugin, plugin_object, store, text, works},
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

/// Starts a host for `Plugin`s with little memory for them.
async fn start(env: &mut TestEnv) -> Result<()> {
    install_crds(env).await?;
    let namespace = env.namespace.name.clone();
    env.set_up_host(|setup| {
        let arguments = ["--plugin-objects", "--host-namespace", &namespace, "--plugin-memory", MEMORY];
        setup.arguments = arguments.map(str::to_owned).to_vec();
    })?;
    env.host.resume().await?;
    env.host.ready().await
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

fn component(number: usize) -> Result<Vec<u8>> {
    let original = std::fs::read(artifacts::guest("copies")?).context("the guest copies")?;
    Ok(copy(&original, number))
}
