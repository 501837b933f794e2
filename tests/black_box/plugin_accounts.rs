//! Plugins with accounts of their own, and what they are granted. The host has a service account too, with the rights that the
//! repository deploys and that `pilothouse install` gives it, and no others.

use std::{ffi::OsString, path::Path};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::GroupVersionKind,
};
use pilothouse_tests::{
    artifacts,
    cluster::{Awaited, PATIENCE, api, condition, create_namespace, install_crd},
    third_party::PYTORCH_JOB,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    chart::PLUGINS as REFERENCE_PLUGINS,
    command::{COMPILATION, Ended, pilothouse, pilothouse_within, repacked},
    deployed::{self, Deployed},
    plan,
    plugin_objects::{plugin_object, store, text},
    suite::{Suite, tests},
    test_env::{TestEnv, app, config_map, is_ready, returning, scripted},
};

/// The host's service account.
pub const HOST: &str = "pilothouse";

/// The account that `install` makes for the plugin app-service.
const ACCOUNT: &str = "pilothouse-plugin-app-service";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        an_installed_plugin_writes_with_its_own_account,
        every_reference_plugin_is_installed_with_what_it_needs,
        a_right_that_the_account_loses_is_told_and_comes_back,
        a_plan_is_made_with_the_settings_and_the_account_of_the_plugin,
        the_host_may_act_as_no_other_account,
        in_one_namespace_what_is_in_none_is_looked_up,
        a_lookup_that_the_account_may_not_make_is_denied,
        so_many_names_and_no_more_are_asked_about_an_account,
        a_plugin_that_stops_at_each_denied_lookup_may_make_many,
        an_object_gets_what_its_own_namespace_allows,
        what_a_manifest_asks_for_has_to_be_granted,
        only_objects_of_selected_namespaces_are_reconciled,
        children_in_a_namespace_that_is_not_selected_any_more_are_told,
        a_suspended_object_is_left_as_it_is,
        a_lookup_in_another_namespace_has_to_be_declared,
        a_plugin_is_listed_explained_and_uninstalled,
        finalizers_are_taken_off_by_uninstall,
        finalizers_are_taken_off_though_the_plugin_is_gone,
    );
}

