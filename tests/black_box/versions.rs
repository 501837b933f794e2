//! A kind that is served in two versions: whichever version somebody writes or a plugin reconciles, it is one object with one
//! child.

use std::fs;

use anyhow::{Result, ensure};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition, install_crd},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    scene::Scene,
    suite::{Suite, tests},
};

/// The group and kind of the guest `copies`, which nobody else defines on the shared control plane.
const GROUP: &str = "copies.pilothouse.dev";
const KIND: &str = "Copy000";
const PLURAL: &str = "copy000s";

pub fn register(suite: &mut Suite) {
    tests!(suite, an_object_is_one_in_all_versions);
}

async fn an_object_is_one_in_all_versions(scene: &mut Scene) -> Result<()> {
    define(scene).await?;
    let first = fs::read(artifacts::guest("copies")?)?;
    install(scene, &first)?;
    scene.start(&[]).await?;

    // The plugin reconciles v1, and somebody writes v2.
    apply(scene, "v2", "one").await?;
    let child = until_child_says(scene, "one").await?;
    until_ready(scene, 1).await?;
    apply(scene, "v2", "two").await?;
    ensure!(uid(&until_child_says(scene, "two").await?) == uid(&child), "another child in the place of the first");
    until_ready(scene, 2).await?;

    // Its next version reconciles v2, and somebody still writes v1. The child stays, and names its owner as it is known now.
    install(scene, &of_version_two(&first))?;
    let owner = |child: &Value| child["metadata"]["ownerReferences"][0]["apiVersion"] == format!("{GROUP}/v2");
    let followed = scene.namespace.until("ConfigMap", "web", "to follow its owner's version", owner).await?;
    ensure!(uid(&followed) == uid(&child), "another child after the swap");
    apply(scene, "v1", "three").await?;
    ensure!(uid(&until_child_says(scene, "three").await?) == uid(&child), "another child in the place of the first");
    until_ready(scene, 3).await
}

/// Both versions have the same schema; the first one is stored.
async fn define(scene: &Scene) -> Result<()> {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |name: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": KIND, "listKind": format!("{KIND}List"), "plural": PLURAL, "singular": "copy000"},
            "versions": [version("v1"), version("v2")],
        },
    });
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), definition.to_string())?;
    install_crd(&scene.namespace.client(), file.path()).await
}

/// Puts the plugin in the place of what was there before.
fn install(scene: &Scene, bytes: &[u8]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let plugin = folder.path().join("copy.wasm");
    fs::write(&plugin, bytes)?;
    scene.host.install(&plugin, "copy.wasm")
}

/// The plugin, but for the version of the kind that it reconciles.
fn of_version_two(bytes: &[u8]) -> Vec<u8> {
    let (from, to) = (format!("{GROUP}/v1"), format!("{GROUP}/v2"));
    let mut changed = bytes.to_vec();
    for at in 0..bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from.as_bytes()) {
            changed[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    }
    changed
}

async fn apply(scene: &Scene, version: &str, value: &str) -> Result<()> {
    let body = json!({
        "apiVersion": format!("{GROUP}/{version}"),
        "kind": KIND,
        "metadata": {"name": "web"},
        "spec": {"value": value},
    });
    // As kubectl's merge patch does, whichever version had it before.
    let api = api(scene, version);
    match api.get_opt("web").await? {
        Some(_) => api.patch("web", &PatchParams::default(), &Patch::Merge(body)).await?,
        None => api.create(&Default::default(), &serde_json::from_value(body)?).await?,
    };
    Ok(())
}

async fn until_child_says(scene: &Scene, value: &str) -> Result<Value> {
    let says = |child: &Value| child["data"]["spec"].as_str().is_some_and(|spec| spec.contains(value));
    scene.namespace.until("ConfigMap", "web", &format!("to say {value}"), says).await
}

/// Waits until the object is ready in its present generation.
async fn until_ready(scene: &Scene, generation: i64) -> Result<()> {
    eventually(PATIENCE, &format!("generation {generation} to be ready"), async || {
        let object = serde_json::to_value(api(scene, "v1").get("web").await?)?;
        let ready = condition(&object, "Ready");
        Ok(Look::of(ready["status"] == "True" && ready["observedGeneration"] == generation, object))
    })
    .await
}

fn uid(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}

fn api(scene: &Scene, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{GROUP}/{version}"),
        kind: KIND.to_owned(),
        plural: PLURAL.to_owned(),
    };
    Api::namespaced_with(scene.namespace.client(), &scene.namespace.name, &resource)
}
