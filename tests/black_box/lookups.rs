//! Lookups of plugins: what they return, and that a change of it triggers a reconcile.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready, misbehaver, scripted},
};

/// How long a call computes after its lookups, roughly in milliseconds: long enough to create an object meanwhile, and well below
/// the limit of a call.
const COMPUTE: u32 = 100;

/// The most attempts to create the object during a call.
const ATTEMPTS: usize = 20;

/// The memory in MiB that calls may have here. A fourth of it is for what objects look up, and no plugin gets all of that.
const CALL_MEMORY: &str = "64";

/// Objects with a thousand lookups each: more than there is room for.
const CURIOUS: usize = 64;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        found_objects_are_given_to_the_plugin,
        an_empty_namespace_means_that_of_the_object,
        an_object_that_appears_during_the_call_that_gets_it_is_noticed,
        an_object_that_appears_during_the_call_that_selects_it_is_noticed,
        lookups_that_the_host_cannot_remember_fail_their_object_and_no_other_plugin,
    );
}

async fn lookups_that_the_host_cannot_remember_fail_their_object_and_no_other_plugin(env: &mut TestEnv) -> Result<()> {
    env.set_up_host(|setup| setup.arguments = vec!["--call-memory".to_owned(), CALL_MEMORY.to_owned()])?;
    env.start(&["misbehaver", "scripted"]).await?;
    for number in 0..CURIOUS {
        let mut object = misbehaver(&format!("curious-{number}"), "many-lookups");
        object["spec"]["number"] = 1_000.into();
        env.namespace.apply(object).await?;
    }
    let is_refused = |object: &Value| condition(object, "Ready")["reason"] == "LookupMemoryUsed";
    let refused = eventually(PATIENCE, "each object to be ready or refused", async || {
        let objects = env.namespace.list("Misbehaver").await?;
        let (refused, others): (Vec<_>, Vec<_>) = objects.iter().partition(|object| is_refused(object));
        let ready = others.iter().filter(|object| is_ready(object)).count();
        let all = ready + refused.len() == CURIOUS && ready > 0;
        let first = refused.first().map(|object| (*object).clone()).filter(|_| all);
        Ok(first.map_or_else(|| Look::NotYet(format!("{ready} ready, {} refused", refused.len())), Look::Found))
    })
    .await?;
    let message = condition(&refused, "Stalled")["message"].as_str().unwrap_or_default().to_owned();
    ensure!(message.contains("of the 16384 KiB") && message.contains("--call-memory"), "{message}");
    let name = refused["metadata"]["name"].as_str().context("no name")?;
    env.event("Misbehaver", name, "LookupMemoryUsed").await?;
    // Another plugin has its part.
    env.namespace.apply(settings()).await?;
    let spec = json!({"lookups": [{"kind": "ConfigMap", "name": "settings"}], "response": {}});
    env.namespace.apply(scripted("modest", spec)).await?;
    env.namespace.until("Scripted", "modest", "to be ready", is_ready).await?;
    env.namespace.patch("Misbehaver", name, json!({"spec": {"number": 1}})).await?;
    env.namespace.until("Misbehaver", name, "to be ready with fewer lookups", is_ready).await.map(drop)
}

async fn found_objects_are_given_to_the_plugin(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(settings()).await?;
    let data = json!({"color": {"$found": "settings", "at": "/data/color"}, "selected": {"$names": "app=web"}});
    let spec = json!({
        "lookups": [{"kind": "ConfigMap", "name": "settings"}, {"kind": "ConfigMap", "selector": "app=web"}],
        "response": {"children": [{"object": config_map("web", data)}]},
    });
    env.namespace.apply(scripted("web", spec)).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    let child = env.namespace.get("ConfigMap", "web").await?.context("no child")?;
    let selected = format!("{}/settings", env.namespace.name);
    ensure!(child["data"] == json!({"color": "blue", "selected": selected}), "{child}");
    Ok(())
}

/// Languages without optional values write an empty string for none. A change of the object that was looked up must trigger a
/// reconcile, too.
async fn an_empty_namespace_means_that_of_the_object(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    env.namespace.apply(settings()).await?;
    let data = json!({"color": {"$found": "settings", "at": "/data/color"}, "selected": {"$names": "app=web"}});
    let spec = json!({
        "lookups": [
            {"kind": "ConfigMap", "namespace": "", "name": "settings"},
            {"kind": "ConfigMap", "namespace": "", "selector": "app=web"},
        ],
        "response": {"children": [{"object": config_map("web", data)}]},
    });
    env.namespace.apply(scripted("web", spec)).await?;
    let selected = format!("{}/settings", env.namespace.name);
    for color in ["blue", "red"] {
        env.namespace.patch("ConfigMap", "settings", json!({"data": {"color": color}})).await?;
        let shows = |child: &Value| child["data"] == json!({"color": color, "selected": selected});
        env.namespace.until("ConfigMap", "web", &format!("to be {color}"), shows).await?;
    }
    Ok(())
}

async fn an_object_that_appears_during_the_call_that_gets_it_is_noticed(env: &mut TestEnv) -> Result<()> {
    is_noticed(env, json!({"kind": "ConfigMap", "name": "settings"})).await
}

async fn an_object_that_appears_during_the_call_that_selects_it_is_noticed(env: &mut TestEnv) -> Result<()> {
    is_noticed(env, json!({"kind": "ConfigMap", "selector": "app=web"})).await
}

/// The call makes a lookup that the host has not indexed yet, and its answer does not change the status. So only the new object can
/// trigger another reconcile.
async fn is_noticed(env: &mut TestEnv, mut lookup: Value) -> Result<()> {
    lookup["missing"] = json!({"verdict": {"invalid": "missing"}});
    let spec = json!({"lookups": [lookup], "compute": COMPUTE, "response": {"children": []}});
    env.start(&["scripted"]).await?;
    env.namespace.apply(scripted("web", spec)).await?;
    env.stalled("Scripted", "web", "Invalid").await?;

    // A restarted host has not indexed the lookup yet and finds the status up to date. On a busy machine the call may end before
    // the object is created. Then the attempt does not count, and the host is restarted once more.
    let mut attempts = 0;
    loop {
        attempts += 1;
        ensure!(attempts <= ATTEMPTS, "{ATTEMPTS} calls were over before the object was made");
        env.host.stop().await?;
        env.host.resume().await?;
        env.host.logged("lookups done").await?;
        env.namespace.apply(settings()).await?;
        if env.calls("scripted").await? == 0.0 {
            break;
        }
        env.namespace.delete("ConfigMap", "settings").await?;
        env.stalled("Scripted", "web", "Invalid").await?;
    }
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    Ok(())
}

/// The object that is looked up.
fn settings() -> Value {
    let mut settings = config_map("settings", json!({"color": "blue"}));
    settings["metadata"]["labels"] = json!({"app": "web"});
    settings
}
