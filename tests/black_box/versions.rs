//! A kind that is served in two versions: whichever version somebody writes or a plugin reconciles, it is one object with one
//! child.

use std::fs;

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition},
    copies::replaced,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    copies,
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, an_object_has_one_child_in_all_versions_of_its_kind);
}

async fn an_object_has_one_child_in_all_versions_of_its_kind(env: &mut TestEnv) -> Result<()> {
    copies::define(env, 0, &["v1", "v2"]).await?;
    let first = fs::read(artifacts::guest("copies")?)?;
    install(env, &first)?;
    env.start(&[]).await?;

    // The plugin reconciles v1, and somebody writes v2.
    apply(env, "v2", "one").await?;
    let child = until_child_says(env, "one").await?;
    until_ready(env, 1).await?;
    apply(env, "v2", "two").await?;
    ensure!(uid(&until_child_says(env, "two").await?) == uid(&child), "another child in the place of the first");
    until_ready(env, 2).await?;

    // The next version of the plugin reconciles v2, and somebody still writes v1. The child stays, and its owner reference has the
    // new version.
    install(env, &replaced(&first, "copies.pilothouse.dev/v1", "copies.pilothouse.dev/v2"))?;
    let owner = |child: &Value| child["metadata"]["ownerReferences"][0]["apiVersion"] == "copies.pilothouse.dev/v2";
    let followed = env.namespace.until("ConfigMap", "web", "to follow its owner's version", owner).await?;
    ensure!(uid(&followed) == uid(&child), "another child after the swap");
    apply(env, "v1", "three").await?;
    ensure!(uid(&until_child_says(env, "three").await?) == uid(&child), "another child in the place of the first");
    until_ready(env, 3).await
}

/// Installs the plugin in place of the previous one.
fn install(env: &TestEnv, bytes: &[u8]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let plugin = folder.path().join("copy.wasm");
    fs::write(&plugin, bytes)?;
    env.host.install(&plugin, "copy.wasm")
}

async fn apply(env: &TestEnv, version: &str, value: &str) -> Result<()> {
    let body = json!({
        "apiVersion": format!("copies.pilothouse.dev/{version}"),
        "kind": "Copy000",
        "metadata": {"name": "web"},
        "spec": {"value": value},
    });
    // As kubectl does with a merge patch, whichever version was written before.
    let api = copies::api(env, 0, version);
    match api.get_opt("web").await? {
        Some(_) => api.patch("web", &PatchParams::default(), &Patch::Merge(body)).await?,
        None => api.create(&Default::default(), &serde_json::from_value(body)?).await?,
    };
    Ok(())
}

async fn until_child_says(env: &TestEnv, value: &str) -> Result<Value> {
    let says = |child: &Value| child["data"]["spec"].as_str().is_some_and(|spec| spec.contains(value));
    env.namespace.until("ConfigMap", "web", &format!("to say {value}"), says).await
}

/// Waits until the object is ready in its present generation.
async fn until_ready(env: &TestEnv, generation: i64) -> Result<()> {
    eventually(PATIENCE, &format!("generation {generation} to be ready"), async || {
        let object = serde_json::to_value(copies::api(env, 0, "v1").get("web").await?)?;
        let ready = condition(&object, "Ready");
        Ok(Look::of(ready["status"] == "True" && ready["observedGeneration"] == generation, object))
    })
    .await
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}
