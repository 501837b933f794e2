//! Objects that a version of their own answers: by its digest or by its number, and because the `Plugin` says so, never the object.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::{
    Api, Client, Config,
    api::{DynamicObject, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use pilothouse_control_plane::RESTRICTED;
use pilothouse_tests::{
    artifacts,
    cluster::{api, condition},
};
use serde_json::{Value, json};

use crate::{
    canary::{LONG, OBJECTS, SHARE, begin, is_marked, marked, names, taken_over},
    command::{pilothouse, repacked},
    permissions::{allow, rule},
    plan::{CHANGES, plan_as},
    plugin_accounts::command,
    plugin_objects::{next, plugin, resume, sha256, store, text},
    suite::{Suite, tests},
    test_env::{TestEnv, app},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_pinned_object_keeps_its_version,
        a_pin_by_number_means_what_was_at_work_under_it,
        a_pin_is_stronger_than_a_canary,
        only_who_may_update_the_plugin_can_pin,
        a_plan_counts_what_is_pinned,
        pins_that_cannot_be_followed_are_told,
        a_former_version_can_be_pinned_after_a_restart,
    );
}

async fn a_pinned_object_keeps_its_version(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    let pin = |name: &str, digest: &str| json!({"namespace": env.namespace.name, "name": name, "digest": digest});
    let (old, unknown) = (sha256(&plugin()?), format!("sha256:{}", "0".repeat(64)));
    let pins = json!([pin("web-0", &old), pin("web-1", &unknown)]);
    // The first version is kept from now on, and the second takes over at once.
    env.namespace
        .patch("Plugin", "web", json!({"spec": {"rollout": {"pins": pins, "strategy": "Immediate", "steps": null}}}))
        .await?;
    let misses = |object: &Value| condition(object, "Degraded")["reason"] == "PinnedVersionMissing";
    env.namespace.until("Plugin", "web", "to miss a version", misses).await?;
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, OBJECTS - 2).await?;
    ensure!(!chosen.contains("web-0") && !chosen.contains("web-1"), "{chosen:?}");
    let scale = json!({"spec": {"replicas": 5}});
    env.namespace.patch("AppService", "web-0", scale.clone()).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == 5;
    env.namespace.until("Deployment", "web-0", "to be scaled", scaled).await?;
    ensure!(!is_marked(&env.namespace.get("Deployment", "web-0").await?.context("it is gone")?), "by the new version");
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"pins": null}}})).await?;
    marked(env, OBJECTS).await.map(drop)
}

/// Also after a restart, and when another version has taken over.
async fn a_pin_by_number_means_what_was_at_work_under_it(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    set_pins(env, json!([pin(env, "web-0", "version", "0.1.0"), pin(env, "web-1", "version", "0.3.0")])).await?;
    let misses = |object: &Value| {
        let degraded = condition(object, "Degraded");
        degraded["reason"] == "PinnedVersionMissing" && text(&degraded["message"]).contains("version 0.3.0")
    };
    env.namespace.until("Plugin", "web", "to miss a version", misses).await?;
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, OBJECTS - 2).await?;
    ensure!(!chosen.contains("web-0") && !chosen.contains("web-1"), "{chosen:?}");
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    scale(env, "web-0", 5).await?;
    ensure!(!is_marked(&deployment(env, "web-0").await?), "the pin is forgotten");

    // Somebody loads the missing one: it is known by its number from then on.
    let guest = artifacts::guest("app-service-next")?;
    let third = repacked(&guest, |manifest| manifest["version"] = "0.3.0".into()).await?;
    store(env, "web", &[&std::fs::read(third.path())?]).await?;
    let chosen = marked(env, OBJECTS - 1).await?;
    ensure!(!chosen.contains("web-0"), "{chosen:?}");
    let object = env.namespace.get("Plugin", "web").await?.context("it is gone")?;
    let versions: Vec<_> =
        object["status"]["versions"].as_array().into_iter().flatten().map(|it| text(&it["version"])).collect();
    ensure!(versions == ["0.3.0", "0.2.0", "0.1.0"], "{versions:?}");
    Ok(())
}

/// To the version that works, and to the one that is tried.
async fn a_pin_is_stronger_than_a_canary(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, SHARE.1).await?;
    let inside = chosen.first().context("it has no objects")?;
    let outside = names().find(|name| !chosen.contains(name)).context("it has all objects")?;
    let pins = json!([pin(env, inside, "version", "0.1.0"), pin(env, &outside, "version", "0.2.0")]);
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": {"pins": pins}}})).await?;
    let is_not = |it: &Value| !is_marked(it);
    env.namespace.until("Deployment", inside, "to be answered by the old version", is_not).await?;
    env.namespace.until("Deployment", &outside, "to be answered by the new version", is_marked).await?;
    for (name, version, because) in
        [(inside, "0.1.0", "to which it is pinned"), (&outside, "0.2.0", "to which it is pinned")]
    {
        answered_by(env, name, version, because).await?;
    }
    let (other, free) = (chosen.last().context("one object")?, names().filter(|it| !chosen.contains(it)).last());
    answered_by(env, other, "0.2.0", "to whose canary it belongs").await?;
    answered_by(env, &free.context("none is free")?, "0.1.0", "which is at work").await
}

