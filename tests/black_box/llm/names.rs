//! Objects whose names are alike, and those whose children would have one name. The first one has it, the others say whose it is, and get it
//! when it is free. None touches what is another's.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::{Awaited, Cluster, PATIENCE, condition},
    lws::LwsController,
    needs,
    third_party::LWS_CONTROLLER,
};
use serde_json::{Value, json};

use super::words::{MODEL, deployment, model, model_deployment, says, server, serves};
use crate::{
    suite::{Suite, heavy_with, tests},
    test_env::{TestEnv, is_ready},
};

/// All plugins that serve models.
const ALL: [&str; 4] = ["ai-llm-model", "llm-model", "llm-deployment", "model-deployment"];

/// The kinds of children that objects of several kinds have.
const CHILDREN: [&str; 5] = ["Deployment", "StatefulSet", "Service", "PodDisruptionBudget", "ConfigMap"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        objects_of_all_kinds_with_one_name_take_nothing_from_each_other,
        a_shortened_name_that_another_object_has_is_told,
        a_model_named_as_the_headless_service_of_another_one_says_so_and_follows_it,
    );
    heavy_with!(
        suite,
        needs::program(&LWS_CONTROLLER, "make third-party"),
        a_model_named_as_the_groups_of_another_one_has_pods_of_its_own,
        a_service_of_somebody_else_under_the_name_of_groups_is_told,
    );
}

async fn objects_of_all_kinds_with_one_name_take_nothing_from_each_other(env: &mut TestEnv) -> Result<()> {
    env.start(&ALL).await?;
    env.namespace.apply(model("x", json!({}))).await?;
    env.namespace.apply(deployment("x", json!({"modelRef": "x"}))).await?;
    env.namespace.apply(server("x", json!({}))).await?;
    for kind in ["LLMDeployment", "LLMModel"] {
        serves(env, kind, "x").await?;
    }
    let refers = |model: &Value| model["status"]["referencedBy"] == json!(["x"]);
    env.namespace.until(MODEL, "x", "to know who refers to it", refers).await?;
    let first = owned(env).await?;

    // A Service of one kind, and a Deployment of another one, have the name already.
    env.namespace.apply(model_deployment("x", json!({}))).await?;
    env.namespace.apply(deployment("llmmodel-x", json!({"modelRef": "x"}))).await?;
    for (kind, name, owner) in
        [("ModelDeployment", "x", "LLMDeployment 'x'"), ("LLMDeployment", "llmmodel-x", "LLMModel 'x'")]
    {
        let message = says(env, (kind, name), "Ready", ("False", "NameConflict")).await?;
        ensure!(message.contains(owner), "whose the name is remains open: {message}");
    }
    for turn in 0..2 {
        env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", "x", turn).await).await?;
        env.reconciled_after("llm-deployment", async || env.touch("LLMDeployment", "llmmodel-x", turn).await).await?;
    }
    let second = env.namespace.get("ModelDeployment", "x").await?.context("no object")?;
    ensure!(second["status"]["url"] == "", "an address of another object: {}", second["status"]);
    are_as_before(env, &first).await?;
    for (name, component) in [("x", "llmdeployment"), ("llmmodel-x", "llmmodel")] {
        leads_only_to(env, name, component).await?;
    }

    // They go without a trace, and what they waited for goes on.
    env.namespace.delete("LLMDeployment", "llmmodel-x").await?;
    env.namespace.until_gone("LLMDeployment", "llmmodel-x").await?;
    are_as_before(env, &first).await?;
    env.namespace.delete("LLMDeployment", "x").await?;
    gets_its_names(env, "ModelDeployment", "x").await?;
    let service = env.namespace.until("Service", "x", "to be made anew", |_| true).await?;
    ensure!(service["metadata"]["ownerReferences"][0]["kind"] == "ModelDeployment", "{service}");
    serves(env, "LLMModel", "x").await?;
    Ok(())
}

/// The names of all children that are there, each with what it is and whose it is.
async fn owned(env: &TestEnv) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for kind in CHILDREN {
        for object in env.namespace.list(kind).await? {
            let metadata = &object["metadata"];
            if !metadata["ownerReferences"].is_null() {
                let what = json!([metadata["uid"], metadata["ownerReferences"], object["spec"], object["data"]]);
                all.insert(format!("{kind} {}", metadata["name"]), what);
            }
        }
    }
    Ok(all)
}

/// Checks that these children have not changed.
async fn are_as_before(env: &TestEnv, before: &BTreeMap<String, Value>) -> Result<()> {
    let now = owned(env).await?;
    for (name, was) in before {
        ensure!(now.get(name) == Some(was), "{name} was {was}, and is {:?}", now.get(name));
    }
    Ok(())
}

