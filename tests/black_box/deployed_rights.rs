//! The rights that `deploy/pilothouse.yaml` gives: all that the reference plugins need, and nothing else.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::PolicyRule;
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use crate::{
    command::pilothouse,
    permissions::{allow, be_restricted},
    scene::{Scene, app},
    suite::{Suite, tests},
    training_job::words,
};

const PLUGINS: [&str; 2] = ["app-service", "training-job"];

/// What the host does with kinds that it only reads.
const READ: &str = "get list watch";

/// What it does with children.
const KEEP: &str = "get list watch create patch delete";

/// A group, a resource in it, and a verb.
type Right = (String, String, String);

pub fn register(suite: &mut Suite) {
    tests!(suite, plugins_get_along_with_what_is_deployed, no_more_is_deployed_than_plugins_need);
}

async fn plugins_get_along_with_what_is_deployed(scene: &mut Scene) -> Result<()> {
    let [cluster, own] = [deployed("ClusterRole")?, deployed("Role")?];
    allow(scene, &[cluster, own].concat()).await?;
    be_restricted(scene, &["--leader-elect"])?;
    scene.start(&PLUGINS).await?;
    scene.namespace.apply(app("web")).await?;
    scene.at_rest("web").await?;

    words::claim(scene, "data").await?;
    let policy = json!({"ttlSecondsAfterFinished": 2});
    let spec = json!({"dataVolume": {"claimName": "data"}, "hyperparameters": {"rate": 0.1}, "runPolicy": policy});
    scene.namespace.apply(words::job(spec)).await?;
    words::runs(scene, words::JOB).await?;
    for pod in ["mnist-worker-0", "mnist-worker-1"] {
        words::exit(scene, pod, 0).await?;
    }
    words::has(scene, words::JOB, "Succeeded", "TrainingJobSucceeded").await?;
    words::told_times(scene, words::JOB, "TrainingJobSucceeded", 1).await?;
    scene.namespace.until_gone("TrainingJob", words::JOB).await
}

async fn no_more_is_deployed_than_plugins_need(_scene: &mut Scene) -> Result<()> {
    let mut needed = rights("", "events", "get create patch");
    for plugin in PLUGINS {
        needed.extend(needs(&artifacts::plugin(plugin)?).await?);
    }
    let mut given = BTreeSet::new();
    for rule in deployed("ClusterRole")? {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                given.extend(rights(group, resource, &rule.verbs.join(" ")));
            }
        }
    }
    let (more, less): (Vec<_>, Vec<_>) = (given.difference(&needed).collect(), needed.difference(&given).collect());
    ensure!(more.is_empty() && less.is_empty(), "too many rights: {more:?}; missing rights: {less:?}");
    Ok(())
}

/// The rights that a plugin's manifest asks for.
async fn needs(plugin: &Path) -> Result<BTreeSet<Right>> {
    let printed = pilothouse([Path::new("inspect"), plugin]).await?.succeeded()?;
    let manifest: Value = serde_saphyr::from_str(&printed)?;
    let (group, resource) = resource(&manifest["reconciles"])?;
    let mut objects = READ.to_owned();
    for (verb, is_needed) in [("patch", manifest["finalizes"] == true), ("delete", manifest["expires"].is_string())] {
        objects.push_str(&if is_needed { format!(" {verb}") } else { String::new() });
    }
    let mut needed = rights(&group, &resource, &objects);
    needed.extend(rights(&group, &format!("{resource}/status"), "patch"));
    // An owner reference that blocks the owner's deletion.
    needed.extend(rights(&group, &format!("{resource}/finalizers"), "update"));
    for (list, verbs) in [("children", KEEP), ("lookups", READ)] {
        for kind in manifest[list].as_array().into_iter().flatten() {
            let (group, resource) = self::resource(kind)?;
            needed.extend(rights(&group, &resource, verbs));
        }
    }
    Ok(needed)
}

/// The group and the plural of a kind; all kinds here have the simplest plural.
fn resource(kind: &Value) -> Result<(String, String)> {
    let version = kind["apiVersion"].as_str().context("a kind without a version")?;
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let name = kind["kind"].as_str().context("a kind without a name")?;
    Ok((group.to_owned(), format!("{}s", name.to_lowercase())))
}

fn rights(group: &str, resource: &str, verbs: &str) -> BTreeSet<Right> {
    verbs.split(' ').map(|verb| (group.to_owned(), resource.to_owned(), verb.to_owned())).collect()
}

/// The rules of the one object of a kind in the file.
fn deployed(kind: &str) -> Result<Vec<PolicyRule>> {
    let text = std::fs::read_to_string(artifacts::repository().join("deploy/pilothouse.yaml"))?;
    let wanted = format!("\nkind: {kind}\n");
    let found = text.split("\n---\n").find(|object| object.contains(&wanted)).with_context(|| format!("no {kind}"))?;
    let role: Value = serde_saphyr::from_str(found)?;
    Ok(serde_json::from_value(role["rules"].clone())?)
}
