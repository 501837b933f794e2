//! Outdated caches: what the host learns late or never of models, servers and their children leads to the same result.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::{Cluster, PATIENCE},
    proxy::Proxy,
    thoroughness,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{MODEL, deployment, image, model, model_deployment, server};
use crate::{
    state::State,
    suite::{Suite, heavy, heavy_with},
    test_env::TestEnv,
};

/// The delay of a watch.
const LATE: Duration = Duration::from_secs(2);

/// Longer than the host holds a status back that follows another one.
const HELD_BACK: Duration = Duration::from_millis(1_500);

pub fn register(suite: &mut Suite) {
    heavy!(suite, a_model_lists_who_serves_it_however_late_it_learns);
    heavy_with!(
        suite,
        thoroughness::all(),
        late_watches_lead_to_the_same_servers,
        a_model_that_changes_unnoticed_is_served_once_it_is_noticed,
    );
}

/// A kind with its plugin, an object, a change of it, and the workload that it has.
struct Case {
    kind: &'static str,
    plugin: &'static str,
    object: Value,
    workload: (&'static str, &'static str),
}

fn cases() -> [Case; 3] {
    [
        Case {
            kind: "LLMModel",
            plugin: "ai-llm-model",
            object: server("a", json!({})),
            workload: ("Deployment", "llmmodel-a"),
        },
        Case {
            kind: "LLMDeployment",
            plugin: "llm-deployment",
            object: deployment("b", json!({})),
            workload: ("Deployment", "b"),
        },
        Case {
            kind: "ModelDeployment",
            plugin: "model-deployment",
            object: model_deployment("c", json!({"sla": {"maxLatency": "1s"}})),
            workload: ("StatefulSet", "c"),
        },
    ]
}

/// On a control plane whose only writers are the host and the test.
async fn start(env: &mut TestEnv) -> Result<Proxy> {
    env.move_to(Cluster::quiet().await?).await?;
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    env.start(&["ai-llm-model", "llm-model", "llm-deployment", "model-deployment"]).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    Ok(proxy)
}

/// Every event is two seconds late while an object changes and changes back, and its workload is edited and deleted.
async fn late_watches_lead_to_the_same_servers(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    for Case { kind, plugin, object, workload } in cases() {
        let name = object["metadata"]["name"].as_str().context("no name")?.to_owned();
        env.namespace.apply(object).await?;
        env.namespace.until(workload.0, workload.1, "to be created", |_| true).await?;
        stays_quiet(env, &proxy, &[(kind, &name, plugin)]).await?;
        let before = State::of(&env.namespace, kind, &name).await?;

        proxy.watches().delay(LATE);
        for port in [81, 82] {
            env.namespace.patch(kind, &name, json!({"spec": {"port": port}})).await?;
            env.namespace.patch(workload.0, workload.1, json!({"spec": {"replicas": 7}})).await?;
            env.namespace.delete(workload.0, workload.1).await?;
            let has_port = |workload: &Value| {
                workload["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] == port
            };
            env.namespace.until(workload.0, workload.1, "to be made anew", has_port).await?;
        }
        env.namespace.patch(kind, &name, json!({"spec": {"port": port_of(kind)}})).await?;
        let same = |state: &State| Look::of(state.children == before.children, state);
        let what = format!("the children from before, {before:?}");
        eventually(PATIENCE, &what, async || Ok(same(&State::of(&env.namespace, kind, &name).await?))).await?;
        proxy.watches().delay(Duration::ZERO);
        stays_quiet(env, &proxy, &[(kind, &name, plugin)]).await?;
        let after = State::of(&env.namespace, kind, &name).await?;
        ensure!(after.children == before.children, "it did not stay: {after:?}");
    }
    Ok(())
}

/// What the port was: the schema's default of an LLMDeployment, and the engine's own.
fn port_of(kind: &str) -> Value {
    if kind == "LLMDeployment" { json!(8080) } else { Value::Null }
}

/// The model and the deployment of the tests with a frozen watch, with their plugins.
const GPT_SMALL: Reconciled = (MODEL, "gpt-small", "llm-model");
const CHAT: Reconciled = ("LLMDeployment", "chat", "llm-deployment");

/// An object's kind and name, and its plugin.
type Reconciled<'a> = (&'a str, &'a str, &'a str);

/// Checks that the host has finished with these objects: after two more reconciles of each, and with no status held back any more, a third
/// one writes nothing. Objects that look each other up belong into one call, as a late write for one of them is none of the other's.
async fn stays_quiet(env: &TestEnv, proxy: &Proxy, objects: &[Reconciled<'_>]) -> Result<()> {
    for turn in 0..3 {
        if turn == 2 {
            proxy.writes().until_none_for(HELD_BACK).await?;
            proxy.writes().count();
        }
        for (kind, name, plugin) in objects {
            env.reconciled_after(plugin, async || env.touch(kind, name, turn).await).await?;
        }
    }
    let writes = proxy.writes().seen();
    ensure!(writes.is_empty(), "{objects:?}: the host goes on writing: {writes:#?}");
    Ok(())
}

/// While the watch of models delivers nothing, a model is edited and its deployment as well: the old model is served until the new one is
/// known.
async fn a_model_that_changes_unnoticed_is_served_once_it_is_noticed(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    env.namespace.apply(deployment("chat", json!({}))).await?;
    let is_listed = |model: &Value| model["status"]["referencedBy"] == json!(["chat"]);
    env.namespace.until(MODEL, "gpt-small", "to list its deployment", is_listed).await?;
    // The answer to a write tells the host what else has changed, so none may follow.
    stays_quiet(env, &proxy, &[GPT_SMALL, CHAT]).await?;
    proxy.watches().freeze("llmmodels");
    env.namespace.patch(MODEL, "gpt-small", json!({"spec": {"image": "your-registry/gpt-small:v2"}})).await?;
    env.namespace.patch("LLMDeployment", "chat", json!({"spec": {"replicas": 3}})).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 3;
    let served = env.namespace.until("Deployment", "chat", "to have three replicas", scaled).await?;
    ensure!(image(&served) == "your-registry/gpt-small:v1", "nobody could know the new model: {served}");
    proxy.watches().thaw();
    let is_new = |deployment: &Value| image(deployment) == "your-registry/gpt-small:v2" && scaled(deployment);
    env.namespace.until("Deployment", "chat", "to have the new image", is_new).await?;
    stays_quiet(env, &proxy, &[GPT_SMALL, CHAT]).await
}

/// While the watch of Services delivers nothing, a deployment comes and another one goes.
async fn a_model_lists_who_serves_it_however_late_it_learns(env: &mut TestEnv) -> Result<()> {
    let proxy = start(env).await?;
    let lists = async |names: Value| {
        let holds = |model: &Value| model["status"]["referencedBy"] == names;
        env.namespace.until(MODEL, "gpt-small", &format!("to list {names}"), holds).await
    };
    env.namespace.apply(deployment("a", json!({}))).await?;
    lists(json!(["a"])).await?;
    proxy.watches().freeze("services");
    env.namespace.delete("LLMDeployment", "a").await?;
    env.namespace.until_gone("Service", "a").await?;
    env.namespace.apply(deployment("b", json!({}))).await?;
    env.namespace.until("Service", "b", "to be created", |_| true).await?;
    proxy.watches().thaw();
    lists(json!(["b"])).await?;
    stays_quiet(env, &proxy, &[GPT_SMALL, ("LLMDeployment", "b", "llm-deployment")]).await
}
