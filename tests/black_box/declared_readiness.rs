//! How far children are where their plugin says it: expressions in CEL in its manifest, for kinds whose own status says too little.

use std::path::Path;

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    artifacts,
    cluster::{condition, install_crd},
    third_party::CNPG_CLUSTER,
};
use serde_json::{Value, json};

use crate::{
    command::{pilothouse, repacked, with_manifest},
    plugin_objects,
    suite::{Suite, tests},
    test_env::{TestEnv, answering, app, config_map, deployment, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_database_is_ready_and_awaited_as_its_plugin_says,
        a_child_without_a_status_is_as_far_as_its_plugin_says,
        a_plugin_may_overrule_the_rules_of_the_host,
        an_expression_that_cannot_be_evaluated_refuses_the_plugin,
        why_judges_children_as_their_plugin_says,
    );
}

/// CloudNativePG's own CRD: neither a condition `Ready` that is there from the start, nor an observed generation.
async fn a_database_is_ready_and_awaited_as_its_plugin_says(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["tests/guests/scripted/crd.yaml"]).await?;
    install_crd(&env.namespace.client(), &CNPG_CLUSTER.fetch().await?).await?;
    let cluster = json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster"});
    let rules = json!({
        "current": "self.status.phase == 'Cluster in healthy state' && self.status.readyInstances >= self.spec.instances",
        "failed": "self.status.phase.startsWith('Unable to')",
        "message": "self.status.phase + ', ' + string(self.status.readyInstances) + ' of ' + string(self.spec.instances) + ' ready'",
    });
    start_with(env, &[(cluster.clone(), rules)]).await?;
    let mut database = cluster;
    database["metadata"] = json!({"name": "db"});
    database["spec"] = json!({"instances": 3, "storage": {"size": "1Gi"}});
    let after = json!({"object": config_map("client", json!({})), "after": [0]});
    env.namespace.apply(answering("web", json!({"children": [{"object": database}, after]}))).await?;

    let waits = |words: &'static str| {
        move |object: &Value| condition(object, "Ready")["message"].as_str().is_some_and(|told| told.contains(words))
    };
    let at_first =
        "ConfigMap 'client' waits for Cluster 'db': it is not known how far it is: there is no field `status`";
    env.namespace.until("Scripted", "web", "to wait for the database", waits(at_first)).await?;
    set_status(env, "Setting up primary", 1).await?;
    let then = "Cluster 'db': Setting up primary, 1 of 3 ready";
    env.namespace.until("Scripted", "web", "to say how far the database is", waits(then)).await?;
    set_status(env, "Unable to create required cluster objects", 1).await?;
    let failed = "Cluster 'db': Unable to create required cluster objects, 1 of 3 ready";
    env.namespace.until("Scripted", "web", "to say that the database has failed", waits(failed)).await?;
    ensure!(env.namespace.get("ConfigMap", "client").await?.is_none(), "it does not wait for the database");
    set_status(env, "Cluster in healthy state", 3).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    ensure!(env.namespace.get("ConfigMap", "client").await?.is_some(), "ready without all children");
    Ok(())
}

/// Nobody but its plugin could know.
async fn a_child_without_a_status_is_as_far_as_its_plugin_says(env: &mut TestEnv) -> Result<()> {
    let rules = json!({
        "current": "self.metadata.annotations['example.com/filled'] == 'yes'",
        "failed": "'example.com/broken' in self.metadata.annotations",
        "message": "'nobody has filled ' + self.metadata.name",
    });
    start_with(env, &[(json!({"apiVersion": "v1", "kind": "ConfigMap"}), rules)]).await?;
    let status = json!({"note": {"$readiness": "ConfigMap/web"}});
    let response = json!({"children": [{"object": config_map("web", json!({}))}], "status": status});
    env.namespace.apply(answering("web", response)).await?;
    let told = |note: &'static str, message: &'static str| {
        move |object: &Value| object["status"]["note"] == note && condition(object, "Ready")["message"] == message
    };
    let annotate = async |annotations: Value| {
        env.namespace.patch("ConfigMap", "web", json!({"metadata": {"annotations": annotations}})).await
    };
    let words = "ConfigMap 'web': nobody has filled web";
    let in_progress = told("ReadinessStatus::InProgress NotCurrent", words);
    env.namespace.until("Scripted", "web", "to be in progress", in_progress).await?;
    annotate(json!({"example.com/broken": "yes"})).await?;
    env.namespace.until("Scripted", "web", "to have failed", told("ReadinessStatus::Failed Failed", words)).await?;
    annotate(json!({"example.com/broken": null, "example.com/filled": "yes"})).await?;
    let object = env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    ensure!(object["status"]["note"] == "ReadinessStatus::Current ", "the plugin is told something else: {object}");
    Ok(())
}

