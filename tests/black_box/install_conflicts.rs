//! `pilothouse install` and `uninstall` beside other plugins, accounts of others and other installs: nobody loses what is theirs.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use crate::{
    command::{Ended, repacked},
    plugin_accounts::command,
    plugin_objects::{install_by_command, start, text, works},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

/// The label of what belongs to a plugin.
const COMPONENT_OF: &str = "pilothouse.dev/component-of";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        plugins_whose_names_are_alike_share_no_rights,
        rights_of_another_plugin_are_left_alone,
        an_account_of_somebody_else_outlives_the_plugin,
        what_is_left_of_a_deleted_plugin_is_uninstalled,
        of_two_installs_at_once_each_tells_the_truth,
    );
}

async fn plugins_whose_names_are_alike_share_no_rights(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    works(env, "shop").await?;
    for name in ["app-service-account", "app-service-impersonation"] {
        let packed = repacked(&artifacts::guest("misbehaver")?, |manifest| {
            manifest["name"] = name.into();
            manifest["lookups"] = json!([]);
        })
        .await?;
        install_by_command(env, packed.path(), &[]).await?.succeeded()?;
        uninstall(env, name).await?.succeeded()?;
    }
    env.namespace.patch("AppService", "shop", json!({"spec": {"replicas": 5}})).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 5;
    env.namespace.until("Deployment", "shop", "to be scaled", scaled).await.map(drop)
}

async fn rights_of_another_plugin_are_left_alone(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let metadata = json!({"name": "pilothouse-plugin-app-service", "labels": {COMPONENT_OF: "other"}});
    let role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": []});
    let before = env.namespace.apply(role).await?;
    let refused = install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?;
    refused.failed_with(&["ClusterRole 'pilothouse-plugin-app-service' belongs to the plugin 'other'"])?;
    let after = env.namespace.get("ClusterRole", "pilothouse-plugin-app-service").await?.context("it is gone")?;
    ensure!(before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"], "it was written: {after}");
    Ok(())
}

async fn an_account_of_somebody_else_outlives_the_plugin(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "team"}});
    env.namespace.apply(account).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &["--account", "team"]).await?.succeeded()?;
    works(env, "shop").await?;
    uninstall(env, "app-service").await?.succeeded()?;
    let left = env.namespace.get("ServiceAccount", "team").await?.context("the account is deleted")?;
    ensure!(left["metadata"]["labels"][COMPONENT_OF].is_null(), "it is taken for the plugin's own: {left}");
    Ok(())
}

async fn what_is_left_of_a_deleted_plugin_is_uninstalled(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    env.namespace.delete("Plugin", "app-service").await?;
    let ended = uninstall(env, "app-service").await?;
    ensure!(ended.errors.contains("the Plugin is deleted already"), "{ended:?}");
    ended.succeeded()?;
    let role = env.namespace.get("ClusterRole", "pilothouse-plugin-app-service.account").await?;
    ensure!(role.is_none(), "rights are left: {role:?}");
    uninstall(env, "app-service").await?.failed_with(&["there is no Plugin 'app-service'"])
}

/// Each comes to an end that is true for its own version, and the component that the `Plugin` names in the end is there.
async fn of_two_installs_at_once_each_tells_the_truth(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    install_by_command(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    let mut versions = Vec::new();
    for version in ["0.7.0", "0.8.0", "0.9.0"] {
        let guest = artifacts::guest("app-service-next")?;
        versions.push((version, repacked(&guest, |manifest| manifest["version"] = version.into()).await?));
    }
    let installs = versions.iter().map(|(_, file)| install_by_command(env, file.path(), &[]));
    let ended = futures::future::join_all(installs).await;
    for ((version, _), ended) in versions.iter().zip(ended) {
        let ended = ended?;
        let is_true = match ended.code {
            0 => ended.errors.contains(&format!("version {version} is at work")),
            _ => ended.errors.contains("somebody has installed another version meanwhile"),
        };
        ensure!(is_true, "{version}: {ended:?}");
    }
    let named = |object: &Value| object["status"]["digest"] == object["spec"]["digest"] && is_ready(object);
    let object = env.namespace.until("Plugin", "app-service", "to have the last version", named).await?;
    let source = text(&object["spec"]["source"]["configMap"]["name"]);
    let pieces = env.namespace.list("ConfigMap").await?;
    let is_there = pieces.iter().any(|piece| text(&piece["metadata"]["name"]).starts_with(source));
    ensure!(is_there, "the component of {source} is deleted");
    Ok(())
}

async fn uninstall(env: &TestEnv, name: &str) -> Result<Ended> {
    command(env, &["uninstall", name, "--yes"]).await
}
