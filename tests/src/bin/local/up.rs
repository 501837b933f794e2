//! `up`: starts what does not run, in order, and says how to go on. What runs and is as desired is left alone.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use pilothouse_control_plane::{Assets, Options, Parts, Up};
use pilothouse_tests::{
    artifacts,
    cluster::install_crd,
    wait::{Look, eventually},
};

use crate::{
    addresses::Addresses,
    files::Files,
    http, plugins, process,
    record::{self, Record},
    say,
};

/// The time limit for the host to become ready; it compiles its plugins in that time.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs the command.
///
/// # Errors
/// If a part does not start. Quotes the end of its log.
pub async fn up(files: &Files) -> Result<()> {
    let _lock = files.lock()?;
    let (done, kubeconfig) = control_plane(files).await?;
    install_crds(&kubeconfig).await?;
    plugins::install(files)?;
    let pid = host(files, done, &kubeconfig).await?;
    let addresses = ready(pid, files).await?;
    print(addresses, files, &kubeconfig);
    Ok(())
}

async fn control_plane(files: &Files) -> Result<(Up, PathBuf)> {
    let mut options = Options::new(files.control_plane(), Parts::Full);
    options = options.report(say);
    let assets = Assets::ensure(say).await?;
    say("control plane: looking, and starting what does not run (some seconds)");
    let (done, kubeconfig) = pilothouse_control_plane::up(&assets, &options).await?;
    say(match done {
        Up::Already => "control plane: runs already",
        Up::Started => "control plane: started",
        Up::Repaired => "control plane: was not right; started again, with the same objects",
    });
    Ok((done, kubeconfig))
}

async fn install_crds(kubeconfig: &Path) -> Result<()> {
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?;
    let client = Client::try_from(config)?;
    let mut crds = Vec::new();
    for entry in std::fs::read_dir(artifacts::repository().join("crds"))? {
        crds.push(entry?.path());
    }
    crds.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    crds.sort();
    for crd in &crds {
        install_crd(&client, crd).await.with_context(|| format!("failed to install '{}'", crd.display()))?;
    }
    say(&format!("CustomResourceDefinitions: {} installed", crds.len()));
    Ok(())
}

/// The process of the host that runs, or of a new one where none does, its binary is another one now, or its control plane is new.
async fn host(files: &Files, control_plane: Up, kubeconfig: &Path) -> Result<u32> {
    let binary = artifacts::host_binary()?;
    let built = record::built(&binary)?;
    if let Some(known) = Record::load(files)?.filter(|known| process::is_host(known.pid, files)) {
        let why = match control_plane {
            Up::Already if known.built == built => {
                say(&format!("host: runs already (process {})", known.pid));
                return Ok(known.pid);
            }
            Up::Already => "its binary was built anew",
            Up::Started | Up::Repaired => "its control plane was started anew",
        };
        say(&format!("host: process {} is stopped, because {why}", known.pid));
        process::stop(known.pid, files).await?;
    }
    start(files, &binary, built, kubeconfig).await
}

/// Starts the host and remembers it at once, so that `down` finds it whatever happens next.
async fn start(files: &Files, binary: &Path, built: String, kubeconfig: &Path) -> Result<u32> {
    let mut host = process::start(binary, kubeconfig, files)?;
    let pid = host.id();
    Record { pid, built }.save(files)?;
    say(&format!("host: started (process {pid}), waiting until it is ready"));
    let log = || std::fs::read_to_string(files.log()).unwrap_or_default();
    process::began(&mut host, files).await.with_context(|| format!("its log: {}", log()))?;
    Ok(pid)
}

/// Waits until the host says that it is ready. A host that has ended is not waited for.
async fn ready(pid: u32, files: &Files) -> Result<Addresses> {
    let why = format!("the host to be ready (log: {})", files.log().display());
    let ready = eventually(PATIENCE, &why, async || {
        if !process::is_host(pid, files) {
            return Ok(Look::Found(Err(std::fs::read_to_string(files.log())?)));
        }
        let addresses = Addresses::load(files)?;
        let (status, body) = http::get(addresses.health, "/readyz").await?;
        Ok(if status == 200 { Look::Found(Ok(addresses)) } else { Look::NotYet(body) })
    });
    ready.await?.map_err(|log| anyhow!("the host ended; its log: {log}"))
}

/// How to go on. Standard output has nothing but the line for the shell.
fn print(addresses: Addresses, files: &Files, kubeconfig: &Path) {
    say(&format!(
        "
ready. Log: {}
       Plugins: {} (copy a .wasm file there to install it)
       Metrics: http://{}/metrics   Health: http://{}/readyz

Go on with the next line, and then, for example:
  kubectl apply -f crds/samples/appservice.yaml
  kubectl get appservices,trainingjobs,deployments,services,pods
  make down
",
        files.log().display(),
        files.plugins().display(),
        addresses.metrics,
        addresses.health,
    ));
    println!("export KUBECONFIG={}", kubeconfig.display());
}