async fn an_installed_plugin_writes_with_its_own_account(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    install(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    env.namespace.apply(app("shop")).await?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    env.namespace.patch("AppService", "shop", json!({"spec": {"replicas": 2}})).await?;
    env.namespace.until("Deployment", "shop", "to have 2 replicas", |it| it["spec"]["replicas"] == 2).await?;
    let (account, host) = (user(env, ACCOUNT), user(env, HOST));
    let own = env.writes_of(&account).await?;
    ensure!(
        own.iter().any(|write| write.starts_with("patch deployments/ shop")),
        "it did not write the child: {own:?}"
    );
    let hosts = env.writes_of(&host).await?;
    let is_child = |write: &String| write.contains(" deployments/") || write.contains(" services/");
    ensure!(!hosts.iter().any(is_child), "the host wrote a child: {hosts:?}");
    ensure!(hosts.iter().any(|write| write.contains("appservices/status")), "it did not write the status: {hosts:?}");
    Ok(())
}

/// With their CRDs alone, and no other right than those that `install` gives.
pub async fn every_reference_plugin_is_installed_with_what_it_needs(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    install_crd(&env.namespace.client(), &PYTORCH_JOB.fetch().await?).await?;
    for plugin in REFERENCE_PLUGINS {
        install(env, &artifacts::plugin(plugin)?, &[]).await?.succeeded()?;
        env.host.logged(&format!(r#""the host has all rights that the plugin needs","plugin":"{plugin}""#)).await?;
    }
    env.namespace.apply(app("shop")).await?;
    let sample = std::fs::read_to_string(artifacts::repository().join("crds/samples/llmdeployment.yaml"))?;
    let mut served = String::new();
    for object in serde_saphyr::from_multiple::<Value>(&sample)? {
        if object["kind"] == "LLMDeployment" {
            served = text(&object["metadata"]["name"]).to_owned();
        }
        env.namespace.apply(object).await?;
    }
    let job = std::fs::read_to_string(artifacts::repository().join("plugins/pytorch-job/samples/mnist.yaml"))?;
    env.namespace.apply(serde_saphyr::from_str(&job)?).await?;
    for (kind, name) in [("Deployment", "shop"), ("Deployment", &*served), ("Service", "mnist-master-0")] {
        env.namespace.until(kind, name, "to be there", |_| true).await?;
    }
    Ok(())
}

async fn a_right_that_the_account_loses_is_told_and_comes_back(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    install(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    env.namespace.apply(app("shop")).await?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    let role = format!("{ACCOUNT}.account");
    let before = rules_without(env, &role, "patch").await?;
    env.namespace.patch("AppService", "shop", json!({"spec": {"replicas": 2}})).await?;
    let forbidden = |object: &Value| {
        let ready = condition(object, "Ready");
        ready["reason"] == "Forbidden" && text(&ready["message"]).contains(&user_name(ACCOUNT))
    };
    env.namespace.until("AppService", "shop", "to say that its account may not", forbidden).await?;
    put_rules(env, &role, before).await?;
    env.namespace.until("Deployment", "shop", "to have 2 replicas", |it| it["spec"]["replicas"] == 2).await.map(drop)
}

/// The administrator could write the child. What counts is whether the plugin's account may.
async fn a_plan_is_made_with_the_settings_and_the_account_of_the_plugin(env: &mut TestEnv) -> Result<()> {
    let _folder = start(env).await?;
    install(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    env.namespace.apply(app("shop")).await?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    let next = artifacts::guest("app-service-next")?;
    let own = env.namespace.name.clone();
    let arguments = ["--server-dry-run", "-o", "json", "--host-namespace", &own];
    let allowed = plan::plan_as(env, &next, &arguments).await?;
    let report: Value = serde_json::from_str(&allowed.output).with_context(|| format!("{allowed:?}"))?;
    ensure!(allowed.code == plan::CHANGES && report["present"]["name"] == "app-service", "{allowed:?}");
    ensure!(report["present"]["version"] == "0.1.0" && report["version"]["version"] == "0.2.0", "{report}");
    rules_without(env, &format!("{ACCOUNT}.account"), "patch").await?;
    let forbidden = |ended: &Ended| -> Result<bool> {
        let report: Value = serde_json::from_str(&ended.output).with_context(|| format!("{ended:?}"))?;
        let refused = &report["objects"][0]["steps"][0][0]["refused"];
        Ok(refused["reason"] == "Forbidden" && text(&refused["message"]).contains(&user_name(ACCOUNT)))
    };
    // The API server takes its time to notice that a right is gone.
    eventually(PATIENCE, "the plan to say that the account may not", async || {
        let ended = plan::plan_as(env, &next, &arguments).await?;
        Ok(if ended.code == 1 && forbidden(&ended)? { Look::Found(()) } else { Look::NotYet(format!("{ended:?}")) })
    })
    .await
}

async fn the_host_may_act_as_no_other_account(env: &mut TestEnv) -> Result<()> {
    let deployed = start(env).await?;
    install(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    let host = client(&deployed.kubeconfig()).await?;
    let own = env.namespace.name.as_str();
    for (resource, namespace, name, expected) in [
        ("serviceaccounts", Some(own), Some(ACCOUNT), true),
        ("serviceaccounts", Some(own), Some("default"), false),
        ("serviceaccounts", Some(own), Some(HOST), false),
        ("serviceaccounts", Some("kube-system"), Some(ACCOUNT), false),
        ("serviceaccounts", Some(own), None, false),
        ("users", None, Some("admin"), false),
        ("groups", None, Some("system:masters"), false),
        ("uids", None, None, false),
        ("userextras/scopes", None, None, false),
    ] {
        let attributes = ResourceAttributes {
            verb: Some("impersonate".to_owned()),
            resource: Some(resource.to_owned()),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let answer = Api::all(host.clone()).create(&PostParams::default(), &review).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        ensure!(allowed == expected, "may it impersonate {resource} {namespace:?} {name:?}? {allowed}");
    }
    Ok(())
}

/// Whether the objects of a kind are in namespaces says the cluster.
async fn in_one_namespace_what_is_in_none_is_looked_up(env: &mut TestEnv) -> Result<()> {
    let deployed = start(env).await?;
    let own = confine(env, &deployed).await?;
    let kind = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"});
    let plugin = repacked(&artifacts::plugin("app-service")?, |manifest| {
        manifest["lookups"] = json!([kind, {"apiVersion": "v1", "kind": "ConfigMap"}]);
    })
    .await?;
    install(env, plugin.path(), &["--namespace", &own]).await?.succeeded()?;
    env.namespace.until("Plugin", "app-service", "to have all caches", is_ready).await?;
    let names = [ACCOUNT, &format!("{ACCOUNT}.account")].map(|role| format!("{role}.cluster-scoped"));
    for (name, verbs) in names.iter().zip([&["get", "list", "watch"][..], &["get", "list"]]) {
        let role = serde_json::to_value(roles(env).get(name).await?)?;
        let only = json!([{"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": verbs}]);
        ensure!(role["rules"] == only, "{role}");
    }
    let (classes, nodes, maps) = (("storage.k8s.io", "storageclasses"), ("", "nodes"), ("", "configmaps"));
    for (account, verb, resource, expected) in [
        (HOST, "watch", classes, true),
        (HOST, "delete", classes, false),
        (HOST, "list", nodes, false),
        (HOST, "list", maps, false),
        (ACCOUNT, "list", classes, true),
        (ACCOUNT, "watch", classes, false),
        (ACCOUNT, "delete", classes, false),
        (ACCOUNT, "list", nodes, false),
        (ACCOUNT, "list", maps, false),
    ] {
        let allowed = is_allowed(env, account, verb, resource).await?;
        ensure!(allowed == expected, "may {account} {verb} {resource:?} in the cluster? {allowed}");
    }
    command(env, &["uninstall", "app-service", "--yes"]).await?.succeeded()?;
    for name in names {
        ensure!(roles(env).get_opt(&name).await?.is_none(), "{name} is left");
    }
    Ok(())
}

/// Whether an account in the host's namespace may do something with all objects of a resource.
async fn is_allowed(env: &TestEnv, account: &str, verb: &str, (group, resource): (&str, &str)) -> Result<bool> {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(user(env, account)),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let answer = Api::all(env.namespace.client()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// The host's caches have the Secret all the time, for the host may read it.
pub async fn a_lookup_that_the_account_may_not_make_is_denied(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    install(env, &artifacts::guest("scripted")?, SCRIPTED).await?.succeeded()?;
    env.namespace.apply(secret("token")).await?;
    env.namespace.apply(reads_secret("reader", None)).await?;
    let has_child = |map: &Value| map["data"]["found"] == "dG9rZW4=";
    env.namespace.until("ConfigMap", "reader", "to have what was found", has_child).await?;
    let role = "pilothouse-plugin-scripted.account";
    let before = rules_without(env, role, "get").await?;
    let denied = |object: &Value| {
        let message = text(&condition(object, "Ready")["message"]);
        message.contains("may not get secrets 'token' in namespace")
    };
    // What is known counts for a minute.
    let patience = PATIENCE * 4;
    let what = "to say that its account may not look";
    let awaited = Awaited { kind: "Scripted", name: "reader", what };
    env.namespace.until_within(patience, &awaited, denied).await?;
    env.namespace.apply(reads_secret("second", None)).await?;
    env.namespace.until("Scripted", "second", what, denied).await?;
    put_rules(env, role, before).await?;
    env.namespace.until("ConfigMap", "second", "to have what was found", has_child).await.map(drop)
}

/// Each name costs the API server a question now and then.
async fn so_many_names_and_no_more_are_asked_about_an_account(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    install(env, &artifacts::guest("scripted")?, SCRIPTED).await?.succeeded()?;
    let role = "pilothouse-plugin-scripted.account";
    let before = serde_json::to_value(roles(env).get(role).await?)?["rules"].clone();
    let names: Vec<_> = (0..1000).map(|number| format!("s{number}")).collect();
    let mut named = before.clone();
    let verbs = json!(["get"]);
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": verbs});
    let rules = named.as_array_mut().context("no rules")?;
    rules.iter_mut().try_for_each(|rule| drop_verb(rule, "get"))?;
    rules.push(rule);
    put_rules(env, role, named).await?;
    for (number, names) in names.chunks(10).enumerate() {
        let lookups: Vec<_> = names.iter().map(|name| json!({"kind": "Secret", "name": name})).collect();
        env.namespace.apply(scripted(&format!("greedy-{number}"), json!({"lookups": lookups, "response": {}}))).await?;
    }
    for number in 0..100 {
        env.namespace.until("Scripted", &format!("greedy-{number}"), "to be ready", is_ready).await?;
    }
    env.namespace.apply(secret("token")).await?;
    env.namespace.apply(reads_secret("second", None)).await?;
    let too_many = |object: &Value| {
        let message = text(&condition(object, "Ready")["message"]);
        message.contains(
            "looks up 1000 objects by their names already, and whether it may get secrets 'token' is not asked",
        )
    };
    env.namespace.until("Scripted", "second", "to be one too many", too_many).await?;
    // A right to all of them is one question, and asked all the time.
    put_rules(env, role, before).await?;
    let has_child = |map: &Value| map["data"]["found"] == "dG9rZW4=";
    env.namespace.until("ConfigMap", "second", "to have what was found", has_child).await.map(drop)
}

/// The guest ends a call with the first lookup that is denied, as it is while nobody knows whether the account may make it: so each name costs
/// a call of its own.
async fn a_plugin_that_stops_at_each_denied_lookup_may_make_many(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    install(env, &artifacts::guest("scripted")?, SCRIPTED).await?.succeeded()?;
    let names: Vec<_> = (0..50).map(|number| format!("s{number}")).collect();
    let role = "pilothouse-plugin-scripted.account";
    let mut rules = serde_json::to_value(roles(env).get(role).await?)?["rules"].clone();
    let all = rules.as_array_mut().context("no rules")?;
    all.iter_mut().try_for_each(|rule| drop_verb(rule, "get"))?;
    all.push(json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": ["get"]}));
    put_rules(env, role, rules).await?;
    let lookups: Vec<_> = names.iter().map(|name| json!({"kind": "Secret", "name": name})).collect();
    env.namespace.apply(scripted("curious", json!({"lookups": lookups, "response": {}}))).await?;
    env.namespace.until("Scripted", "curious", "to be ready", is_ready).await?;
    // Events are written at the end of a reconcile, and at the latest with the end of the host.
    env.host.stop().await?;
    let told = env.namespace.list("Event").await?;
    let warnings: Vec<_> = told.iter().filter(|event| event["type"] == "Warning").collect();
    ensure!(warnings.is_empty(), "nothing was wrong, and it was told: {warnings:?}");
    Ok(())
}

pub async fn an_object_gets_what_its_own_namespace_allows(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    install(env, &artifacts::plugin("app-service")?, &["--account", "tenant", "--account-in", "object"])
        .await?
        .succeeded()?;
    let (ours, theirs) = (env.namespace.name.clone(), another_namespace(env).await?);
    apply_in(env, &ours, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}})).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("{ACCOUNT}.account")},
        "subjects": [{"kind": "ServiceAccount", "namespace": ours, "name": "tenant"}],
    });
    apply_in(env, &ours, binding.clone()).await?;
    apply_in(env, &ours, app("shop")).await?;
    apply_in(env, &theirs, app("shop")).await?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    let in_theirs = api(&env.namespace.client(), "AppService", Some(&theirs))?;
    eventually(PATIENCE, "the other namespace's object to be forbidden", async || {
        let object = serde_json::to_value(in_theirs.get("shop").await?)?;
        let ready = condition(&object, "Ready");
        let user = format!("system:serviceaccount:{theirs}:tenant");
        Ok(Look::of(ready["reason"] == "Forbidden" && text(&ready["message"]).contains(&user), object))
    })
    .await?;
    let deployments = api(&env.namespace.client(), "Deployment", Some(&theirs))?;
    ensure!(deployments.list(&Default::default()).await?.items.is_empty(), "something was written");
    // Once who owns the namespace allows it, it goes on by itself.
    let subjects = json!([{"kind": "ServiceAccount", "namespace": theirs, "name": "tenant"}]);
    let mut binding = binding;
    binding["subjects"] = subjects;
    apply_in(env, &theirs, binding).await?;
    eventually(PATIENCE, "the other namespace's Deployment", async || {
        Ok(Look::of(deployments.get_opt("shop").await?.is_some(), "it is not there"))
    })
    .await
}

/// By default a plugin gets no kinds that give rights, and no Secrets to look up; with a list it gets what is in it.
async fn what_a_manifest_asks_for_has_to_be_granted(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    let refused = install(env, &artifacts::guest("scripted")?, &[]).await?;
    refused.failed_with(&["gives rights or holds credentials", "--grant Role.rbac.authorization.k8s.io"])?;
    let unknown = install(env, &artifacts::plugin("app-service")?, &["--grant", "Secret"]).await?;
    unknown.failed_with(&["does not ask for Secret"])?;
    let guest = std::fs::read(artifacts::guest("scripted")?)?;
    store(env, "web", &[&guest]).await?;
    let source = json!({"configMap": {"name": "web"}});
    let role = json!({"group": "rbac.authorization.k8s.io", "kind": "Role"});
    for (grants, words) in [
        (json!({}), "add {group: \"rbac.authorization.k8s.io\", kind: Role} to spec.grants.children"),
        (json!({"children": [role]}), "asks for children of v1 ConfigMap, which the Plugin does not grant"),
        (json!({"children": all_children(), "lookups": []}), "asks to look up v1 ConfigMap"),
        (json!({"children": all_children()}), "asks to look up v1 Secret, which has to be granted by name"),
    ] {
        env.namespace.apply(plugin_object("web", json!({"source": source, "grants": grants}))).await?;
        env.namespace
            .until("Plugin", "web", words, |object| {
                let stalled = condition(object, "Stalled");
                stalled["reason"] == "NotGranted" && text(&stalled["message"]).contains(words)
            })
            .await?;
    }
    let lookups = ["ConfigMap", "Secret"].map(|kind| json!({"group": "", "kind": kind}));
    let grants = json!({"children": all_children(), "lookups": lookups});
    env.namespace.apply(plugin_object("web", json!({"source": source, "grants": grants}))).await?;
    let loaded = |object: &Value| condition(object, "Loaded")["status"] == "True";
    env.namespace.until("Plugin", "web", "to be loaded", loaded).await.map(drop)
}

async fn only_objects_of_selected_namespaces_are_reconciled(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    install(env, &artifacts::plugin("app-service")?, &["--namespaces", "team=web"]).await?.succeeded()?;
    env.namespace.apply(app("shop")).await?;
    let calls = env.calls("app-service").await?;
    ensure!(env.metrics_at_rest().await.is_ok() && calls == 0.0, "it was called {calls} times");
    ensure!(
        env.namespace.get("AppService", "shop").await?.context("no object")?["status"].is_null(),
        "it has a status"
    );
    let label = |value: Value| json!({"metadata": {"labels": {"team": value}}});
    let name = env.namespace.name.clone();
    env.namespace.patch("Namespace", &name, label(json!("web"))).await?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    env.namespace.until("AppService", "shop", "to have a status", |it| !it["status"].is_null()).await?;
    env.namespace.patch("Namespace", &name, label(json!(null))).await?;
    eventually(PATIENCE, "the plugin to leave the namespace alone", async || {
        env.namespace.delete("Deployment", "shop").await.ok();
        env.metrics_at_rest().await?;
        Ok(Look::of(env.namespace.get("Deployment", "shop").await?.is_none(), "it was created again"))
    })
    .await
}

async fn children_in_a_namespace_that_is_not_selected_any_more_are_told(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    let crd = artifacts::repository().join("tests/guests/scripted-cluster/crd.yaml");
    install_crd(&env.namespace.client(), &crd).await?;
    let arguments = ["--namespaces", "team=web", "--grant", "Secret"];
    install(env, &artifacts::guest("scripted-cluster")?, &arguments).await?.succeeded()?;
    let name = env.namespace.name.clone();
    let label = |value: Value| json!({"metadata": {"labels": {"team": value}}});
    env.namespace.patch("Namespace", &name, label(json!("web"))).await?;
    let mut child = config_map("child", json!({"text": "ours"}));
    child["metadata"]["namespace"] = name.clone().into();
    let mut object = scripted("web", returning([child]));
    object["kind"] = "ClusterScripted".into();
    env.namespace.apply(object).await?;
    env.namespace.until("ClusterScripted", "web", "to be ready", is_ready).await?;
    env.namespace.patch("Namespace", &name, label(json!(null))).await?;
    let told = env.stalled("ClusterScripted", "web", "ChildScopeNotAllowed").await?;
    let message = text(&condition(&told, "Ready")["message"]);
    ensure!(message.contains("spec.namespaces") && message.contains(&name), "{message}");
    ensure!(env.namespace.get("ConfigMap", "child").await?.is_some(), "the child is gone");
    env.namespace.patch("Namespace", &name, label(json!("web"))).await?;
    env.namespace.until("ClusterScripted", "web", "to be ready again", is_ready).await.map(drop)
}

async fn a_suspended_object_is_left_as_it_is(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let suspend = |value: Value| json!({"metadata": {"annotations": {"pilothouse.dev/suspended": value}}});
    let seen = env.reconciles("app-service").await?;
    env.namespace.patch("AppService", "web", suspend(json!("true"))).await?;
    eventually(PATIENCE, "the annotation to be seen", async || {
        let now = env.reconciles("app-service").await?;
        Ok(Look::of(now > seen, now))
    })
    .await?;
    env.namespace.delete("Deployment", "web").await?;
    env.namespace.until_gone("Deployment", "web").await?;
    env.namespace.patch("AppService", "web", json!({"spec": {"replicas": 4}})).await?;
    env.metrics_at_rest().await?;
    ensure!(env.namespace.get("Deployment", "web").await?.is_none(), "it was created again");
    env.namespace.patch("AppService", "web", suspend(json!(null))).await?;
    env.namespace.until("Deployment", "web", "to be as the object says", |it| it["spec"]["replicas"] == 4).await?;
    // Who deletes an object means it, also if it is suspended.
    env.namespace.patch("AppService", "web", suspend(json!("true"))).await?;
    env.namespace.delete("AppService", "web").await?;
    env.namespace.until_gone("AppService", "web").await
}

/// The object of one tenant names the Secret of another one.
async fn a_lookup_in_another_namespace_has_to_be_declared(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let theirs = another_namespace(env).await?;
    apply_in(env, &theirs, secret("token")).await?;
    env.namespace.apply(reads_secret("reader", Some(&theirs))).await?;
    let denied = |object: &Value| {
        text(&condition(object, "Ready")["message"]).contains("another namespace than the object's own")
    };
    env.namespace.until("Scripted", "reader", "to be denied", denied).await?;
    env.event("Scripted", "reader", "LookupDenied").await?;
    ensure!(env.namespace.get("ConfigMap", "reader").await?.is_none(), "it was shown");
    Ok(())
}

async fn a_plugin_is_listed_explained_and_uninstalled(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    let none = command(env, &["list"]).await?.succeeded()?;
    ensure!(none.is_empty(), "{none}");
    install(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    env.namespace.apply(app("shop")).await?;
    env.namespace
        .until("Plugin", "app-service", "to count its object", |it| it["status"]["objects"]["total"] == 1)
        .await?;
    let listed = command(env, &["list"]).await?.succeeded()?;
    let columns: Vec<_> = listed.lines().last().unwrap_or_default().split_whitespace().collect();
    ensure!(columns[..3] == ["app-service", "AppService", "0.1.0"] && columns[4] == "1", "{listed}");
    let json: Value = serde_json::from_str(&command(env, &["list", "-o", "json"]).await?.succeeded()?)?;
    ensure!(json["items"][0]["metadata"]["name"] == "app-service", "{json}");
    let inspected = command(env, &["inspect", "app-service"]).await?.succeeded()?;
    ensure!(inspected.contains("serviceAccountName: pilothouse-plugin-app-service"), "{inspected}");

    env.namespace.until("AppService", "shop", "to have a status", |it| !it["status"].is_null()).await?;
    let namespace = env.namespace.name.clone();
    let why = command(env, &["why", "appservice/shop", "-n", &namespace]).await?.succeeded()?;
    for words in ["AppService", "plugin: app-service 0.1.0", "Ready", "Deployment 'shop'", "CREATED", "REASON"] {
        let found = why.contains(words) || words == "CREATED";
        ensure!(found, "it does not say {words}: {why}");
    }
    command(env, &["why", "appservice/nobody", "-n", &namespace])
        .await?
        .failed_with(&["there is no AppService 'nobody'"])?;
    command(env, &["why", "Nothing/x"]).await?.failed_with(&["no kind 'Nothing'", "kubectl api-resources"])?;

    command(env, &["uninstall", "nobody", "--yes"]).await?.failed_with(&["there is no Plugin 'nobody'"])?;
    let unconfirmed = command(env, &["uninstall", "app-service"]).await?;
    ensure!(unconfirmed.errors.contains("1 objects of kind AppService and their children stay"), "{unconfirmed:?}");
    unconfirmed.failed_with(&["nothing was changed", "--yes"])?;
    command(env, &["uninstall", "app-service", "--yes"]).await?.succeeded()?;
    ensure!(env.namespace.get("Plugin", "app-service").await?.is_none(), "the Plugin is there");
    ensure!(env.namespace.get("Deployment", "shop").await?.is_some(), "the child is gone");
    for kind in ["ConfigMap", "ServiceAccount", "Role", "RoleBinding"] {
        let of_plugin = |it: &Value| it["metadata"]["labels"]["pilothouse.dev/component-of"] == "app-service";
        let left: Vec<_> = env.namespace.list(kind).await?.into_iter().filter(of_plugin).collect();
        ensure!(left.is_empty(), "left: {left:?}");
    }
    Ok(())
}

async fn finalizers_are_taken_off_by_uninstall(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    install(env, &artifacts::guest("scripted-finalizing")?, FINALIZING).await?.succeeded()?;
    env.namespace
        .apply(json!({
            "apiVersion": "test.pilothouse.dev/v1", "kind": "Scripted", "metadata": {"name": "held"}, "spec": {},
        }))
        .await?;
    let has_finalizer = |object: &Value| object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    env.namespace.until("Scripted", "held", "to have a finalizer", has_finalizer).await?;
    let name = "scripted-finalizing";
    let warned = command(env, &["uninstall", name]).await?;
    ensure!(warned.errors.contains("1 objects have a finalizer of it"), "it does not warn: {warned:?}");
    warned.failed_with(&["nothing was changed"])?;
    command(env, &["uninstall", name, "--yes", "--release"]).await?.succeeded()?;
    ensure!(
        !has_finalizer(&env.namespace.get("Scripted", "held").await?.context("no object")?),
        "it has its finalizer"
    );
    env.namespace.delete("Scripted", "held").await?;
    env.namespace.until_gone("Scripted", "held").await
}

/// First while its account and its rights are there, then by a second command after all of it is gone. The children of one object are in an
/// order, so that it has the host's finalizer, too.
async fn finalizers_are_taken_off_though_the_plugin_is_gone(env: &mut TestEnv) -> Result<()> {
    let _deployed = start(env).await?;
    let ordered = json!([
        {"object": config_map("first", json!({}))}, {"object": config_map("second", json!({})), "after": [0]},
    ]);
    let finalizers = |object: &Value| object["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
    let others = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    for name in ["while-rights-are-left", "after-all-is-gone"] {
        install(env, &artifacts::guest("scripted-finalizing")?, FINALIZING).await?.succeeded()?;
        let mut object = scripted(name, json!({"response": {"children": ordered}}));
        object["metadata"]["finalizers"] = others["metadata"]["finalizers"].clone();
        env.namespace.apply(object).await?;
        env.namespace.until("Scripted", name, "to have all finalizers", |it| finalizers(it) == 3).await?;
        env.namespace.delete("Plugin", "scripted-finalizing").await?;
        env.host.logged("plugin removed").await?;
        if name == "after-all-is-gone" {
            command(env, &["uninstall", "scripted-finalizing", "--yes"]).await?.succeeded()?;
        }
        let unconfirmed = command(env, &["uninstall", "scripted-finalizing", "--release"]).await?;
        ensure!(
            unconfirmed.errors.contains("finalizers are taken off 1 objects"),
            "it does not say so: {unconfirmed:?}"
        );
        unconfirmed.failed_with(&["nothing was changed"])?;
        command(env, &["uninstall", "scripted-finalizing", "--yes", "--release"]).await?.succeeded()?;
        let released = env.namespace.get("Scripted", name).await?.context("it is gone")?;
        ensure!(released["metadata"]["finalizers"] == others["metadata"]["finalizers"], "{released}");
        command(env, &["uninstall", "scripted-finalizing", "--yes", "--release"])
            .await?
            .failed_with(&["there is no Plugin 'scripted-finalizing'", "has a finalizer of it"])?;
        env.namespace.patch("Scripted", name, json!({"metadata": {"finalizers": null}})).await?;
        env.namespace.delete("Scripted", name).await?;
        env.namespace.until_gone("Scripted", name).await?;
    }
    Ok(())
}

/// What `install` is told to grant the test guest, for it asks for kinds that have to be granted by name.
pub const SCRIPTED: &[&str] = &[
    "--grant",
    "Role.rbac.authorization.k8s.io",
    "--grant",
    "RoleBinding.rbac.authorization.k8s.io",
    "--grant",
    "Secret",
];

/// The same for the guest with a finalizer.
const FINALIZING: &[&str] = &["--grant", "Secret"];

/// All kinds of children that the test guest asks for.
fn all_children() -> Value {
    let kinds = [
        ("", "ConfigMap"),
        ("", "Secret"),
        ("", "Service"),
        ("", "Pod"),
        ("", "Namespace"),
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("test.pilothouse.dev", "ScriptedChild"),
    ];
    kinds.map(|(group, kind)| json!({"group": group, "kind": kind})).to_vec().into()
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": name}})
}

/// An object whose plugin looks up the Secret `token` and copies what is in it into a ConfigMap of the object's name.
fn reads_secret(name: &str, namespace: Option<&str>) -> Value {
    let mut lookup = json!({"kind": "Secret", "name": "token"});
    if let Some(namespace) = namespace {
        lookup["namespace"] = json!(namespace);
    }
    let found = json!({"$found": "token", "at": "/data/key"});
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"found": found}});
    json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "Scripted", "metadata": {"name": name},
        "spec": {"lookups": [lookup], "response": {"children": [{"object": child}]}},
    })
}

/// The kinds of the plugins that are installed here.
const CRDS: [&str; 9] = [
    "crds/plugins.pilothouse.dev.yaml",
    "crds/appservices.apps.example.com.yaml",
    "crds/llmdeployments.llm.example.com.yaml",
    "crds/llmmodels.ai.example.com.yaml",
    "crds/llmmodels.llm.example.com.yaml",
    "crds/modeldeployments.llm.example.com.yaml",
    "crds/trainingjobs.ml.example.com.yaml",
    "tests/guests/scripted/crd.yaml",
    "tests/guests/scripted/child-crd.yaml",
];

/// Moves to an API server of its own and starts a host without a plugin, with the service account and the rights that the repository
/// deploys.
pub async fn start(env: &mut TestEnv) -> Result<Deployed> {
    env.move_to_api_server_with(&[]).await?;
    deploy(env).await
}

/// The host goes on in the test's namespace alone, whose name is returned.
pub async fn confine(env: &mut TestEnv, deployed: &Deployed) -> Result<String> {
    let own = env.namespace.name.clone();
    env.host.stop().await?;
    env.set_up_host(|setup| {
        *setup = deployed.setup();
        setup.namespace = Some(own.clone());
    })?;
    env.host.resume().await?;
    Ok(own)
}

/// The same in the cluster that the test is in.
pub async fn deploy(env: &mut TestEnv) -> Result<Deployed> {
    env.install_crds(&CRDS).await?;
    deployed::apply_manifest(env).await?;
    let deployed = Deployed::read(env, &env.namespace.name, HOST).await?;
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    env.host.ready().await?;
    Ok(deployed)
}

/// Applies an object in a namespace.
async fn apply_in(env: &TestEnv, namespace: &str, mut object: Value) -> Result<()> {
    object["metadata"]["namespace"] = json!(namespace);
    deployed::apply(env, &object, &PatchParams::apply("tests").force()).await
}

/// Takes a verb out of all rules of a ClusterRole, and returns the rules that it had.
pub async fn rules_without(env: &TestEnv, role: &str, verb: &str) -> Result<Value> {
    let found = serde_json::to_value(roles(env).get(role).await?)?["rules"].clone();
    let mut less = found.clone();
    less.as_array_mut().into_iter().flatten().try_for_each(|rule| drop_verb(rule, verb))?;
    put_rules(env, role, less).await?;
    Ok(found)
}

/// Takes a verb out of a rule, which must not be without any.
fn drop_verb(rule: &mut Value, verb: &str) -> Result<()> {
    let verbs = rule["verbs"].as_array_mut().context("a rule without verbs")?;
    verbs.retain(|it| it != verb);
    if verbs.is_empty() {
        verbs.push(json!("watch"));
    }
    Ok(())
}

/// Gives a ClusterRole these rules.
pub async fn put_rules(env: &TestEnv, role: &str, rules: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"rules": rules}));
    roles(env).patch(role, &PatchParams::default(), &patch).await.map(drop).map_err(Into::into)
}

