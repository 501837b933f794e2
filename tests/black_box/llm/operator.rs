//! The operator of the seed as a Deployment of its name: `deploy/llm-operator.yaml`, which is the chart of that name
//! rendered, with the commands that the seed gives.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    rbac::v1::PolicyRule,
};
use kube::{
    Api,
    api::{ListParams, Patch, PostParams},
};
use pilothouse_tests::{
    artifacts,
    cluster::PATIENCE,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::words::{server, serves};
use crate::{
    command::pilothouse,
    permissions::{allow, be_restricted},
    suite::{Suite, tests},
    test_env::TestEnv,
};

const PLUGINS: [&str; 4] = ["ai-llm-model", "llm-model", "llm-deployment", "model-deployment"];

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_operator_is_deployed_under_the_names_of_the_seed,
        the_rights_of_the_operator_are_those_of_its_plugins,
        the_operator_works_with_its_rights_and_tells_more_at_another_log_level,
    );
}

/// The objects of the file, in the namespace of the test.
fn deployed(namespace: &str) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(artifacts::repository().join("deploy/llm-operator.yaml"))?;
    let text = text.replace("namespace: \"default\"", &format!("namespace: {namespace}"));
    Ok(serde_saphyr::from_multiple(&text.replace("value: \"default\"", &format!("value: {namespace}")))?)
}

/// `kubectl get pods -l app=llm-operator`, `kubectl auth can-i create deployments --as=system:serviceaccount:default:llm-operator`,
/// `kubectl get role llm-operator -o yaml`, `kubectl set env deployment/llm-operator LOG_LEVEL=debug`.
async fn the_operator_is_deployed_under_the_names_of_the_seed(env: &mut TestEnv) -> Result<()> {
    for object in deployed(&env.namespace.name)? {
        env.namespace.apply(object).await?;
    }
    one_pod_is_ready(env, "info").await?;
    for (namespace, verb, expected) in [(&*env.namespace.name, "create", true), ("default", "create", false)] {
        ensure!(may(env, verb, namespace).await? == expected, "{verb} deployments in {namespace}");
    }
    let role = env.namespace.get("Role", "llm-operator").await?.context("no Role")?;
    ensure!(role["rules"].to_string().contains("llmmodels/status"), "{role}");
    let variable = json!({"name": "LOG_LEVEL", "value": "debug"});
    let container = json!({"name": "operator", "env": [variable]});
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [container]}}}}));
    env.namespace.api("Deployment")?.patch("llm-operator", &Default::default(), &patch).await?;
    one_pod_is_ready(env, "debug").await
}

/// Waits until the only Pod of the operator is ready and has this log level.
async fn one_pod_is_ready(env: &TestEnv, level: &str) -> Result<()> {
    let pods = env.namespace.api("Pod")?;
    let selected = ListParams::default().labels("app=llm-operator");
    eventually(PATIENCE, &format!("one Pod with {level}"), async || {
        let found: Vec<_> = pods.list(&selected).await?.items.into_iter().map(|pod| pod.data).collect();
        let holds = |pod: &Value| {
            let ready = pod["status"]["containerStatuses"][0]["ready"] == true;
            ready && pod["spec"]["containers"][0]["env"][0] == json!({"name": "LOG_LEVEL", "value": level})
        };
        Ok(Look::of(matches!(&found[..], [pod] if holds(pod)), found))
    })
    .await
}

/// Whether the service account may do this with Deployments.
async fn may(env: &TestEnv, verb: &str, namespace: &str) -> Result<bool> {
    let attributes = ResourceAttributes {
        group: Some("apps".to_owned()),
        resource: Some("deployments".to_owned()),
        namespace: Some(namespace.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let user = format!("system:serviceaccount:{}:llm-operator", env.namespace.name);
    let spec =
        SubjectAccessReviewSpec { user: Some(user), resource_attributes: Some(attributes), ..Default::default() };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let answer = Api::all(env.namespace.client()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

async fn the_rights_of_the_operator_are_those_of_its_plugins(_: &mut TestEnv) -> Result<()> {
    let files = PLUGINS.into_iter().map(artifacts::plugin).collect::<Result<Vec<_>>>()?;
    let arguments = ["rbac", "--namespace", "default", "--service-account", "default/llm-operator"];
    let printed = pilothouse(arguments.into_iter().map(Into::into).chain(files)).await?.succeeded()?;
    let needed = rights(&serde_saphyr::from_multiple::<Value>(&printed)?)?;
    let given = rights(&deployed("default")?)?;
    let (more, less): (Vec<_>, Vec<_>) = (given.difference(&needed).collect(), needed.difference(&given).collect());
    ensure!(more.is_empty() && less.is_empty(), "too many rights: {more:?}; missing rights: {less:?}");
    Ok(())
}

/// The rules of all Roles and ClusterRoles among these objects.
fn rules(objects: &[Value]) -> Result<Vec<PolicyRule>> {
    let roles = objects.iter().filter(|object| object["rules"].is_array()).map(|role| role["rules"].clone());
    Ok(roles.map(serde_json::from_value).collect::<Result<Vec<Vec<_>>, _>>()?.concat())
}

/// Group, resource and verb of everything that they grant.
fn rights(objects: &[Value]) -> Result<BTreeSet<[String; 3]>> {
    let mut all = BTreeSet::new();
    for rule in rules(objects)? {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                all.extend(rule.verbs.iter().map(|verb| [group.clone(), resource.clone(), verb.clone()]));
            }
        }
    }
    ensure!(!all.is_empty(), "no Role with rules");
    Ok(all)
}

/// `kubectl logs -l app=llm-operator`: its decisions, and with `LOG_LEVEL=debug` more.
async fn the_operator_works_with_its_rights_and_tells_more_at_another_log_level(env: &mut TestEnv) -> Result<()> {
    allow(env, &rules(&deployed(&env.namespace.name)?)?).await?;
    for (name, level, has_details) in [("plain", None, false), ("detailed", Some("debug"), true)] {
        be_restricted(env, &[])?;
        env.host.set_log_level(level);
        env.start(&PLUGINS).await?;
        env.namespace.apply(server(name, json!({}))).await?;
        serves(env, "LLMModel", name).await?;
        env.host.logged(&format!("llmmodel-{name}")).await?;
        env.host.logged("Creating Deployment.").await?;
        let log = env.host.log();
        ensure!(log.contains("\"level\":\"DEBUG\"") == has_details, "details at {level:?}");
        env.host.stop().await?;
    }
    Ok(())
}
