//! The commands of the seeds and of the Makefile, with the kubectl of this machine, on an API server of the test's own: the seeds' files are
//! applied, an operator is looked at and edited, and `make run` has a host work here. Without a kubectl they are left out, and say so.

use std::{env, ffi::OsString, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::signal::{self, Signal};
use pilothouse_tests::{
    artifacts,
    cluster::{Awaited, PATIENCE},
    needs,
    process_group::ProcessGroup,
    wait::{Look, eventually},
};
use tokio::{process::Command, time::timeout};

use super::{PLUGINS, image::said};
use crate::{
    suite::{Suite, tests, tests_with},
    test_env::{TestEnv, app},
};

/// How long `make run` may take to build what is not built yet.
const BUILD: Duration = Duration::from_secs(300);

pub fn register(suite: &mut Suite) {
    tests_with!(suite, needs::kubectl(), the_files_of_the_seeds_are_applied_one_after_the_other);
    tests!(suite, make_run_has_a_host_work_on_the_cluster_of_kubectl, the_folders_are_those_of_the_seed);
}

/// `kubectl apply -f 01-what-is-crd.yaml`, `02-simple-operator.yaml`, `my-llm-model.yaml` (G1), and what the seeds do with kinds (G4) and
/// objects (G5) then, and ask of the operator's account (G7).
async fn the_files_of_the_seeds_are_applied_one_after_the_other(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    let kubeconfig = env.cluster.plane.kubeconfig_path();
    let k = async |line: &str| kubectl(&kubeconfig, line).await;
    let crd = "llmmodels.ai.example.com";
    k(&format!("apply -f crds/{crd}.yaml")).await?;
    k(&format!("wait --for=condition=Established crd/{crd} --timeout=30s")).await?;
    k("apply -f deploy/llm-operator.yaml").await?;
    k("apply -f crds/samples/llmmodel.yaml").await?;

    ensure!(k("get crds").await?.contains(crd), "it is not listed");
    ensure!(k(&format!("describe crd {crd}")).await?.contains("LLMModelList"), "it is not described");
    ensure!(k(&format!("get crd {crd} -o yaml")).await?.contains("shortNames"), "it is not printed");
    let account = "system:serviceaccount:default:llm-operator";
    ensure!(k(&format!("auth can-i create deployments --as={account}")).await?.trim() == "yes", "it may not");
    let role = k("get role llm-operator -o yaml").await?;
    ensure!(role.contains("llmmodels/status"), "{role}");
    k("set env deployment/llm-operator LOG_LEVEL=debug").await?;
    let level = "jsonpath={.spec.template.spec.containers[0].env[?(@.name==\"LOG_LEVEL\")].value}";
    ensure!(k(&format!("get deployment llm-operator -o {level}")).await? == "debug", "another level");

    let model = "llama-3-70b-serving";
    ensure!(k("get llmmodels").await?.contains(model), "it is not listed");
    ensure!(k(&format!("describe llmmodel {model}")).await?.contains("Model Name"), "it is not described");
    ensure!(k(&format!("get llmmodel {model} -o yaml")).await?.contains("modelName: llama-3-70b"), "it is not printed");
    edit(&kubeconfig, model, "s/replicas: 3/replicas: 4/").await?;
    ensure!(k(&format!("get llmmodel {model} -o jsonpath={{.spec.replicas}}")).await? == "4", "it is not edited");
    k(&format!("delete llmmodel {model}")).await?;
    k("apply -f crds/samples/llmmodel.yaml").await?;
    k(&format!("delete crd {crd}")).await?;
    ensure!(kubectl(&kubeconfig, "get llmmodels").await.is_err(), "the kind is still there");
    Ok(())
}

/// `make run` builds what it needs and runs a host with all reference plugins until it is ended. What it is given is passed on.
async fn make_run_has_a_host_work_on_the_cluster_of_kubectl(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/appservices.apps.example.com.yaml"]).await?;
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let own = "--health-address=127.0.0.1:0 --metrics-address=127.0.0.1:0 --log-format=json";
    let mut make = Command::new("make");
    make.args(["run", &format!("ARGS={own}")]).current_dir(artifacts::repository());
    for name in set_by_cargo() {
        make.env_remove(name);
    }
    make.env("KUBECONFIG", env.cluster.plane.kubeconfig_path()).stdin(Stdio::null());
    make.stdout(Stdio::null()).stderr(std::fs::File::create(&log)?);
    let mut running = ProcessGroup::start(&mut make)?;
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    env.namespace.apply(app("shop")).await?;
    let there = Awaited { kind: "Deployment", name: "shop", what: "to be there" };
    env.namespace.until_within(BUILD, &there, |_| true).await.with_context(said)?;
    for plugin in PLUGINS {
        let loaded = format!(r#""plugin":"{plugin}""#);
        eventually(PATIENCE, &format!("it to have {plugin}"), async || Ok(Look::of(said().contains(&loaded), said())))
            .await?;
    }
    // make passes it on to the host, and waits for its end.
    signal::send(running.id(), Signal::Terminate)?;
    timeout(PATIENCE, running.wait()).await.with_context(said)??;
    eventually(PATIENCE, "the host to end", async || Ok(Look::of(said().contains("pilothouse ends"), said()))).await
}

/// What cargo says of the test's own package. The build script of ring takes a change of these for a reason to build again, and with it all
/// that stands on it.
fn set_by_cargo() -> impl Iterator<Item = OsString> {
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    env::vars_os().map(|(name, _)| name).filter(move |name| name.to_str().is_some_and(of_package))
}

/// Those of the chart, with what it needs (C7, C10), of the CRDs and of the Makefile that the seed's steps (C11) name.
async fn the_folders_are_those_of_the_seed(_: &mut TestEnv) -> Result<()> {
    let (chart, root) = (artifacts::repository().join("deploy/helm-charts/llm-operator"), artifacts::repository());
    for file in ["Chart.yaml", "values.yaml"] {
        ensure!(chart.join(file).is_file(), "the chart has no {file}");
    }
    let needs = std::fs::read_to_string(chart.join("Chart.yaml"))?;
    ensure!(needs.contains("kubeVersion: \">=1.22"), "the chart says another version: {needs}");
    for folder in [chart.join("crds"), chart.join("templates"), root.join("crds")] {
        ensure!(folder.read_dir()?.count() > 1, "'{}' is empty", folder.display());
    }
    let of_chart = |name: &str| std::fs::read(chart.join("crds").join(name));
    for entry in chart.join("crds").read_dir()? {
        let name = entry?.file_name();
        let name = name.to_str().context("a name that is not text")?;
        ensure!(of_chart(name)? == std::fs::read(root.join("crds").join(name))?, "{name} is another one than in crds/");
    }
    let makefile = std::fs::read_to_string(root.join("Makefile"))?;
    for target in ["manifests", "install", "run", "docker-build", "docker-push", "deploy"] {
        ensure!(makefile.lines().any(|line| line.starts_with(&format!("{target}:"))), "there is no `make {target}`");
    }
    Ok(())
}

/// Runs kubectl in the repository.
async fn kubectl(kubeconfig: &Path, line: &str) -> Result<String> {
    let mut command = Command::new("kubectl");
    command.args(line.split(' ')).env("KUBECONFIG", kubeconfig).current_dir(artifacts::repository());
    said(&mut command).await
}

/// `kubectl edit`, with an editor that replaces a text.
async fn edit(kubeconfig: &Path, model: &str, expression: &str) -> Result<()> {
    let mut command = Command::new("kubectl");
    command.args(["edit", "llmmodel", model]).env("KUBECONFIG", kubeconfig);
    command.env("KUBE_EDITOR", format!("sed -i '{expression}'"));
    said(&mut command).await.map(drop)
}
