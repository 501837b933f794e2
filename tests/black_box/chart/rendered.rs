//! What the charts render to: well-formed, taken by an API server with all its admission, and the same as the plain manifests.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use kube::api::PatchParams;
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    cluster::{Cluster, create_namespace, install_crd},
    helm::{Helm, Release, chart},
    manifests::made,
    third_party::{PROMETHEUS_RULE, SERVICE_MONITOR},
};
use serde_json::{Value, json};

use super::{ALL, CHARTS, reference_plugins};
use crate::{
    deployed::apply,
    plugin_objects::text,
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_plain_manifests_are_the_charts_rendered,
        the_charts_pass_lint,
        values_that_do_not_fit_are_refused,
        every_value_is_documented,
        the_api_server_takes_everything,
        the_pods_keep_to_the_restricted_policy,
        a_host_without_election_never_has_a_second_one,
    );
}

async fn the_plain_manifests_are_the_charts_rendered(_: &mut TestEnv) -> Result<()> {
    for file in made().await? {
        let is = std::fs::read_to_string(&file.path).unwrap_or_default();
        ensure!(is == file.text, "{} is another; run `make manifests`", file.path.display());
    }
    Ok(())
}

async fn the_charts_pass_lint(_: &mut TestEnv) -> Result<()> {
    let (helm, plugins) = (Helm::get().await?, reference_plugins()?);
    for chart in CHARTS {
        helm.lint(chart, &[]).await?;
    }
    helm.lint("pilothouse", &[&ALL[..], &["--values", &plugins]].concat()).await
}

/// A value that nobody reads is a mistake, too.
async fn values_that_do_not_fit_are_refused(_: &mut TestEnv) -> Result<()> {
    let helm = Helm::get().await?;
    for (chart, value, words) in [
        ("pilothouse", "replica=3", "replica"),
        ("pilothouse", "replicas=many", "replicas"),
        ("pilothouse", "image.digest=sha256:abc", "digest"),
        ("pilothouse", "antiAffinity=Perhaps", "antiAffinity"),
        ("pilothouse", "networkPolicy.egressPorts={70000}", "egressPorts"),
        ("pilothouse", "resync=often", "resync"),
        ("pilothouse", "priorityAndFairness.shares=0", "shares"),
        ("pilothouse", "plugins[0].name=web", "source"),
        ("llm-operator", "replicas=2", "replicas"),
        ("llm-operator", "image.pullPolicy=Sometimes", "pullPolicy"),
    ] {
        let values = ["--set", value];
        let release = Release { chart, name: "test", namespace: "test", values: &values };
        let refused = helm.text(release).await.err().with_context(|| format!("{chart} takes {value}"))?;
        let said = refused.to_string();
        ensure!(said.contains(words) && said.contains("schema"), "{chart} with {value}: {said}");
    }
    Ok(())
}

async fn every_value_is_documented(_: &mut TestEnv) -> Result<()> {
    for name in CHARTS {
        let folder = chart(name)?;
        let values: Value = serde_saphyr::from_str(&std::fs::read_to_string(folder.join("values.yaml"))?)?;
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("values.schema.json"))?)?;
        let mut paths = BTreeSet::new();
        undocumented(&values, &schema, name, &mut paths);
        ensure!(paths.is_empty(), "values without a description in values.schema.json: {paths:?}");
        let unread: Vec<_> =
            keys(&schema["properties"]).filter(|key| *key != "global" && values.get(key).is_none()).collect();
        ensure!(unread.is_empty(), "{name}: values.yaml does not have {unread:?}");
    }
    Ok(())
}

/// The paths of values that their schema does not describe.
fn undocumented(values: &Value, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    if !schema["description"].is_string() && schema.get("$schema").is_none() {
        found.insert(path.to_owned());
    }
    if schema["properties"].is_object() {
        for key in keys(values) {
            undocumented(&values[key], &schema["properties"][key], &format!("{path}.{key}"), found);
        }
    }
}

