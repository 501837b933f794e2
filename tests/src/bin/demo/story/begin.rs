//! The first steps: a control plane, and a host with a plugin. What takes long tells its progress on standard error.

use std::time::Instant;

use anyhow::{Context, Result};
use pilothouse_control_plane::{Assets, ControlPlane, Options, Part, Parts, to_stderr};
use pilothouse_tests::{
    artifacts,
    cluster::install_crd,
    host::{Host, Setup},
};
use tempfile::TempDir;

use super::PLUGIN;
use crate::{cluster::Cluster, log::Mark, narrator::Narrator, stage::Stage};

const CRD: &str = "crds/appservices.apps.example.com.yaml";

/// Starts everything.
///
/// # Errors
/// What did not start.
pub async fn open(narrator: &mut Narrator) -> Result<Stage> {
    let folder = tempfile::Builder::new().prefix("pilothouse-demo-").tempdir().context("failed to make a folder")?;
    let plane = control_plane(narrator, &folder).await?;
    let cluster = Cluster::new(plane.client().await?);
    narrator.command(&format!("kubectl apply -f {CRD}"))?;
    let before = Instant::now();
    install_crd(cluster.client(), &artifacts::repository().join(CRD)).await?;
    narrator.took("AppService", "the API server serves the kind", before.elapsed())?;
    make_collector_look(narrator, &plane).await?;
    let host = host(narrator, &plane, &folder).await?;
    Ok(Stage { host, cluster, plane, folder })
}

async fn control_plane(narrator: &mut Narrator, folder: &TempDir) -> Result<ControlPlane> {
    narrator.step("A Kubernetes control plane, real but without machines: its pods are simulated")?;
    let assets = Assets::ensure(to_stderr).await?;
    let before = Instant::now();
    let plane = ControlPlane::start(assets, Options::new(folder.path().join("control-plane"), Parts::Full)).await?;
    let pid = plane.pid(Part::ApiServer).await?;
    narrator.took("kube-apiserver", format!("{} (process {pid})", plane.url()), before.elapsed())?;
    narrator.say("To look at it from another terminal while the demo lasts:")?;
    narrator.command(&format!("export KUBECONFIG={}", plane.kubeconfig_path().display()))?;
    Ok(plane)
}

/// The garbage collector looks for new kinds every 30 s and as it starts; the story has no 30 s to wait.
async fn make_collector_look(narrator: &Narrator, plane: &ControlPlane) -> Result<()> {
    let before = Instant::now();
    plane.stop_part(Part::ControllerManager).await?;
    plane.start_part(Part::ControllerManager).await?;
    narrator.took("controller-manager", "restarted, to collect garbage of the new kind", before.elapsed())?;
    Ok(())
}

async fn host(narrator: &mut Narrator, plane: &ControlPlane, folder: &TempDir) -> Result<Host> {
    narrator.step("The host, with one plugin in its plugin directory")?;
    let setup = Setup {
        kubeconfig: plane.kubeconfig_path(),
        pod: None,
        namespace: None,
        cache: folder.path().join("compiled"),
        arguments: Vec::new(),
    };
    let mut host = Host::prepare(setup)?;
    host.install(&artifacts::plugin("app-service")?, PLUGIN)?;
    narrator.command(&format!("pilothouse run --plugins {}", host.plugins().display()))?;
    let before = Instant::now();
    let mark = Mark::here(&host);
    host.resume().await?;
    host.ready().await?;
    narrator.took("pilothouse", format!("ready (process {})", host.pid()?), before.elapsed())?;
    narrator.log(&mark.line(&host, &["plugin loaded"]).await?)?;
    Ok(host)
}
