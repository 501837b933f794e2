//! What renders the chart without a cluster gets the refusals of Helm from a hook that asks the cluster. Here it runs as a process with the
//! arguments and the token of the Job, and nothing more.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, create_namespace, install_crd},
    helm::{Helm, Release},
    wait::{Look, eventually},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::plugin_schema::{plugin, plugins};
use crate::{
    command::{Ended, pilothouse},
    deployed,
    old_crd::lose,
    plugin_objects::text,
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        without_being_asked_for_there_is_no_preflight,
        a_preflight_refuses_a_second_host,
        a_preflight_knows_its_release_under_another_account,
        a_preflight_refuses_to_take_out_what_has_to_clean_up,
        a_preflight_refuses_to_take_out_what_nobody_knows,
    );
}

async fn without_being_asked_for_there_is_no_preflight(_: &mut TestEnv) -> Result<()> {
    let release = Release { chart: "pilothouse", name: "pilothouse", namespace: "first", values: &[] };
    let objects = Helm::get().await?.objects(release).await?;
    ensure!(objects.iter().all(|object| object["kind"] != "Job"), "there is a Job");
    Ok(())
}

async fn a_preflight_refuses_a_second_host(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    for namespace in ["first", "second"] {
        create_namespace(&env.namespace.client(), namespace).await?;
    }
    let of = |name, namespace| Release {
        chart: "pilothouse",
        name,
        namespace,
        values: &["--set", "preflight.enabled=true"],
    };
    // Before the first release there is no kind Plugin.
    Preflight::of(env, of("pilothouse", "first")).await?.run().await?.succeeded()?;
    apply(env, of("pilothouse", "first")).await?;
    Preflight::of(env, of("pilothouse", "first")).await?.run().await?.succeeded()?;
    for (name, namespace) in [("other", "first"), ("other", "second"), ("pilothouse", "second")] {
        let ended = Preflight::of(env, of(name, namespace)).await?.run().await?;
        ended.failed_with(&["the host 'pilothouse' in the namespace 'first' is in this cluster already"])?;
    }
    Ok(())
}

/// As Helm does, which goes by the name of the release. By hand, nobody is told to delete what is his own.
async fn a_preflight_knows_its_release_under_another_account(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    for namespace in ["first", "second"] {
        create_namespace(&env.namespace.client(), namespace).await?;
    }
    let of = |name, namespace, values| Release { chart: "pilothouse", name, namespace, values };
    let (same, another) = (
        &["--set", "preflight.enabled=true"][..],
        &["--set", "preflight.enabled=true,serviceAccount.name=another"][..],
    );
    apply(env, of("web", "first", same)).await?;
    let upgrade = Preflight::of(env, of("web", "first", another)).await?;
    upgrade.run().await?.succeeded()?;
    let by_hand = upgrade.arguments.iter().filter(|argument| !argument.starts_with("--release")).cloned().collect();
    let by_hand = Preflight { arguments: by_hand, ..upgrade }.run().await?;
    ensure!(!by_hand.errors.contains("delete"), "{by_hand:?}");
    by_hand.failed_with(&["the host 'web-pilothouse' in the namespace 'first'", "say --release web"])?;
    for (name, namespace) in [("web", "second"), ("other", "first")] {
        let other = Preflight::of(env, of(name, namespace, another)).await?.run().await?;
        other.failed_with(&["the host 'web-pilothouse' in the namespace 'first' is in this cluster already"])?;
    }
    Ok(())
}

