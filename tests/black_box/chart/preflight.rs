//! What renders the chart without a cluster gets the refusals of Helm from a hook that asks the cluster. Here it runs as a process with the
//! arguments and the token of the Job, and nothing more.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use pilothouse_tests::{
    cluster::create_namespace,
    helm::{Helm, Release},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::plugin_schema::{plugin, plugins};
use crate::{
    command::{Ended, pilothouse},
    deployed,
    plugin_objects::text,
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        without_being_asked_for_there_is_no_preflight,
        a_preflight_refuses_a_second_host,
        a_preflight_refuses_to_take_out_what_has_to_clean_up,
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