/// Checks that a Service selects Pods, all of which are of this kind of object.
async fn leads_only_to(env: &TestEnv, service: &str, component: &str) -> Result<()> {
    let service = env.namespace.get("Service", service).await?.context("no Service")?;
    let selector = service["spec"]["selector"].as_object().context("no selector")?.clone();
    let is_selected = |pod: &&Value| selector.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value);
    let pods = env.namespace.list("Pod").await?;
    let selected: Vec<_> = pods.iter().filter(is_selected).collect();
    ensure!(!selected.is_empty(), "it leads nowhere");
    for pod in selected {
        ensure!(pod["metadata"]["labels"]["app.kubernetes.io/component"] == component, "{}", pod["metadata"]);
    }
    Ok(())
}

/// Waits until an object that was refused its names has them and serves: nobody tells it that they are free.
async fn gets_its_names(env: &TestEnv, kind: &str, name: &str) -> Result<()> {
    let holds = |object: &Value| is_ready(object) && object["status"]["readyReplicas"] == object["spec"]["replicas"];
    let awaited = Awaited { kind, name, what: "to get its names and to serve" };
    env.namespace.until_within(PATIENCE * 3, &awaited, holds).await?;
    Ok(())
}

/// Makes an object of this name.
type Make = fn(&str, Value) -> Value;

/// Names that no child can have as they are.
fn unfit() -> [String; 2] {
    ["a.b".to_owned(), "a".repeat(70)]
}

/// What a name becomes is a name as well, and another object may have it.
async fn a_shortened_name_that_another_object_has_is_told(env: &mut TestEnv) -> Result<()> {
    env.start(&ALL).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    let kinds: [(&str, &str, Make); 3] = [
        ("LLMModel", "llmmodel-", server),
        ("LLMDeployment", "d-", deployment),
        ("ModelDeployment", "m-", model_deployment),
    ];
    let mut pairs = Vec::new();
    for (kind, prefix, make) in kinds {
        for name in unfit() {
            // So that objects of different kinds do not meet: the first kind has a prefix by itself.
            let name = if kind == "LLMModel" { name } else { format!("{prefix}{name}") };
            env.namespace.apply(make(&name, json!({}))).await?;
            serves(env, kind, &name).await?;
            let service = service_of(env, kind, &name).await?;
            let made = if kind == "LLMModel" { service.trim_start_matches(prefix) } else { service.as_str() };
            ensure!(made != name, "{name} is no name that has to be changed");
            env.namespace.apply(make(made, json!({}))).await?;
            pairs.push((kind, name, made.to_owned(), service));
        }
    }
    for (kind, name, made, service) in &pairs {
        let message = says(env, (kind, made), "Ready", ("False", "NameConflict")).await?;
        ensure!(message.contains(&format!("{kind} '{name}'")), "{message}");
        ensure!(service_of(env, kind, name).await? == *service, "{kind} '{name}' has lost its Service");
        let object = env.namespace.get(kind, name).await?.context("no object")?;
        ensure!(condition(&object, "Ready")["status"] == "True", "{}", object["status"]);
        env.namespace.delete(kind, name).await?;
    }
    for (kind, _, made, service) in &pairs {
        gets_its_names(env, kind, made).await?;
        ensure!(service_of(env, kind, made).await? == *service, "{kind} '{made}' has another Service");
    }
    Ok(())
}

/// The name of the Service of an object.
async fn service_of(env: &TestEnv, kind: &str, name: &str) -> Result<String> {
    let services = env.namespace.list("Service").await?;
    let is_its = |service: &&Value| {
        let owner = &service["metadata"]["ownerReferences"][0];
        owner["kind"] == kind && owner["name"] == name && service["spec"]["clusterIP"] != "None"
    };
    let found = services.iter().find(is_its).with_context(|| format!("{kind} '{name}' has no Service"))?;
    Ok(found["metadata"]["name"].as_str().context("no name")?.to_owned())
}

/// The controller of LeaderWorkerSets makes StatefulSets under the names of the set and of its groups, and does not look whose they are.
async fn a_model_named_as_the_groups_of_another_one_has_pods_of_its_own(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let _controller = LwsController::start(&env.cluster).await?;
    env.start(&["model-deployment"]).await?;
    for name in ["chat-mn", "chat-mn-0"] {
        env.namespace.apply(model_deployment(name, json!({}))).await?;
        serves(env, "ModelDeployment", name).await?;
    }
    env.namespace.apply(model_deployment("chat", json!({"tensorParallelSize": 4, "gpusPerNode": 2}))).await?;
    gets_its_names(env, "ModelDeployment", "chat").await?;
    for name in ["chat-mn", "chat-mn-0"] {
        serves(env, "ModelDeployment", name).await?;
    }
    Ok(())
}

