//! Each child says which version of its plugin wrote it last, and no child is written only to say so.

use anyhow::{Result, ensure};
use pilothouse_tests::{artifacts, cluster::HOST_USER};
use serde_json::{Value, json};

use crate::{
    command::{pilothouse, repacked},
    plugin_objects::{plugin, plugin_object, start, store, works},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(suite, a_child_says_which_version_wrote_it);
}

async fn a_child_says_which_version_wrote_it(env: &mut TestEnv) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    works(env, "shop").await?;
    env.metrics_at_rest().await?;
    made_by(env, "Deployment", "0.1.0").await?;
    made_by(env, "Service", "0.1.0").await?;
    let before = env.writes_of(HOST_USER).await?.len();

    // The same answers under another version.
    let other = repacked(&artifacts::plugin("app-service")?, |manifest| manifest["version"] = "0.1.1".into()).await?;
    store(env, "web", &[&std::fs::read(other.path())?]).await?;
    let shows = |object: &Value| object["status"]["version"] == "0.1.1" && is_ready(object);
    env.namespace.until("Plugin", "web", "to show the other version", shows).await?;
    env.metrics_at_rest().await?;
    let writes = env.writes_of(HOST_USER).await?.split_off(before);
    ensure!(!writes.iter().any(|write| write.contains(" shop")), "it wrote to say who made it: {writes:?}");
    made_by(env, "Deployment", "0.1.0").await?;

    env.namespace.patch("AppService", "shop", json!({"spec": {"replicas": 5}})).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 5;
    env.namespace.until("Deployment", "shop", "to be scaled", scaled).await?;
    made_by(env, "Deployment", "0.1.1").await?;
    made_by(env, "Service", "0.1.0").await?;
    let kubeconfig = env.namespace.setup().kubeconfig;
    let arguments = ["why", "appservice/shop", "-o", "json", "-n", &env.namespace.name, "--kubeconfig"];
    let mut arguments: Vec<std::ffi::OsString> = arguments.into_iter().map(Into::into).collect();
    arguments.push(kubeconfig.into());
    let why: Value = serde_json::from_str(&pilothouse(arguments).await?.succeeded()?)?;
    let children = why["children"].as_array().into_iter().flatten();
    let told: Vec<_> = children.map(|child| (&child["child"], &child["madeBy"])).collect();
    let expected = [(json!("Deployment 'shop'"), json!("0.1.1")), (json!("Service 'shop'"), json!("0.1.0"))];
    ensure!(expected.iter().all(|(child, version)| told.contains(&(child, version))), "{told:?}");
    Ok(())
}

async fn made_by(env: &TestEnv, kind: &str, version: &str) -> Result<()> {
    let child = env.namespace.get(kind, "shop").await?.unwrap_or_default();
    let found = &child["metadata"]["annotations"]["pilothouse.dev/plugin-version"];
    ensure!(found == version, "the {kind} says {found}, not {version}");
    Ok(())
}
