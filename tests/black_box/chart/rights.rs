//! What the chart gives rights to: to the letter what `pilothouse install` gives, and for the host itself what it needs and no more.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    helm::{Helm, Release},
};
use serde_json::Value;

use super::{PLUGINS, reference_plugins};
use crate::{
    command::pilothouse,
    plugin_objects::text,
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        plugins_get_what_install_gives_them,
        a_decorator_gets_what_install_gives_it,
        a_lookup_of_what_is_in_no_namespace_counts_in_the_cluster,
        the_host_gets_rights_on_nothing_but_its_own,
    );
}

/// How the names of rights end that are not bound in the namespace that is watched.
const IN_CLUSTER: &str = ".cluster-scoped";

/// How `install` is told to constrain impersonation.
const CONSTRAINED: &[&str] = &["--impersonation", "constrained"];

/// Objects by kind and name.
type Objects = BTreeMap<(String, String), Value>;

async fn plugins_get_what_install_gives_them(_: &mut TestEnv) -> Result<()> {
    let (helm, values) = (Helm::get().await?, reference_plugins()?);
    let rendered = async |more: &[&str]| {
        let values = [&["--values", &*values], more].concat();
        let release = Release { chart: "pilothouse", name: "pilothouse", namespace: "pilothouse", values: &values };
        Ok::<_, anyhow::Error>(of_plugins(helm.objects(release).await?))
    };
    for (values, arguments) in [
        (&[][..], &[][..]),
        (&["--set", "watchNamespace=shop"], &["--namespace", "shop"]),
        (&["--set", "plugins[0].account.namespace=Object,plugins[0].account.name=tenant"], &[]),
        (&["--kube-version", "v1.35.9"], &[]),
        (&["--kube-version", "v1.36.0-gke.1"], CONSTRAINED),
        (&["--kube-version", "v1.36.0", "--set", "impersonation=Unconstrained"], &[]),
        (&["--set", "impersonation=Constrained"], CONSTRAINED),
        (
            &["--set", "impersonation=Constrained,watchNamespace=shop"],
            &["--impersonation", "constrained", "--namespace", "shop"],
        ),
        (
            &["--set", "impersonation=Constrained,plugins[0].account.namespace=Object,plugins[0].account.name=tenant"],
            CONSTRAINED,
        ),
    ] {
        let (chart, mut installed) = (rendered(values).await?, Objects::new());
        let in_one_namespace = arguments.contains(&"--namespace");
        let is_constrained = chart.keys().any(|(_, name)| name.ends_with(".requests"));
        ensure!(is_constrained == arguments.contains(&"constrained"), "{values:?}: {:?}", chart.keys());
        ensure!(chart.keys().any(|(_, name)| name.ends_with(IN_CLUSTER)) == in_one_namespace, "{:?}", chart.keys());
        for plugin in PLUGINS {
            let tenant: &[&str] = match plugin == "app-service" && values.iter().any(|it| it.contains("tenant")) {
                true => &["--account", "tenant", "--account-in", "object"],
                false => &[],
            };
            let file = artifacts::plugin(plugin)?;
            let file = file.to_str().context("a path that is not text")?;
            // A manifest does not say which kinds are in no namespace: the values of the chart do, and an argument.
            let unnamespaced = if in_one_namespace { cluster_scoped(plugin)? } else { Vec::new() };
            let unnamespaced: Vec<_> = unnamespaced.iter().map(String::as_str).collect();
            let all = [&["install", "--dry-run", file], arguments, tenant, &unnamespaced].concat();
            let printed = pilothouse(all).await?.succeeded()?;
            installed.extend(of_plugins(serde_saphyr::from_multiple::<Value>(&printed)?));
        }
        same(&chart, &installed).with_context(|| format!("with {values:?}"))?;
    }
    Ok(())
}