/// The controller of LeaderWorkerSets would use it, and the Pods of a group would wait for each other's names for ever.
async fn a_service_of_somebody_else_under_the_name_of_groups_is_told(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::start().await?).await?;
    let _controller = LwsController::start(&env.cluster).await?;
    env.start(&["model-deployment", "llm-model", "llm-deployment"]).await?;
    env.namespace.apply(model("gpt-small", json!({}))).await?;
    env.namespace.apply(deployment("chat-mn", json!({}))).await?;
    serves(env, "LLMDeployment", "chat-mn").await?;
    let theirs = env.namespace.get("Service", "chat-mn").await?.context("no Service")?;
    env.namespace.apply(model_deployment("chat", json!({"tensorParallelSize": 4, "gpusPerNode": 2}))).await?;
    for told in ["GroupNamesFree", "Ready"] {
        let message = says(env, ("ModelDeployment", "chat"), told, ("False", "NameConflict")).await?;
        ensure!(message.contains("Service 'chat-mn'") && message.contains("LLMDeployment 'chat-mn'"), "{message}");
    }
    ensure!(env.namespace.list("LeaderWorkerSet").await?.is_empty(), "it has Pods that do not find each other");
    let now = env.namespace.get("Service", "chat-mn").await?.context("the Service is gone")?;
    ensure!(now["spec"] == theirs["spec"] && now["metadata"]["uid"] == theirs["metadata"]["uid"], "{now}");
    env.namespace.delete("LLMDeployment", "chat-mn").await?;
    gets_its_names(env, "ModelDeployment", "chat").await?;
    let names = env.namespace.get("Service", "chat-mn").await?.context("no Service")?;
    ensure!(names["metadata"]["ownerReferences"][0]["kind"] == "LeaderWorkerSet", "{names}");

    // And the other way round.
    env.namespace.apply(deployment("chat-mn", json!({}))).await?;
    let message = says(env, ("LLMDeployment", "chat-mn"), "Ready", ("False", "NameConflict")).await?;
    ensure!(message.contains("LeaderWorkerSet 'chat-mn'"), "{message}");
    serves(env, "ModelDeployment", "chat").await?;
    Ok(())
}

/// The Service by which the Pods of `x` have host names is `x-headless`, and so is that of the clients of `x-headless`. Other names would be
/// no way out: the Pods of a StatefulSet cannot get another Service, and all that exist would have to be made anew.
async fn a_model_named_as_the_headless_service_of_another_one_says_so_and_follows_it(env: &mut TestEnv) -> Result<()> {
    const NAMES: [&str; 2] = ["x", "x-headless"];
    env.start(&["model-deployment"]).await?;
    for (first, second) in [(NAMES[0], NAMES[1]), (NAMES[1], NAMES[0])] {
        env.namespace.apply(model_deployment(first, json!({}))).await?;
        serves(env, "ModelDeployment", first).await?;
        let before = owned(env).await?;
        env.namespace.apply(model_deployment(second, json!({}))).await?;
        let message = says(env, ("ModelDeployment", second), "Ready", ("False", "NameConflict")).await?;
        let whose = ["Service 'x-headless'".to_owned(), format!("ModelDeployment '{first}'")];
        ensure!(whose.iter().all(|words| message.contains(words)), "{message}");
        for turn in 0..2 {
            env.reconciled_after("model-deployment", async || env.touch("ModelDeployment", second, turn).await).await?;
        }
        are_as_before(env, &before).await?;
        serves(env, "ModelDeployment", first).await?;
        env.namespace.delete("ModelDeployment", first).await?;
        gets_its_names(env, "ModelDeployment", second).await?;
        let service = env.namespace.get("Service", "x-headless").await?.context("no Service")?;
        ensure!(service["metadata"]["ownerReferences"][0]["name"] == second, "{service}");
        let selected = &service["spec"]["selector"]["app.kubernetes.io/instance"];
        ensure!(*selected == second, "it leads to the Pods of the other one: {service}");
        env.namespace.delete("ModelDeployment", second).await?;
        env.namespace.until_gone("StatefulSet", second).await?;
        env.namespace.until_gone("Service", "x-headless").await?;
    }
    Ok(())
}
