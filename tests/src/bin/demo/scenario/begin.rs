//! The first steps: a control plane, and a host with a plugin. Steps that take long report their progress on standard error.

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
use crate::{
    cluster::{Cluster, NAMESPACE},
    environment::Environment,
    log::Mark,
    printer::Printer,
};

/// The kind that the plugin reconciles, and the one of plugins as objects of the cluster.
const CRDS: [(&str, &str); 2] =
    [("AppService", "crds/appservices.apps.example.com.yaml"), ("Plugin", "crds/plugins.pilothouse.dev.yaml")];

/// What the host is told beside its plugin directory.
const ARGUMENTS: [&str; 3] = ["--plugin-objects", "--host-namespace", NAMESPACE];

/// Starts everything.
///
/// # Errors
/// If a part does not start.
pub async fn open(printer: &mut Printer) -> Result<Environment> {
    let folder = tempfile::Builder::new().prefix("pilothouse-demo-").tempdir().context("failed to make a folder")?;
    let plane = control_plane(printer, &folder).await?;
    let cluster = Cluster::new(plane.client().await?);
    for (kind, crd) in CRDS {
        printer.command(&format!("kubectl apply -f {crd}"))?;
        let before = Instant::now();
        install_crd(cluster.client(), &artifacts::repository().join(crd)).await?;
        printer.took(kind, "the API server serves the kind", before.elapsed())?;
    }
    make_collector_look(printer, &plane).await?;
    let host = host(printer, &plane, &folder).await?;
    Ok(Environment { host, cluster, plane, folder })
}

async fn control_plane(printer: &mut Printer, folder: &TempDir) -> Result<ControlPlane> {
    printer.step("A Kubernetes control plane, real but without machines: its pods are simulated")?;
    let assets = Assets::ensure(to_stderr).await?;
    let before = Instant::now();
    let plane = ControlPlane::start(assets, Options::new(folder.path().join("control-plane"), Parts::Full)).await?;
    let pid = plane.pid(Part::ApiServer).await?;
    printer.took("kube-apiserver", format!("{} (process {pid})", plane.url()), before.elapsed())?;
    printer.say("To look at it from another terminal while the demo lasts:")?;
    printer.command(&format!("export KUBECONFIG={}", plane.kubeconfig_path().display()))?;
    Ok(plane)
}

/// The garbage collector discovers new kinds at its start and every 30 s, which is too long to wait for.
async fn make_collector_look(printer: &Printer, plane: &ControlPlane) -> Result<()> {
    let before = Instant::now();
    plane.stop_part(Part::ControllerManager).await?;
    plane.start_part(Part::ControllerManager).await?;
    printer.took("controller-manager", "restarted, to collect garbage of the new kind", before.elapsed())?;
    Ok(())
}

async fn host(printer: &mut Printer, plane: &ControlPlane, folder: &TempDir) -> Result<Host> {
    printer.step("The host, with one plugin in its plugin directory")?;
    let setup = Setup {
        kubeconfig: plane.kubeconfig_path(),
        pod: None,
        cgroup: None,
        namespace: None,
        cache: folder.path().join("compiled"),
        arguments: ARGUMENTS.map(str::to_owned).to_vec(),
        variables: Vec::new(),
    };
    let mut host = Host::prepare(setup)?;
    host.install(&artifacts::plugin("app-service")?, PLUGIN)?;
    printer.command(&format!("pilothouse run --plugins {} {}", host.plugins().display(), ARGUMENTS.join(" ")))?;
    let before = Instant::now();
    let mark = Mark::here(&host);
    host.resume().await?;
    host.ready().await?;
    printer.took("pilothouse", format!("ready (process {})", host.pid()?), before.elapsed())?;
    printer.log(&mark.line(&host, &["plugin loaded"]).await?)?;
    Ok(host)
}
