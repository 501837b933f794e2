//! Releases that Helm refuses by what is in the cluster: a second host, and one without a plugin that has to clean up first. Renders nothing;
//! which values fit is elsewhere.

use anyhow::{Context, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use pilothouse_tests::{
    artifacts,
    cluster::{create_namespace, install_crd},
    helm::{Helm, Release},
};
use serde_json::json;

use super::plugin_schema::{plugin, plugins};
use crate::{
    old_crd::lose,
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// The chart of the host under the name that everybody takes.
const FIRST: Release<'static> = Release { chart: "pilothouse", name: "pilothouse", namespace: "first", values: &[] };

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_cluster_takes_one_host,
        a_plugin_that_has_to_clean_up_is_not_taken_out,
        a_plugin_of_which_nobody_knows_is_not_taken_out,
    );
}

/// Whatever its name, its namespace and what it watches.
async fn a_cluster_takes_one_host(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    for namespace in ["first", "second"] {
        create_namespace(&env.namespace.client(), namespace).await?;
    }
    let (helm, admin) = (Helm::get().await?, env.cluster.plane.kubeconfig_path());
    helm.install(FIRST, &admin).await?;
    for (name, namespace, values) in [
        ("other", "first", &[][..]),
        ("other", "second", &[]),
        ("pilothouse", "second", &["--set", "fullnameOverride=other"]),
        ("other", "second", &["--set", "watchNamespace=second"]),
    ] {
        let second = Release { chart: "pilothouse", name, namespace, values };
        let refused = helm.install(second, &admin).await.err().with_context(|| format!("it takes {second:?}"))?;
        let said = refused.to_string();
        ensure!(
            said.contains("the release 'pilothouse' in the namespace 'first' is in this cluster already"),
            "{said}"
        );
    }
    // One is no second one of itself, and an operator with its plugins in its image is none at all.
    helm.upgrade(Release { values: &["--set", "replicas=1"], ..FIRST }, &admin).await?;
    helm.install(Release { chart: "llm-operator", name: "llm-operator", namespace: "second", values: &[] }, &admin)
        .await?;
    helm.uninstall(FIRST, &admin).await?;
    helm.install(Release { chart: "pilothouse", name: "other", namespace: "second", values: &[] }, &admin).await
}

/// With it would go the rights that its finalizers and decorations are taken off with.
async fn a_plugin_that_has_to_clean_up_is_not_taken_out(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    create_namespace(&env.namespace.client(), "first").await?;
    let (helm, admin) = (Helm::get().await?, env.cluster.plane.kubeconfig_path());
    let all = plugins(&["plain", "finalizes", "decorates"].map(|name| plugin(name, &json!({}))));
    helm.install(Release { values: &["--set-json", &all], ..FIRST }, &admin).await?;
    let objects = env.namespace.api("Plugin")?;
    for (name, status) in [
        ("finalizes", json!({"finalizers": ["test.pilothouse.dev/finalizer"]})),
        ("decorates", json!({"decorates": true})),
    ] {
        let status = Patch::Merge(json!({"status": status}));
        objects.patch_status(name, &PatchParams::default(), &status).await?;
    }
    let without = async |names: &[&str]| {
        let kept: Vec<_> = names.iter().map(|name| plugin(name, &json!({}))).collect();
        helm.upgrade(Release { values: &["--reset-values", "--set-json", &plugins(&kept)], ..FIRST }, &admin).await
    };
    without(&["finalizes", "decorates"]).await.context("one that leaves nothing is not taken out")?;
    for (kept, missing) in [("finalizes", "decorates"), ("decorates", "finalizes")] {
        let said = without(&[kept]).await.err().with_context(|| format!("{missing} is taken out"))?.to_string();
        ensure!(said.contains(&format!("`pilothouse uninstall {missing}`")), "{said}");
        ensure!(objects.get_opt(missing).await?.is_some(), "{missing} is gone all the same");
    }
    for name in ["finalizes", "decorates"] {
        objects.delete(name, &DeleteParams::default()).await?;
    }
    without(&[]).await.context("those that are gone already")
}

/// The CRD is of another version, and takes no status that would say it. Helm never updates it.
async fn a_plugin_of_which_nobody_knows_is_not_taken_out(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    create_namespace(&env.namespace.client(), "first").await?;
    let (helm, admin) = (Helm::get().await?, env.cluster.plane.kubeconfig_path());
    let all = plugins(&["web", "shop"].map(|name| plugin(name, &json!({}))));
    let some = plugins(&[plugin("shop", &json!({}))]);
    helm.install(Release { values: &["--set-json", &all], ..FIRST }, &admin).await?;
    lose(env, &["finalizers"]).await?;
    helm.upgrade(Release { values: &["--set-json", &all], ..FIRST }, &admin).await.context("nothing is taken out")?;
    let upgrade = Release { values: &["--reset-values", "--set-json", &some], ..FIRST };
    let said = helm.upgrade(upgrade, &admin).await.err().context("it is taken out")?.to_string();
    for words in ["'web' is not in the values any more", "no status.finalizers", "pilothouse crd | kubectl apply"] {
        ensure!(said.contains(words), "{said}");
    }
    install_crd(&env.namespace.client(), &artifacts::repository().join("crds/plugins.pilothouse.dev.yaml")).await?;
    helm.upgrade(upgrade, &admin).await
}
