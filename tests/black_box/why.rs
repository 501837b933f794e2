//! `pilothouse why`: which version answers an object, which one made its children, and what holds it up.

use anyhow::{Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    canary::{LONG, begin, in_step, marked, names},
    command::repacked,
    decorators,
    plugin_accounts::command,
    plugin_objects::{next, plugin, plugin_object, resume, sha256, start, store, text, works},
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, deployment, is_ready, returning, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_version_that_waits_for_approval_is_told_on_its_objects,
        each_object_of_a_canary_says_its_version,
        a_pin_to_what_nobody_knows_is_told,
        a_suspended_and_a_deleted_object_say_so,
        children_of_both_scopes_are_shown,
        decorators_are_told_with_what_they_have_made,
        children_of_an_owner_and_of_a_decorator_are_told_apart,
        what_the_last_reconcile_did_is_told_by_the_host,
    );
}

async fn a_version_that_waits_for_approval_is_told_on_its_objects(env: &mut TestEnv) -> Result<()> {
    at_work(env, json!({"plan": "Require", "approved": sha256(&plugin()?)})).await?;
    store(env, "web", &[&next()?]).await?;
    let waits = |object: &Value| object["status"]["plan"]["state"] == "AwaitingApproval";
    env.namespace.until("Plugin", "web", "to await approval", waits).await?;
    env.namespace.until("AppService", "shop", "to have a status", |it| it["status"].is_object()).await?;
    let digest = sha256(&plugin()?);
    let answered = format!("answered by: 0.1.0 ({}), which is at work", &digest["sha256:".len()..][..12]);
    let waits = "Version 0.2.0 of its Plugin waits for approval: `pilothouse approve web`";
    says(env, "shop", &[&answered, waits, "Deployment 'shop'", "MADE BY"]).await
}

async fn each_object_of_a_canary_says_its_version(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": 1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    in_step(env, 1).await?;
    let chosen = marked(env, 1).await?;
    for name in names().take(3).chain(chosen.iter().cloned()) {
        let (version, because) = match chosen.contains(&name) {
            true => ("0.2.0", "to whose canary it belongs"),
            false => ("0.1.0", "which is at work"),
        };
        let why = json(env, &name).await?;
        let answered = &why["answeredBy"];
        ensure!(answered["version"] == version && answered["because"] == because, "{name}: {why}");
        let children = why["children"].as_array().into_iter().flatten();
        let of_deployment = children.filter(|child| text(&child["child"]).starts_with("Deployment"));
        let made_by: Vec<_> = of_deployment.map(|child| text(&child["madeBy"])).collect();
        ensure!(made_by == [version], "{name}: {why}");
    }
    Ok(())
}