/// The arguments of `install` for what the values say of the kinds that a plugin looks up.
fn cluster_scoped(plugin: &str) -> Result<Vec<String>> {
    let values: Value = serde_saphyr::from_str(&std::fs::read_to_string(reference_plugins()?)?)?;
    let mut plugins = values["plugins"].as_array().context("no plugins")?.iter();
    let lookups = &plugins.find(|it| it["name"] == plugin).context("no such plugin")?["lookups"];
    let unnamespaced = lookups.as_array().into_iter().flatten().filter(|lookup| lookup["clusterScoped"] == true);
    let argument = |it: &Value| format!("--cluster-scoped={}.{}", text(&it["kind"]), text(&it["group"]));
    Ok(unnamespaced.map(argument).collect())
}

async fn a_decorator_gets_what_install_gives_it(_: &mut TestEnv) -> Result<()> {
    let plugins = serde_json::json!([{
        "name": "service-per-pod",
        "source": {"configMap": {"name": "service-per-pod"}},
        "reconciles": {"group": "apps", "kind": "StatefulSet", "resource": "statefulsets"},
        "children": [{"group": "", "kind": "Service", "resource": "services"}],
        "decorates": true,
    }]);
    let file = artifacts::example("service-per-pod")?;
    let file = file.to_str().context("a path that is not text")?;
    for (how, arguments) in [("Unconstrained", &[][..]), ("Constrained", CONSTRAINED)] {
        let values = ["--set-json", &format!("plugins={plugins}"), "--set", &format!("impersonation={how}")];
        let release = Release { chart: "pilothouse", name: "pilothouse", namespace: "pilothouse", values: &values };
        let chart = of_plugins(Helm::get().await?.objects(release).await?);
        let printed = pilothouse([&["install", "--dry-run", file], arguments].concat()).await?.succeeded()?;
        same(&chart, &of_plugins(serde_saphyr::from_multiple::<Value>(&printed)?)).context(how)?;
    }
    Ok(())
}

/// No RoleBinding gives rights on such a kind.
async fn a_lookup_of_what_is_in_no_namespace_counts_in_the_cluster(_: &mut TestEnv) -> Result<()> {
    let (helm, plugins) = (Helm::get().await?, reference_plugins()?);
    let kinds = ["resourceflavors.kueue.x-k8s.io", "workloadpriorityclasses.kueue.x-k8s.io"];
    let only = |verbs: &[&str]| -> BTreeSet<String> {
        verbs.iter().flat_map(|verb| kinds.map(|kind| format!("{verb} {kind}"))).collect()
    };
    let role = "pilothouse-plugin-training-job";
    let of_host = (format!("{role}{IN_CLUSTER}"), only(&["get", "list", "watch"]), "pilothouse");
    let of_account = (format!("{role}.account{IN_CLUSTER}"), only(&["get", "list"]), role);
    for (value, expected) in [
        ("watchNamespace=", &[][..]),
        ("watchNamespace=shop", &[of_host.clone(), of_account]),
        ("watchNamespace=shop,plugins[1].account.namespace=Object", &[of_host]),
    ] {
        let values = ["--values", &*plugins, "--set", value];
        let release = Release { chart: "pilothouse", name: "pilothouse", namespace: "pilothouse", values: &values };
        let objects = of_plugins(helm.objects(release).await?);
        let given = objects.keys().filter(|(_, name)| name.ends_with(IN_CLUSTER)).count();
        ensure!(given == 2 * expected.len(), "{value}: {:?}", objects.keys());
        for (name, wanted, account) in expected {
            let role = objects.get(&("ClusterRole".to_owned(), name.clone())).context("no role")?;
            ensure!(rights(role) == *wanted, "{value}: {name} gives {:?}", rights(role));
            let binding = objects.get(&("ClusterRoleBinding".to_owned(), name.clone())).context("no binding")?;
            let who = serde_json::json!([{"kind": "ServiceAccount", "name": account, "namespace": "pilothouse"}]);
            ensure!(binding["roleRef"]["name"] == *name && binding["subjects"] == who, "{value}: {binding}");
        }
    }
    Ok(())
}

