//! Fields that an update leaves behind and that contradict the desired ones: defaults of the API server, and fields that somebody
//! else set in their place. The API server refuses both together.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, deployment, is_ready, returning, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_strategy_is_changed_though_defaults_of_the_one_before_are_left,
        a_volume_that_somebody_replaced_comes_back,
        a_field_that_was_repaired_goes_when_it_is_no_longer_returned,
    );
}

/// The API server completes the strategy before with numbers that the one after may not have, and that nobody owns.
async fn a_strategy_is_changed_though_defaults_of_the_one_before_are_left(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let before = returns(env, with_strategy(Value::Null)).await?;
    let defaults = &before["spec"]["strategy"]["rollingUpdate"];
    ensure!(defaults["maxSurge"] == "25%", "the API server sets no defaults: {before}");
    let after = returns(env, with_strategy(json!({"type": "Recreate"}))).await?;
    ensure!(after["spec"]["strategy"] == json!({"type": "Recreate"}), "{after}");
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {after}");
    ensure!(env.drift_repaired("scripted").await? == 0.0, "the change of the plugin counts as drift");
    // And back again, where it leaves nothing behind.
    let back = returns(env, with_strategy(Value::Null)).await?;
    ensure!(back["spec"]["strategy"]["type"] == "RollingUpdate", "{back}");
    Ok(())
}

/// A volume has one source. Somebody's other one belongs to them, so no apply removes it.
async fn a_volume_that_somebody_replaced_comes_back(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let before = returns(env, with_volumes(&json!([{"name": "data", "emptyDir": {}}]))).await?;
    let volumes = json!([{"name": "data", "hostPath": {"path": "/"}}, {"name": "theirs", "emptyDir": {}}]);
    let edited = json!({"spec": {"template": {"spec": {"volumes": volumes}}}});
    let edited = env.namespace.patch("Deployment", "child", edited).await?;
    ensure!(volume(&edited, "data").is_some_and(|data| data["hostPath"]["path"] == "/"), "{edited}");
    let is_repaired = |deployment: &Value| {
        volume(deployment, "data").is_some_and(|data| *data == json!({"name": "data", "emptyDir": {}}))
    };
    let after = env.namespace.until("Deployment", "child", "to have its volume again", is_repaired).await?;
    ensure!(volume(&after, "theirs").is_some(), "what is theirs is gone: {after}");
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew: {after}");
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;

    let without = returns(env, with_volumes(&json!([]))).await?;
    ensure!(volume(&without, "data").is_none(), "it stays though the plugin no longer returns it: {without}");
    Ok(())
}

/// The repair of a changed key is a patch, whose fields the API server would keep for whoever wrote it.
async fn a_field_that_was_repaired_goes_when_it_is_no_longer_returned(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    returns(env, with_ports(&json!([{"name": "http", "containerPort": 8080}]))).await?;
    let container =
        json!({"name": "child", "image": "example.com/child:1", "ports": [{"name": "http", "containerPort": 9}]});
    let edited = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    env.namespace.patch("Deployment", "child", edited).await?;
    let is_repaired = |deployment: &Value| ports(deployment)[0]["containerPort"] == 8080;
    env.namespace.until("Deployment", "child", "to have its port again", is_repaired).await?;
    // A repair is two writes, and the port is there after the first.
    env.metrics_at_rest().await?;

    let without = returns(env, with_ports(&json!([]))).await?;
    ensure!(ports(&without).is_null(), "it stays though the plugin no longer returns it: {without}");
    Ok(())
}

/// Lets the plugin return this child, and gives it as it is once the object is ready.
async fn returns(env: &TestEnv, child: Value) -> Result<Value> {
    env.namespace.apply(scripted("web", returning([child]))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.namespace.get("Deployment", "child").await?.context("the child is gone")
}

fn container() -> Value {
    json!({"name": "child", "image": "example.com/child:1"})
}

fn with_strategy(strategy: Value) -> Value {
    let mut child = deployment("child", container());
    child["spec"]["strategy"] = strategy;
    child
}

fn with_volumes(volumes: &Value) -> Value {
    let mut child = deployment("child", container());
    child["spec"]["template"]["spec"]["volumes"] = volumes.clone();
    child
}

fn with_ports(ports: &Value) -> Value {
    let mut container = container();
    container["ports"] = ports.clone();
    deployment("child", container)
}

fn volume<'v>(deployment: &'v Value, name: &str) -> Option<&'v Value> {
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array()?;
    volumes.iter().find(|volume| volume["name"] == name)
}

fn ports(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
}