fn keys(object: &Value) -> impl Iterator<Item = &str> {
    object.as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

/// Also where every option is on, in one namespace only, and with an account in the namespace of each object.
async fn the_api_server_takes_everything(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    for crd in [SERVICE_MONITOR, PROMETHEUS_RULE] {
        install_crd(&env.namespace.client(), &crd.fetch().await?).await?;
    }
    create_namespace(&env.namespace.client(), "watched").await?;
    let (helm, plugins, own) = (Helm::get().await?, reference_plugins()?, env.namespace.name.clone());
    let with_plugins = [&ALL[..], &["--values", &plugins]].concat();
    let narrow = [&with_plugins[..], &["--set", "watchNamespace=watched,plugins[0].account.namespace=Object"]].concat();
    for (chart, values) in [
        ("pilothouse", &[][..]),
        ("pilothouse", &with_plugins),
        ("pilothouse", &narrow),
        ("pilothouse", &["--set", "antiAffinity=Required"]),
        ("pilothouse", &["--set-json", r#"networkPolicy={"metricsFrom": [{"podSelector": {}}], "extraEgress": [{}]}"#]),
        ("llm-operator", &[]),
        ("llm-operator", &["--set", "watchNamespace=watched,pluginsConfigMap=plugins"]),
    ] {
        let objects = helm.objects(Release { chart, name: "web", namespace: &own, values }).await?;
        ensure!(objects.len() > 4, "{chart} with {values:?} has {} objects", objects.len());
        for object in objects {
            apply(env, &object, &PatchParams::apply("tests").dry_run()).await?;
        }
    }
    Ok(())
}

/// What no namespace refuses: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted.
async fn the_pods_keep_to_the_restricted_policy(env: &mut TestEnv) -> Result<()> {
    env.move_to(Cluster::with(Parts::Api).await?).await?;
    let own = env.namespace.name.clone();
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    env.namespace.patch("Namespace", &own, labels).await?;
    let helm = Helm::get().await?;
    for (chart, kind, values) in
        [("pilothouse", "Deployment", &[][..]), ("pilothouse", "Job", &ALL), ("llm-operator", "Deployment", &[])]
    {
        let objects = helm.objects(Release { chart, name: "web", namespace: &own, values }).await?;
        let owner = objects.iter().find(|object| object["kind"] == kind).with_context(|| format!("no {kind}"))?;
        let mut spec = owner["spec"]["template"]["spec"].clone();
        let container = &spec["containers"][0]["securityContext"];
        ensure!(container["readOnlyRootFilesystem"] == true, "{chart}: it may write to its image");
        // The account is not there yet.
        spec["serviceAccountName"] = json!("default");
        spec["automountServiceAccountToken"] = json!(false);
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        env.namespace.apply(account).await?;
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": own}, "spec": spec,
        });
        apply(env, &pod, &PatchParams::apply("tests").dry_run()).await?;
        let container = "/spec/containers/0/securityContext";
        for (path, value) in [
            (format!("{container}/allowPrivilegeEscalation"), json!(true)),
            (format!("{container}/capabilities/drop"), json!([])),
            ("/spec/securityContext/runAsNonRoot".to_owned(), json!(false)),
            ("/spec/securityContext/seccompProfile/type".to_owned(), json!("Unconfined")),
        ] {
            let mut loose = pod.clone();
            *loose.pointer_mut(&path).with_context(|| format!("{chart} has no {path}"))? = value;
            let refused = apply(env, &loose, &PatchParams::apply("tests").dry_run()).await;
            ensure!(refused.is_err(), "the policy does not mind {path}");
        }
    }
    Ok(())
}

async fn a_host_without_election_never_has_a_second_one(_: &mut TestEnv) -> Result<()> {
    let helm = Helm::get().await?;
    for (values, strategy, mode) in [
        (&["--set", "leaderElection=false,replicas=1"][..], "Recreate", None),
        (&[], "RollingUpdate", Some("--leader-elect")),
        (&["--set", "leaderElection=per-plugin"], "RollingUpdate", Some("--leader-elect=per-plugin")),
    ] {
        let elects = mode.is_some();
        let release = Release { chart: "pilothouse", name: "pilothouse", namespace: "test", values };
        let objects = helm.objects(release).await?;
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
        ensure!(deployment["spec"]["strategy"]["type"] == strategy, "{values:?}: another strategy");
        let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
        let is_mode = |argument: &&str| *argument == "--leader-elect" || argument.starts_with("--leader-elect=");
        let modes: Vec<_> =
            arguments.as_array().into_iter().flatten().filter_map(Value::as_str).filter(is_mode).collect();
        ensure!(modes == Vec::from_iter(mode), "{values:?}: {arguments}");
        let budgets = objects.iter().filter(|object| object["kind"] == "PodDisruptionBudget").count();
        ensure!(budgets == usize::from(elects), "{values:?}: {budgets} budgets");
        let leases =
            objects.iter().any(|object| text(&object["kind"]) == "Role" && object.to_string().contains("leases"));
        ensure!(leases == elects, "{values:?}: rights on Leases: {leases}");
        // Those of plugins come and go.
        let deletes = objects.iter().any(|object| {
            let rules = object["rules"].as_array().cloned().unwrap_or_default();
            rules.iter().any(|rule| rule["resources"][0] == "leases" && rule["verbs"].to_string().contains("delete"))
        });
        ensure!(
            deletes == (mode == Some("--leader-elect=per-plugin")),
            "{values:?}: rights to delete Leases: {deletes}"
        );
    }
    let two = Release {
        chart: "pilothouse",
        name: "pilothouse",
        namespace: "test",
        values: &["--set", "leaderElection=false"],
    };
    let refused = helm.text(two).await.err().context("two hosts without election")?.to_string();
    ensure!(refused.contains("leaderElection"), "{refused}");
    Ok(())
}