/// A Deployment that has more Pods than it needs is in progress for kstatus, and a claim that is not bound is current for the host.
async fn a_plugin_may_overrule_the_rules_of_the_host(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["tests/guests/scripted/crd.yaml"]).await?;
    let surging = json!({
        "current": "self.status.availableReplicas >= self.spec.replicas",
        "message": "string(self.status.availableReplicas) + ' available'",
    });
    let bound = json!({"current": "self.status.phase == 'Bound'", "message": "'it is ' + self.status.phase"});
    let kinds = [
        (json!({"apiVersion": "apps/v1", "kind": "Deployment"}), surging),
        (json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim"}), bound),
    ];
    start_with(env, &kinds).await?;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let mut web = deployment("web", json!({"name": "main", "image": "example.com/main"}));
    web["spec"]["replicas"] = 1.into();
    env.namespace.apply(answering("web", json!({"children": [{"object": web}, {"object": claim}]}))).await?;
    let says = |words: &'static str| move |object: &Value| condition(object, "Ready")["message"] == words;
    let replicas = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
    patch_status(env, "Deployment", "web", replicas).await?;
    let for_claim = says("PersistentVolumeClaim 'data': it is Pending");
    env.namespace.until("Scripted", "web", "to wait for the claim alone", for_claim).await?;
    let bound = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]});
    patch_status(env, "PersistentVolumeClaim", "data", bound).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    Ok(())
}

/// `pack` says it to who makes the plugin, the host to who installs it.
async fn an_expression_that_cannot_be_evaluated_refuses_the_plugin(env: &mut TestEnv) -> Result<()> {
    let broken = |manifest: &mut Value| {
        manifest["children"] = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
        manifest["childReadiness"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "current": "object.data.a == 'b'"}]);
    };
    let words =
        ["childReadiness", "`current` of `v1 ConfigMap`", "there is nothing called `object`; the object is `self`"];
    let plugin = with_manifest(&artifacts::guest("scripted")?, broken)?;
    pilothouse([Path::new("inspect"), plugin.path()]).await?.failed_with(&words)?;
    env.host.install(plugin.path(), "scripted.wasm")?;
    env.host.resume().await?;
    env.host.logged("the plugin was not loaded").await?;
    let log = env.host.log();
    ensure!(words.iter().all(|word| log.contains(word)), "the log does not say what is wrong: {log}");
    Ok(())
}

/// The status of the `Plugin` has the expressions.
async fn why_judges_children_as_their_plugin_says(env: &mut TestEnv) -> Result<()> {
    plugin_objects::start(env).await?;
    let deployments = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "current": "has(self.status.never)", "message": "'nobody rolls it out'",
    });
    let plugin = artifacts::plugin("app-service")?;
    let plugin = repacked(&plugin, |manifest| manifest["childReadiness"] = json!([deployments.clone()])).await?;
    plugin_objects::store(env, "web", &[&std::fs::read(plugin.path())?]).await?;
    let spec = json!({"source": {"configMap": {"name": "web"}}});
    env.namespace.apply(plugin_objects::plugin_object("web", spec)).await?;
    let object = env.namespace.until("Plugin", "web", "to be ready", is_ready).await?;
    ensure!(object["status"]["childReadiness"] == json!([deployments]), "{object}");
    env.namespace.apply(app("shop")).await?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    let arguments = ["why", "appservice/shop", "-n", &env.namespace.name, "--kubeconfig"].map(std::ffi::OsString::from);
    let kubeconfig = env.namespace.setup().kubeconfig.into_os_string();
    let why = pilothouse(arguments.into_iter().chain([kubeconfig])).await?.succeeded()?;
    ensure!(why.contains("nobody rolls it out"), "{why}");
    Ok(())
}

/// Starts a host with a plugin that has children of these kinds, too, and says how far they are.
async fn start_with(env: &mut TestEnv, kinds: &[(Value, Value)]) -> Result<()> {
    let plugin = repacked(&artifacts::guest("scripted")?, |manifest| {
        let own = json!({"apiVersion": "test.pilothouse.dev/v1", "kind": "ScriptedChild"});
        let mut children = manifest["children"].as_array().cloned().unwrap_or_default();
        children.retain(|kind| *kind != own && kinds.iter().all(|(declared, _)| declared != kind));
        children.extend(kinds.iter().map(|(kind, _)| kind.clone()));
        let declared = kinds.iter().map(|(kind, rules)| {
            let mut of_kind = kind.clone();
            of_kind
                .as_object_mut()
                .into_iter()
                .for_each(|of_kind| of_kind.extend(rules.as_object().cloned().unwrap_or_default()));
            of_kind
        });
        manifest["childReadiness"] = declared.collect::<Vec<_>>().into();
        manifest["children"] = children.into();
    })
    .await?;
    env.host.install(plugin.path(), "scripted.wasm")?;
    env.host.resume().await?;
    env.host.ready().await
}

async fn set_status(env: &TestEnv, phase: &str, ready: u32) -> Result<()> {
    patch_status(env, "Cluster", "db", json!({"phase": phase, "readyInstances": ready, "instances": 3})).await
}

/// As the controller of the kind would.
async fn patch_status(env: &TestEnv, kind: &str, name: &str, status: Value) -> Result<()> {
    env.namespace.until(kind, name, "to be there", |_| true).await?;
    let patch = Patch::Merge(json!({"status": status}));
    env.namespace.api(kind)?.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}