/// What an object looked up, answered, wrote and waits for is in no status. Only the host's own pod is told, which a test on the same machine is.
async fn what_the_last_reconcile_did_is_told_by_the_host(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(config_map("settings", json!({"colour": "red"}))).await?;
    let mut unschedulable = deployment("first", json!({"name": "main", "image": "example.com/main"}));
    unschedulable["spec"]["replicas"] = 1.into();
    unschedulable["spec"]["template"]["spec"]["nodeSelector"] = json!({"example.com/none": "true"});
    let children = json!([
        {"object": config_map("child", json!({"colour": {"$found": "settings", "at": "/data/colour"}}))},
        {"object": unschedulable}, {"object": config_map("last", json!({})), "after": [1]},
    ]);
    let lookups = json!([{"kind": "ConfigMap", "name": "settings"}, {"kind": "Secret", "name": "absent"}]);
    env.namespace.apply(scripted("web", json!({"lookups": lookups, "response": {"children": children}}))).await?;
    let waits = |object: &Value| condition(object, "Ready")["reason"] == "AwaitingChildren";
    env.namespace.until("Scripted", "web", "to wait", waits).await?;
    let host = format!("http://{}", env.host.address("health")?);
    let namespace = env.namespace.name.clone();
    let arguments = ["why", "Scripted/web", "-n", &namespace, "--host", &host];
    let why: Value =
        serde_json::from_str(&command(env, &[&arguments[..], &["-o", "json"]].concat()).await?.succeeded()?)?;
    let last = &why["lastReconciles"][0];
    let lines = |what: &str| last[what]["lines"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
    ensure!(lines("asked") == ["ConfigMap 'settings': found", "Secret 'absent': nothing"], "{last}");
    ensure!(last["answer"] == "3 children; done" && text(&last["saw"]).starts_with("generation 1 "), "{last}");
    for child in ["ConfigMap 'child'", "Deployment 'first'"] {
        let created = format!("created {child}: it does not exist");
        ensure!(lines("wrote").contains(&&*created), "no {created}: {last}");
    }
    ensure!(lines("waits").iter().any(|it| it.starts_with("ConfigMap 'last' waits for Deployment 'first'")), "{last}");
    ensure!(text(&last["health"]).contains("AwaitingChildren"), "{last}");

    env.namespace.patch("ConfigMap", "settings", json!({"data": {"colour": "blue"}})).await?;
    env.namespace.until("ConfigMap", "child", "to be blue", |child| child["data"]["colour"] == "blue").await?;
    eventually(PATIENCE, "the host to tell the change", async || {
        let screen = command(env, &arguments).await?.succeeded()?;
        let is_told = screen.contains("LAST RECONCILE by scripted") && screen.contains("changed ConfigMap 'child'");
        Ok(Look::of(is_told, screen))
    })
    .await?;
    let unasked = command(env, &arguments[..4]).await?.succeeded()?;
    ensure!(unasked.contains("port-forward") && !unasked.contains("LAST RECONCILE"), "{unasked}");
    let nobody = [&arguments[..4], &["--host", "http://127.0.0.1:1"]].concat();
    command(env, &nobody).await?.failed_with(&["failed to ask the host", "port-forward"])
}

async fn a_pin_to_what_nobody_knows_is_told(env: &mut TestEnv) -> Result<()> {
    at_work(env, json!({})).await?;
    let pins = json!([{"namespace": env.namespace.name, "name": "shop", "version": "9.9.9"}]);
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"pins": pins}}})).await?;
    let misses = |object: &Value| condition(object, "Degraded")["reason"] == "PinnedVersionMissing";
    env.namespace.until("Plugin", "web", "to miss a version", misses).await?;
    let pinned = ["answered by: version 9.9.9, to which it is pinned", "while the version is not there"];
    says(env, "shop", &pinned).await
}

async fn a_suspended_and_a_deleted_object_say_so(env: &mut TestEnv) -> Result<()> {
    at_work(env, json!({})).await?;
    let suspended =
        json!({"annotations": {"pilothouse.dev/suspended": "true"}, "finalizers": ["tests.pilothouse.dev/held"]});
    env.namespace.patch("AppService", "shop", json!({"metadata": suspended})).await?;
    says(env, "shop", &["It is suspended: remove its annotation pilothouse.dev/suspended"]).await?;
    env.namespace.delete("AppService", "shop").await?;
    says(env, "shop", &["It is being deleted since", "tests.pilothouse.dev/held"]).await?;
    env.namespace.patch("AppService", "shop", json!({"metadata": {"finalizers": null}})).await.map(drop)
}

/// An object in a namespace may have children that are in none, which it does not own.
async fn children_of_both_scopes_are_shown(env: &mut TestEnv) -> Result<()> {
    let crds = ["crds/plugins.pilothouse.dev.yaml", "tests/guests/scripted/crd.yaml"];
    env.move_to_api_server_with(&crds).await?;
    resume(env).await?;
    let packed = repacked(&artifacts::guest("scripted")?, |manifest| {
        manifest["children"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "Namespace"}]);
        manifest["lookups"] = json!([]);
    })
    .await?;
    store(env, "web", &[&std::fs::read(packed.path())?]).await?;
    env.namespace.apply(plugin_object("web", json!({"source": {"configMap": {"name": "web"}}}))).await?;
    env.namespace.apply(scripted("shop", returning([config_map("map", json!({}))]))).await?;
    env.namespace.until("Scripted", "shop", "to be ready", is_ready).await?;
    let printed = why(env, "scripted/shop", "table").await?;
    ensure!(printed.contains("ConfigMap 'map'") && !printed.contains("not shown"), "{printed}");
    Ok(())
}