/// Who may do everything with the objects, and read the `Plugin`, can choose no version: no annotation and no label does.
async fn only_who_may_update_the_plugin_can_pin(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    let rules: Vec<PolicyRule> = vec![rule("apps.example.com", "*", "*"), rule("pilothouse.dev", "*", "get list")];
    allow(env, &rules).await?;
    let user = client_of(env, RESTRICTED).await?;
    let wishes = json!({"metadata": {
        "annotations": {"pilothouse.dev/plugin-version": "0.1.0", "pilothouse.dev/pin": "0.1.0"},
        "labels": {"pilothouse.dev/plugin-version": "0.1.0"},
    }});
    let objects = api(&user, "AppService", Some(&env.namespace.name))?;
    objects.patch("web-0", &PatchParams::default(), &Patch::Merge(wishes)).await.context("they are its objects")?;
    let pins = json!([pin(env, "web-0", "version", "0.1.0")]);
    let plugins: Api<DynamicObject> = api(&user, "Plugin", None)?;
    let asked = Patch::Merge(json!({"spec": {"rollout": {"pins": pins}}}));
    let refused = plugins.patch("web", &PatchParams::default(), &asked).await.err().context("it may pin")?;
    ensure!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
    let versions = json!({"status": {"versions": [{"version": "0.1.0", "digest": sha256(&next()?)}]}});
    let refused = plugins.patch_status("web", &PatchParams::default(), &Patch::Merge(versions)).await.err();
    let refused = refused.context("it may say what a number means")?;
    ensure!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
    set_pins(env, json!([])).await?;
    store(env, "web", &[&next()?]).await?;
    marked(env, OBJECTS).await.map(drop)
}

/// And the swap then does what it says.
async fn a_plan_counts_what_is_pinned(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    let old = sha256(&plugin()?);
    // Nobody knows the last one yet, and the version that is asked has this number.
    let pins = [("web-0", "digest", &*old), ("web-1", "version", "0.1.0"), ("web-2", "version", "0.2.0")];
    set_pins(env, json!(pins.map(|(name, by, version)| pin(env, name, by, version)))).await?;
    let arguments = ["-o", "json", "--plugin", "web", "--host-namespace", &env.namespace.name];
    let ended = plan_as(env, &artifacts::guest("app-service-next")?, &arguments).await?;
    let report: Value = serde_json::from_str(&ended.output).with_context(|| format!("no report: {ended:?}"))?;
    let counts = &report["counts"];
    ensure!(ended.code == CHANGES && counts["pinned"] == 2 && counts["changed"] == OBJECTS - 2, "{report}");
    let objects = report["objects"].as_array().into_iter().flatten();
    let pinned: Vec<_> = objects.filter(|it| it["state"] == "Pinned").map(|it| text(&it["name"])).collect();
    ensure!(pinned == ["web-0", "web-1"], "{report}");
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, OBJECTS - 2).await?;
    ensure!(!chosen.contains("web-0") && !chosen.contains("web-1"), "{chosen:?}");
    Ok(())
}

/// One names no object, two choose different versions for one, and one chooses a version that is nowhere. What is wrong goes one after the other.
async fn pins_that_cannot_be_followed_are_told(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    let (old, new) = (sha256(&plugin()?), sha256(&next()?));
    let ghost = pin(env, "ghost", "version", "0.1.0");
    let same = [pin(env, "web-2", "version", "0.1.0"), pin(env, "web-2", "digest", &old)];
    let nowhere = pin(env, "web-3", "version", "9.9.9");
    let contradicting = [pin(env, "web-1", "version", "0.1.0"), pin(env, "web-1", "digest", &new)];
    let all = [&ghost, &same[0], &same[1], &nowhere, &contradicting[0], &contradicting[1]];
    set_pins(env, json!(all)).await?;
    let object = |name: &str| format!("{}/{name}", env.namespace.name);
    let told = degraded_by(env, "PinsContradict").await?;
    ensure!(
        [object("web-1"), "version 9.9.9".to_owned(), object("ghost")].iter().all(|it| told.contains(it)),
        "{told}"
    );
    ensure!(!told.contains(&object("web-2")), "both pins name the same version: {told}");
    crate::plugin_objects::told(env, &[("Warning", "PinsContradict", &object("web-1"))]).await?;

    // A plan counts each object once, and those that no version answers as pinned.
    let arguments = ["-o", "json", "--plugin", "web", "--host-namespace", &env.namespace.name];
    let ended = plan_as(env, &artifacts::guest("app-service-next")?, &arguments).await?;
    let report: Value = serde_json::from_str(&ended.output).with_context(|| format!("no report: {ended:?}"))?;
    let counts = &report["counts"];
    ensure!(counts["pinned"] == 3 && counts["changed"] == OBJECTS - 3, "{counts}");
    store(env, "web", &[&next()?]).await?;
    let chosen = marked(env, OBJECTS - 3).await?;
    ensure!(["web-1", "web-2", "web-3"].iter().all(|name| !chosen.contains(*name)), "{chosen:?}");
    let why = command(env, &["why", "appservice/web-1", "-n", &env.namespace.name]).await?.succeeded()?;
    ensure!(why.contains("while its pins contradict each other"), "{why}");

    set_pins(env, json!([ghost, same[0], same[1], nowhere])).await?;
    marked(env, OBJECTS - 2).await?;
    let told = degraded_by(env, "PinnedVersionMissing").await?;
    ensure!(told.contains("version 9.9.9") && told.contains(&object("ghost")), "{told}");
    set_pins(env, json!([ghost, same[0]])).await?;
    let told = degraded_by(env, "PinnedObjectMissing").await?;
    ensure!(told.contains(&object("ghost")) && !told.contains("9.9.9"), "{told}");
    env.namespace.apply(app("ghost")).await?;
    let is_well = |object: &Value| condition(object, "Degraded").is_null();
    env.namespace.until("Plugin", "web", "to have nothing wrong with its pins", is_well).await?;
    let made = env.namespace.until("Deployment", "ghost", "to be there", |_| true).await?;
    ensure!(!is_marked(&made), "the pin does not count: {made}");
    Ok(())
}

