//! The permissions in `deploy/pilothouse.yaml`: enough for the reference plugins, and nothing else.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use k8s_openapi::api::rbac::v1::PolicyRule;
use pilothouse_tests::artifacts;
use serde_json::{Value, json};

use crate::{
    command::pilothouse,
    permissions::{allow, be_restricted},
    suite::{Suite, tests},
    test_env::{TestEnv, app},
    training_job::words,
};

const PLUGINS: [&str; 6] =
    ["app-service", "training-job", "ai-llm-model", "llm-model", "llm-deployment", "model-deployment"];

/// A group, a resource in it, and a verb.
type Right = (String, String, String);

pub fn register(suite: &mut Suite) {
    tests!(suite, the_deployed_rights_are_enough_for_the_plugins, no_more_is_deployed_than_plugins_need);
}

async fn the_deployed_rights_are_enough_for_the_plugins(env: &mut TestEnv) -> Result<()> {
    let [cluster, own] = [deployed("ClusterRole")?, deployed("Role")?];
    allow(env, &[cluster, own].concat()).await?;
    be_restricted(env, &["--leader-elect"])?;
    env.start(&PLUGINS).await?;
    for plugin in PLUGINS {
        env.host.logged(&format!(r#""the host has all rights that the plugin needs","plugin":"{plugin}""#)).await?;
    }
    env.namespace.apply(app("web")).await?;
    env.at_rest("web").await?;

    words::claim(env, "data").await?;
    let policy = json!({"ttlSecondsAfterFinished": 2});
    let spec = json!({"dataVolume": {"claimName": "data"}, "hyperparameters": {"rate": 0.1}, "runPolicy": policy});
    env.namespace.apply(words::job(spec)).await?;
    words::runs(env, words::JOB).await?;
    for pod in ["mnist-worker-0", "mnist-worker-1"] {
        words::exit(env, pod, 0).await?;
    }
    words::has(env, words::JOB, "Succeeded", "TrainingJobSucceeded").await?;
    words::has_events(env, words::JOB, "TrainingJobSucceeded", 1).await?;
    env.namespace.until_gone("TrainingJob", words::JOB).await
}

async fn no_more_is_deployed_than_plugins_need(_: &mut TestEnv) -> Result<()> {
    let plugins = PLUGINS.into_iter().map(artifacts::plugin).collect::<Result<Vec<_>>>()?;
    let printed = pilothouse(std::iter::once("rbac".into()).chain(plugins)).await?.succeeded()?;
    let (needed, given) = (rights(&of_kind(&printed, "ClusterRole")?), rights(&deployed("ClusterRole")?));
    let (more, less): (Vec<_>, Vec<_>) = (given.difference(&needed).collect(), needed.difference(&given).collect());
    ensure!(more.is_empty() && less.is_empty(), "too many rights: {more:?}; missing rights: {less:?}");
    Ok(())
}

/// All rights that these rules grant.
fn rights(rules: &[PolicyRule]) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                rights.extend(rule.verbs.iter().map(|verb| (group.clone(), resource.clone(), verb.clone())));
            }
        }
    }
    rights
}

fn deployed(kind: &str) -> Result<Vec<PolicyRule>> {
    of_kind(&std::fs::read_to_string(artifacts::repository().join("deploy/pilothouse.yaml"))?, kind)
}

/// The rules of all objects of this kind in a YAML text.
fn of_kind(text: &str, kind: &str) -> Result<Vec<PolicyRule>> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let rules = objects.into_iter().filter(|object| object["kind"] == kind).map(|object| object["rules"].clone());
    let rules = rules.map(serde_json::from_value).collect::<Result<Vec<Vec<_>>, _>>()?.concat();
    ensure!(!rules.is_empty(), "no {kind} with rules");
    Ok(rules)
}
