//! The identity of a kind is its group and name, without the version: there is one plugin for each kind, and a manifest names
//! each kind in one version.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::{
    command::{pilothouse, repacked, with_manifest},
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready, returning, scripted},
};

/// How often an object is touched. Two active plugins would overwrite each other's children each time.
const TOUCHES: usize = 5;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_second_plugin_for_another_version_of_a_kind_is_refused,
        of_two_plugins_for_two_versions_of_a_kind_one_is_active,
        a_manifest_that_names_a_kind_in_two_versions_is_refused,
        a_manifest_may_look_a_kind_up_in_another_version,
    );
}

async fn a_second_plugin_for_another_version_of_a_kind_is_refused(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(scripted("web", returning([config_map("web", json!({}))]))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.host.install(beta().await?.path(), "scripted-beta.wasm")?;
    env.host.logged("is reconciled by plugin 'scripted' already, from").await?;
    touch_often(env, "scripted").await?;
    is_created_once(env).await
}

/// It does not matter which one is loaded first.
async fn of_two_plugins_for_two_versions_of_a_kind_one_is_active(env: &mut TestEnv) -> Result<()> {
    env.install("scripted")?;
    env.host.install(beta().await?.path(), "scripted-beta.wasm")?;
    env.host.resume().await?;
    env.host.logged("already, from").await?;
    let log = env.host.log();
    let at_work = if log.contains("reconciled by plugin 'scripted' already") { "scripted" } else { "scripted-beta" };
    env.namespace.apply(scripted("web", returning([config_map("web", json!({}))]))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    touch_often(env, at_work).await?;
    is_created_once(env).await
}

/// The message names the kind and both versions, and the plugin is not loaded.
async fn a_manifest_that_names_a_kind_in_two_versions_is_refused(env: &mut TestEnv) -> Result<()> {
    // The test does not wait until the host is ready, because the host has no plugin.
    env.host.resume().await?;
    let autoscalers = ["autoscaling/v1", "autoscaling/v2"].map(|version| kind_ref(version, "HorizontalPodAutoscaler"));
    let of_itself = [kind_ref("test.pilothouse.dev/v1beta1", "Scripted")];
    let cases = [
        (json!(autoscalers), ["HorizontalPodAutoscaler", "autoscaling/v1", "autoscaling/v2"]),
        (json!(of_itself), ["Scripted", "test.pilothouse.dev/v1", "test.pilothouse.dev/v1beta1"]),
    ];
    for (number, (children, words)) in cases.into_iter().enumerate() {
        let plugin = with_manifest(&artifacts::guest("scripted")?, |manifest| manifest["children"] = children)?;
        pilothouse(["inspect".as_ref(), plugin.path().as_os_str()]).await?.failed_with(&words)?;
        let name = format!("scripted-{number}.wasm");
        env.host.install(plugin.path(), &name)?;
        env.host.logged(&name).await?;
        let log = env.host.log();
        let line = log.lines().find(|line| line.contains(&name)).context("no line")?;
        ensure!(words.iter().all(|word| line.contains(word)), "the log does not name {words:?}: {line}");
        ensure!(line.contains("the plugin was not loaded"), "it was loaded: {line}");
    }
    Ok(())
}

/// A lookup does not make the plugin an owner.
async fn a_manifest_may_look_a_kind_up_in_another_version(_: &mut TestEnv) -> Result<()> {
    let plugin = with_manifest(&artifacts::guest("scripted")?, |manifest| {
        manifest["children"] = json!([kind_ref("autoscaling/v2", "HorizontalPodAutoscaler")]);
        manifest["lookups"] = json!([kind_ref("autoscaling/v1", "HorizontalPodAutoscaler")]);
    })?;
    pilothouse(["inspect".as_ref(), plugin.path().as_os_str()]).await?.succeeded()?;
    Ok(())
}

fn kind_ref(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind})
}

/// The plugin `scripted` under another name, for another version of its kind.
async fn beta() -> Result<NamedTempFile> {
    repacked(&artifacts::guest("scripted")?, |manifest| {
        manifest["name"] = "scripted-beta".into();
        manifest["reconciles"]["apiVersion"] = "test.pilothouse.dev/v1beta1".into();
    })
    .await
}

async fn touch_often(env: &TestEnv, plugin: &str) -> Result<()> {
    for turn in 0..TOUCHES {
        env.reconciled_after(plugin, async || env.touch("Scripted", "web", turn).await).await?;
    }
    Ok(())
}

async fn is_created_once(env: &TestEnv) -> Result<()> {
    let writes = env.host_writes().await?;
    let of_child: Vec<_> = writes.iter().filter(|write| write.contains(" configmaps/ web ")).collect();
    ensure!(of_child == ["patch configmaps/ web 201"], "the child was written {of_child:?}");
    Ok(())
}
