//! A host that does not have the version that works, as on another node, gets it from where it came, or goes no further.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use pilothouse_tests::{artifacts, cluster::condition, registry::Registry};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    canary::{LONG, OBJECTS, SHARE, arguments, begin, marked, names, settled},
    plugin_objects::{install_by_command, next, plugin, plugin_object, sha256, start, store, text, works},
    registries::{push, source},
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_version_that_nobody_has_any_more_is_not_skipped,
        an_empty_cache_is_filled_from_where_the_old_version_came,
        an_empty_cache_is_filled_from_the_registry_of_the_old_version,
    );
}

/// Without it there is nothing to go back to, so nothing goes forward.
async fn a_version_that_nobody_has_any_more_is_not_skipped(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    env.host.stop().await?;
    store(env, "web", &[&next()?]).await?;
    let _cache = resume_with_an_empty_cache(env).await?;
    let stalled = |object: &Value| condition(object, "Stalled")["reason"] == "StableVersionMissing";
    let object = env.namespace.until("Plugin", "web", "to miss the old version", stalled).await?;
    let message = text(&condition(&object, "Stalled")["message"]).to_owned();
    ensure!(message.contains(&sha256(&plugin()?)) && message.contains("Immediate"), "it does not help: {message}");
    ensure!(marked(env, 0).await?.is_empty(), "somebody works");
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": null}})).await?;
    marked(env, OBJECTS).await?;
    let is_over = |object: &Value| object["status"]["version"] == "0.2.0";
    let object = env.namespace.until("Plugin", "web", "to have the new version", is_over).await?;
    let versions: Vec<_> = object["status"]["versions"].as_array().into_iter().flatten().collect();
    let worked = [plugin()?, next()?].map(|bytes| sha256(&bytes));
    ensure!(versions.iter().all(|it| worked.contains(&text(&it["digest"]).to_owned())), "{versions:?}");
    Ok(())
}

/// As on another node: `install` leaves the pieces of the version that works there for as long as they are needed.
async fn an_empty_cache_is_filled_from_where_the_old_version_came(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    for name in names() {
        works(env, &name).await?;
    }
    settled(env, "AppService").await?;
    let rollout = json!({"strategy": "Canary", "steps": [{"objects": SHARE.1, "seconds": LONG}]});
    env.namespace.patch("Plugin", "app-service", json!({"spec": {"rollout": rollout}})).await?;
    install_by_command(env, &artifacts::guest("app-service-next")?, &[]).await?.succeeded()?;
    let chosen = marked(env, SHARE.1).await?;
    goes_on_elsewhere(env, &chosen).await
}

/// The tag stands for the new version by then, and the registry keeps the old one under the digest of its manifest.
async fn an_empty_cache_is_filled_from_the_registry_of_the_old_version(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let registry = Registry::start(false).await?;
    push(&registry, &artifacts::plugin("app-service")?, "web:latest").await?;
    let mut spec = source(&registry, "web:latest");
    spec["rollout"] = json!({"strategy": "Canary", "steps": [{"objects": SHARE.1, "seconds": LONG}]});
    env.namespace.apply(plugin_object("web", spec)).await?;
    for name in names() {
        works(env, &name).await?;
    }
    let is_told = |object: &Value| object["status"]["stableSource"]["digest"].is_string();
    let object = env.namespace.until("Plugin", "web", "to say where it comes from", is_told).await?;
    let image = text(&object["status"]["stableSource"]["source"]["oci"]["image"]).to_owned();
    ensure!(image.contains("@sha256:"), "a tag may stand for something else later: {image}");
    settled(env, "AppService").await?;
    push(&registry, &artifacts::guest("app-service-next")?, "web:latest").await?;
    let chosen = marked(env, SHARE.1).await?;
    goes_on_elsewhere(env, &chosen).await
}

/// A host on another node gets the old version, answers all objects, and tries the new one on the same objects.
async fn goes_on_elsewhere(env: &mut TestEnv, chosen: &BTreeSet<String>) -> Result<()> {
    env.host.kill().await?;
    let _cache = resume_with_an_empty_cache(env).await?;
    all_scaled(env).await?;
    ensure!(marked(env, SHARE.1).await? == *chosen, "others belong to it for the new host");
    Ok(())
}

/// Starts the host as on another node. The folder is its cache.
async fn resume_with_an_empty_cache(env: &mut TestEnv) -> Result<TempDir> {
    let cache = tempfile::tempdir()?;
    let arguments = arguments(env, &[]);
    env.set_up_host(|setup| {
        setup.arguments = arguments;
        setup.cache = cache.path().join("cache");
    })?;
    env.host.resume().await?;
    Ok(cache)
}

/// Asks every object for something new, and waits until its Deployment has it.
async fn all_scaled(env: &TestEnv) -> Result<()> {
    env.host.ready().await?;
    for name in names() {
        env.namespace.patch("AppService", &name, json!({"spec": {"replicas": 4}})).await?;
        let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 4;
        env.namespace.until("Deployment", &name, "to be scaled", scaled).await?;
    }
    Ok(())
}