/// Without plugins it may read what it needs to find some, and write nothing but what it keeps for itself.
async fn the_host_gets_rights_on_nothing_but_its_own(_: &mut TestEnv) -> Result<()> {
    let release = Release { chart: "pilothouse", name: "pilothouse", namespace: "pilothouse", values: &[] };
    let objects = Helm::get().await?.objects(release).await?;
    let mut given = BTreeSet::new();
    for role in objects.iter().filter(|object| object["rules"].is_array()) {
        let place = role["metadata"]["namespace"].as_str().unwrap_or("everywhere");
        given.extend(rights(role).into_iter().map(|right| format!("{place}: {right}")));
    }
    let expected = [
        "default: create events",
        "default: get events",
        "default: patch events",
        "everywhere: get namespaces",
        "everywhere: get plugins.pilothouse.dev",
        "everywhere: list namespaces",
        "everywhere: list plugins.pilothouse.dev",
        "everywhere: patch plugins/status.pilothouse.dev",
        "everywhere: watch namespaces",
        "everywhere: watch plugins.pilothouse.dev",
        "pilothouse: create configmaps",
        "pilothouse: create leases.coordination.k8s.io",
        "pilothouse: get configmaps",
        "pilothouse: get leases.coordination.k8s.io 'pilothouse'",
        "pilothouse: get secrets 'pilothouse-registry'",
        "pilothouse: list configmaps",
        "pilothouse: list leases.coordination.k8s.io",
        "pilothouse: patch configmaps 'pilothouse-kinds'",
        "pilothouse: update leases.coordination.k8s.io 'pilothouse'",
        "pilothouse: watch configmaps",
    ];
    let given: Vec<_> = given.iter().map(String::as_str).collect();
    ensure!(given == expected, "it is given {given:#?}");
    Ok(())
}

/// Whether what the chart has says the same as what `install` makes.
fn same(chart: &Objects, installed: &Objects) -> Result<()> {
    let (given, needed): (Vec<_>, Vec<_>) = (chart.keys().collect(), installed.keys().collect());
    ensure!(given == needed, "the chart has {given:#?}, install makes {needed:#?}");
    for (key, object) in installed {
        let (needed, given) = (said(object), said(&chart[key]));
        ensure!(needed == given, "{key:?} needs {needed:#?} and is given {given:#?}");
    }
    Ok(())
}

/// What belongs to plugins among these objects, without their components.
fn of_plugins(objects: Vec<Value>) -> Objects {
    let key = |object: &Value| (text(&object["kind"]).to_owned(), text(&object["metadata"]["name"]).to_owned());
    let is_of_plugin = |object: &Value| {
        let labelled = !object["metadata"]["labels"]["pilothouse.dev/component-of"].is_null();
        object["kind"] == "Plugin" || (labelled && object["kind"] != "ConfigMap")
    };
    objects.into_iter().filter(is_of_plugin).map(|object| (key(&object), object)).collect()
}

/// What an object says of rights, in a form that does not depend on how its rules are written.
fn said(object: &Value) -> Value {
    let labels = object["metadata"]["labels"]["pilothouse.dev/component-of"].clone();
    let spec = &object["spec"];
    serde_json::json!({
        "namespace": object["metadata"]["namespace"],
        "plugin": if object["kind"] == "Plugin" { Value::Null } else { labels },
        "rights": rights(object),
        "role": object["roleRef"],
        "subjects": object["subjects"],
        "grants": spec["grants"],
        "account": [&spec["serviceAccountName"], &spec["serviceAccountNamespace"]],
    })
}

/// The rights that a role grants.
fn rights(role: &Value) -> BTreeSet<String> {
    let list = |value: &Value| value.as_array().into_iter().flatten().map(|it| text(it).to_owned()).collect::<Vec<_>>();
    let mut rights = BTreeSet::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let names = list(&rule["resourceNames"]).iter().map(|name| format!(" '{name}'")).collect::<String>();
        for group in list(&rule["apiGroups"]) {
            let group = if group.is_empty() { group } else { format!(".{group}") };
            for resource in list(&rule["resources"]) {
                rights.extend(list(&rule["verbs"]).iter().map(|verb| format!("{verb} {resource}{group}{names}")));
            }
        }
    }
    rights
}