/// And with what was refused to them, each under its own name.
async fn decorators_are_told_with_what_they_have_made(env: &mut TestEnv) -> Result<()> {
    let _deployed = decorators::start_with(env, &["decorator", "decorator-second"]).await?;
    decorators::decorate(env, decorators::ANSWER, &decorators::answer(env, "first", "one")).await?;
    decorators::until_labelled(env, "first", Some("one")).await?;
    env.namespace.until("ConfigMap", "first", "to be there", |_| true).await?;
    let other = decorators::children([decorators::on_namespace(env, json!({"labels": {"first": "other"}}))]);
    decorators::decorate(env, decorators::SECOND_ANSWER, &other).await?;
    decorators::event(env, "MetadataConflict", "set by plugin 'decorator'").await?;
    let object = format!("namespace/{}", env.namespace.name);
    let report: Value = serde_json::from_str(&why(env, &object, "json").await?)?;
    let told = &report["decorators"];
    ensure!(told[0]["name"] == "decorator" && told[0]["labels"] == json!(["first=one"]), "{report}");
    ensure!(told[0]["children"] == 1 && told[0]["warning"].is_null(), "{report}");
    let second = &told[1];
    ensure!(
        second["name"] == "decorator-second" && second["labels"] == json!([]) && second["children"] == 0,
        "{report}"
    );
    ensure!(second["warning"]["reason"] == "MetadataConflict", "{report}");
    let printed = why(env, &object, "table").await?;
    for words in [
        "decorated by: decorator 0.1.0",
        "labels: first=one",
        "children: 1",
        "ago: MetadataConflict: ",
        "ConfigMap 'first'",
    ] {
        ensure!(printed.contains(words), "it does not say {words:?}: {printed}");
    }
    ensure!(!printed.contains("No Plugin reconciles"), "nobody has to: {printed}");
    Ok(())
}

async fn children_of_an_owner_and_of_a_decorator_are_told_apart(env: &mut TestEnv) -> Result<()> {
    let _deployed = decorators::start_with(env, &["scripted", "decorator-scripted"]).await?;
    let extra = decorators::children([config_map("extra", json!({}))]);
    let mut object = scripted("shop", returning([config_map("own", json!({}))]));
    object["metadata"]["annotations"] = json!({decorators::ANSWER: extra.to_string()});
    env.namespace.apply(object).await?;
    for name in ["own", "extra"] {
        env.namespace.until("ConfigMap", name, "to be there", |_| true).await?;
    }
    let report: Value = serde_json::from_str(&why(env, "scripted/shop", "json").await?)?;
    let children = report["children"].as_array().into_iter().flatten();
    let mut told: Vec<_> = children.map(|child| (text(&child["child"]), child["decorator"].as_str())).collect();
    told.sort_unstable();
    let is_of = |(child, by): &(&str, Option<&str>), name: &str, expected: Option<&str>| {
        child.contains(name) && *by == expected
    };
    let is_told =
        told.len() == 2 && is_of(&told[0], "'extra'", Some("decorator-scripted")) && is_of(&told[1], "'own'", None);
    ensure!(is_told, "{report}");
    ensure!(text(&report["plugin"]).starts_with("scripted "), "{report}");
    Ok(())
}

/// The first version at work, with an object.
async fn at_work(env: &mut TestEnv, rollout: Value) -> Result<()> {
    start(env).await?;
    store(env, "web", &[&plugin()?]).await?;
    let spec = json!({"source": {"configMap": {"name": "web"}}, "rollout": rollout});
    env.namespace.apply(plugin_object("web", spec)).await?;
    works(env, "shop").await?;
    let known = |object: &Value| is_ready(object) && object["status"]["stableDigest"].is_string();
    env.namespace.until("Plugin", "web", "to be at work", known).await.map(drop)
}

async fn says(env: &TestEnv, name: &str, words: &[&str]) -> Result<()> {
    let printed = why(env, &format!("appservice/{name}"), "table").await?;
    for word in words {
        ensure!(printed.contains(word), "it does not say {word:?}: {printed}");
    }
    Ok(())
}

async fn json(env: &TestEnv, name: &str) -> Result<Value> {
    Ok(serde_json::from_str(&why(env, &format!("appservice/{name}"), "json").await?)?)
}

async fn why(env: &TestEnv, object: &str, output: &str) -> Result<String> {
    command(env, &["why", object, "-o", output, "-n", &env.namespace.name]).await?.succeeded()
}