fn roles(env: &TestEnv) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "ClusterRole"));
    Api::all_with(env.namespace.client(), &resource)
}

pub async fn install(env: &TestEnv, plugin: &Path, more: &[&str]) -> Result<Ended> {
    let host = format!("{}/{HOST}", env.namespace.name);
    let plugin = plugin.to_str().context("a path that is not text")?;
    let arguments = [&["install", plugin, "--service-account", &host][..], more].concat();
    pilothouse_within(COMPILATION, as_administrator(env, &arguments)).await
}

/// Runs a command as the cluster's administrator.
pub async fn command(env: &TestEnv, arguments: &[&str]) -> Result<Ended> {
    pilothouse(as_administrator(env, arguments)).await
}

fn as_administrator(env: &TestEnv, arguments: &[&str]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
    arguments.extend(["--kubeconfig".into(), env.namespace.setup().kubeconfig.into()]);
    arguments
}

/// Creates the namespace of another tenant.
pub async fn another_namespace(env: &TestEnv) -> Result<String> {
    let own = &env.namespace.name;
    // A name has 63 characters at most.
    let name = format!("{}-theirs", &own[..own.floor_char_boundary(50)]);
    create_namespace(&env.namespace.client(), &name).await?;
    Ok(name)
}

pub fn user(env: &TestEnv, account: &str) -> String {
    deployed::user(&env.namespace.name, account)
}

/// The end of the name that the API server knows an account by.
fn user_name(account: &str) -> String {
    format!(":{account}\"")
}

pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let config =
        Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