/// The host has it still. Of one that it does not have, `why` does not say that it answers.
async fn a_former_version_can_be_pinned_after_a_restart(env: &mut TestEnv) -> Result<()> {
    begin(env, json!([{"objects": SHARE.1, "seconds": LONG}])).await?;
    set_pins(env, json!([])).await?;
    store(env, "web", &[&next()?]).await?;
    marked(env, OBJECTS).await?;
    taken_over(env).await?;
    env.host.kill().await?;
    resume(env).await?;
    env.host.ready().await?;
    let nowhere = format!("sha256:{}", "0".repeat(64));
    set_pins(env, json!([pin(env, "web-0", "version", "0.1.0"), pin(env, "web-1", "digest", &nowhere)])).await?;
    let is_back = |it: &Value| !is_marked(it);
    env.namespace.until("Deployment", "web-0", "to be answered by the former version", is_back).await?;
    answered_by(env, "web-0", "0.1.0", "to which it is pinned").await?;
    let told = degraded_by(env, "PinnedVersionMissing").await?;
    ensure!(told.contains(&nowhere) && !told.contains("0.1.0"), "{told}");
    let why = command(env, &["why", "appservice/web-1", "-n", &env.namespace.name]).await?.succeeded()?;
    let words = ["to which it is pinned, and which the host does not have", "It stays as it is while"];
    ensure!(words.iter().all(|words| why.contains(words)), "{why}");
    Ok(())
}

/// Waits until something is wrong with the pins, and returns what.
async fn degraded_by(env: &TestEnv, reason: &str) -> Result<String> {
    let is_it = |object: &Value| {
        let degraded = condition(object, "Degraded");
        degraded["reason"] == reason && degraded["observedGeneration"] == object["metadata"]["generation"]
    };
    let object = env.namespace.until("Plugin", "web", &format!("to be degraded by {reason}"), is_it).await?;
    Ok(text(&condition(&object, "Degraded")["message"]).to_owned())
}

fn pin(env: &TestEnv, name: &str, by: &str, version: &str) -> Value {
    json!({"namespace": env.namespace.name, "name": name, by: version})
}

/// Sets the pins, and has new versions take over at once.
async fn set_pins(env: &TestEnv, pins: Value) -> Result<()> {
    let rollout = json!({"pins": pins, "strategy": "Immediate", "steps": null});
    env.namespace.patch("Plugin", "web", json!({"spec": {"rollout": rollout}})).await.map(drop)
}

async fn deployment(env: &TestEnv, name: &str) -> Result<Value> {
    env.namespace.get("Deployment", name).await?.context("it is gone")
}

async fn scale(env: &TestEnv, name: &str, replicas: u32) -> Result<()> {
    env.namespace.patch("AppService", name, json!({"spec": {"replicas": replicas}})).await?;
    let scaled = |deployment: &Value| deployment["spec"]["replicas"] == replicas;
    env.namespace.until("Deployment", name, "to be scaled", scaled).await.map(drop)
}

/// `pilothouse why` says which version answers an object, and why.
async fn answered_by(env: &TestEnv, name: &str, version: &str, because: &str) -> Result<()> {
    let (object, kubeconfig) = (format!("appservice/{name}"), env.namespace.setup().kubeconfig);
    let kubeconfig = kubeconfig.to_str().context("a path that is not text")?;
    let arguments = ["why", &object, "-o", "json", "-n", &env.namespace.name, "--kubeconfig", kubeconfig];
    let why: Value = serde_json::from_str(&pilothouse(arguments).await?.succeeded()?)?;
    let said = &why["answeredBy"];
    ensure!(said["version"] == version && said["because"] == because, "{name}: {said}");
    Ok(())
}

async fn client_of(env: &TestEnv, user: &str) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(env.cluster.plane.kubeconfig_for(user)?)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?.try_into()?)
}