/// A CRD of another version does not take what the host would say, so that nothing said is not nothing.
async fn a_preflight_refuses_to_take_out_what_nobody_knows(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    create_namespace(&env.namespace.client(), "first").await?;
    let values = |names: &[&str]| plugins(&names.iter().map(|name| plugin(name, &json!({}))).collect::<Vec<_>>());
    let (all, none) = (values(&["web"]), values(&[]));
    let with = |plugins| Release { chart: "pilothouse", name: "pilothouse", namespace: "first", values: plugins };
    let all = ["--set", "preflight.enabled=true", "--set-json", &all];
    let none = ["--set", "preflight.enabled=true", "--set-json", &none];
    apply(env, with(&all)).await?;
    for field in ["finalizers", "decorates"] {
        lose(env, &[field]).await?;
        let unknown = Preflight::of(env, with(&none)).await?;
        eventually(PATIENCE, &format!("it to find out that status.{field} is missing"), async || {
            let ended = unknown.run().await?;
            Ok(Look::of(ended.code == 1 && ended.errors.contains(&format!("no status.{field}")), format!("{ended:?}")))
        })
        .await?;
        let ended = unknown.run().await?;
        ended.failed_with(&[
            "'web' is not in the values any more",
            "cannot be known",
            "pilothouse crd | kubectl apply",
        ])?;
        // Nothing is taken out.
        Preflight::of(env, with(&all)).await?.run().await?.succeeded()?;
        install_crd(&env.namespace.client(), &artifacts::repository().join("crds/plugins.pilothouse.dev.yaml")).await?;
        eventually(PATIENCE, "it to find out that all is declared", async || {
            let ended = unknown.run().await?;
            Ok(Look::of(ended.code == 0, format!("{ended:?}")))
        })
        .await?;
    }
    Ok(())
}

async fn a_preflight_refuses_to_take_out_what_has_to_clean_up(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    create_namespace(&env.namespace.client(), "first").await?;
    let values = |names: &[&str]| plugins(&names.iter().map(|name| plugin(name, &json!({}))).collect::<Vec<_>>());
    let (all, some) = (values(&["plain", "finalizes", "decorates"]), values(&["finalizes"]));
    let with = |plugins| Release { chart: "pilothouse", name: "pilothouse", namespace: "first", values: plugins };
    let all = ["--set", "preflight.enabled=true", "--set-json", &all];
    let some = ["--set", "preflight.enabled=true", "--set-json", &some];
    apply(env, with(&all)).await?;
    let objects = env.namespace.api("Plugin")?;
    for (name, status) in [
        ("finalizes", json!({"finalizers": ["test.pilothouse.dev/finalizer"]})),
        ("decorates", json!({"decorates": true})),
    ] {
        objects.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
    }
    Preflight::of(env, with(&all)).await?.run().await?.succeeded()?;
    let ended = Preflight::of(env, with(&some)).await?.run().await?;
    ended.failed_with(&["'decorates' is not in the values any more", "pilothouse uninstall decorates"])?;
    objects.delete("decorates", &DeleteParams::default()).await?;
    // The one that is left out now leaves nothing.
    Preflight::of(env, with(&some)).await?.run().await?.succeeded().map(drop)
}

/// Applies what a chart renders to without a cluster, but for its hooks.
async fn apply(env: &TestEnv, release: Release<'_>) -> Result<()> {
    for object in Helm::get().await?.objects(release).await?.iter().filter(|object| !is_hook(object)) {
        deployed::apply(env, object, &PatchParams::apply("gitops").force()).await?;
    }
    Ok(())
}

fn is_hook(object: &Value) -> bool {
    object["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
}

/// A hook whose objects are in the cluster.
struct Preflight {
    arguments: Vec<String>,
    kubeconfig: PathBuf,
    _folder: TempDir,
}

impl Preflight {
    async fn of(env: &TestEnv, release: Release<'_>) -> Result<Self> {
        let objects = Helm::get().await?.objects(release).await?;
        for hook in objects.iter().filter(|object| is_hook(object) && object["kind"] != "Job") {
            deployed::apply(env, hook, &PatchParams::apply("gitops").force()).await?;
        }
        let job = objects.iter().find(|object| is_hook(object) && object["kind"] == "Job").context("no Job")?;
        let pod = &job["spec"]["template"]["spec"];
        let account = (release.namespace.to_owned(), text(&pod["serviceAccountName"]).to_owned());
        let (folder, kubeconfig) = deployed::kubeconfig(env, &account).await?;
        let arguments = pod["containers"][0]["args"].as_array().context("no arguments")?;
        let arguments = arguments.iter().map(|it| text(it).to_owned()).collect();
        Ok(Self { arguments, kubeconfig, _folder: folder })
    }

    async fn run(&self) -> Result<Ended> {
        let kubeconfig = self.kubeconfig.to_str().context("a path that is not text")?;
        pilothouse(self.arguments.iter().map(String::as_str).chain(["--kubeconfig", kubeconfig])).await
    }
}
