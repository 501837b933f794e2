//! The control plane as its users see it: tests that start one, and people who call the program.
//! Black-box: nothing but the public interface, files in the directory, and the API server.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Client, Error};
use pilothouse_control_plane::{Assets, ControlPlane, EXIT, Options, PENDING, Part, Parts, RESTRICTED, silent};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn runs_workloads_on_its_node() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let cluster = start(dir.path(), Parts::Full).await?;
    let client = cluster.client().await?;
    make_namespace(&client, "work").await?;

    let deployments = Api::<Deployment>::namespaced(client.clone(), "work");
    deployments.create(&PostParams::default(), &deployment(3)?).await?;
    until(await_condition(deployments.clone(), "web", |found: Option<&Deployment>| {
        found.and_then(|found| found.status.as_ref()?.ready_replicas) == Some(3)
    }))
    .await?;

    let pods = Api::<Pod>::namespaced(client.clone(), "work");
    pods.create(&PostParams::default(), &pod("one", json!({}))?).await?;
    await_phase(&pods, "one", "Running").await?;
    annotate(&pods, "one", EXIT, "137").await?;
    let failed = await_phase(&pods, "one", "Failed").await?;
    ensure!(exit_code(&failed) == Some(137), "wrong exit code: {:?}", failed.status);

    pods.create(&PostParams::default(), &pod("two", json!({EXIT: "0"}))?).await?;
    await_phase(&pods, "two", "Succeeded").await?;
    pods.create(&PostParams::default(), &pod("three", json!({PENDING: ""}))?).await?;

    // Deleting the namespace needs all of it: namespace controller, garbage collector, kwok.
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.delete("work", &DeleteParams::default()).await?;
    until(await_condition(namespaces, "work", |found: Option<&Namespace>| found.is_none())).await?;

    let pids = pids(&cluster, Parts::Full).await?;
    cluster.stop().await?;
    ensure!(pids.into_iter().all(has_ended), "a process is left");
    Ok(())
}

#[tokio::test]
async fn loses_nothing_when_the_api_server_stops_or_freezes() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let cluster = start(dir.path(), Parts::Api).await?;
    let maps = Api::<ConfigMap>::default_namespaced(cluster.client().await?);
    maps.create(&PostParams::default(), &config_map("kept")).await?;

    let url = cluster.url().to_owned();
    cluster.stop_part(Part::ApiServer).await?;
    ensure!(maps.get("kept").await.is_err(), "a stopped API server answers");
    cluster.start_part(Part::ApiServer).await?;
    ensure!(cluster.url() == url, "the address changed");
    maps.get("kept").await?;

    cluster.kill_part(Part::Etcd).await?;
    cluster.start_part(Part::Etcd).await?;
    maps.get("kept").await?;

    cluster.pause(Part::ApiServer).await?;
    ensure!(timeout(Duration::from_millis(300), maps.get("kept")).await.is_err(), "a frozen API server answers");
    cluster.resume(Part::ApiServer).await?;
    timeout(PATIENCE, maps.get("kept")).await??;

    // Freezing must not get in the way of ending.
    cluster.pause(Part::ApiServer).await?;
    let pids = pids(&cluster, Parts::Api).await?;
    drop(cluster);
    ensure!(pids.into_iter().all(has_ended), "a process is left");
    Ok(())
}

#[tokio::test]
async fn knows_its_users_and_logs_every_write() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let options = Options::new(dir.path(), Parts::Api).report(silent).audit_log().user("auditor", &["system:masters"]);
    let cluster = ControlPlane::start(Assets::ensure_for(Parts::Api, silent).await?, options).await?;

    let maps = Api::<ConfigMap>::default_namespaced(cluster.client_for(RESTRICTED).await?);
    let refused = maps.create(&PostParams::default(), &config_map("no")).await;
    ensure!(matches!(&refused, Err(Error::Api(status)) if status.is_forbidden()), "not refused: {refused:?}");
    ensure!(cluster.kubeconfig_for("nobody").is_err());

    let maps = Api::<ConfigMap>::default_namespaced(cluster.client_for("auditor").await?);
    for name in ["one", "two", "three"] {
        maps.create(&PostParams::default(), &config_map(name)).await?;
        maps.get(name).await?;
    }
    ensure!(writes_of(&cluster, "auditor")? == 3);
    ensure!(writes_of(&cluster, RESTRICTED)? == 1);
    ensure!(cluster.metrics().await?.contains("apiserver_request_total"));
    ensure!(cluster.ca_pem().starts_with("-----BEGIN CERTIFICATE-----"));

    let second =
        ControlPlane::start(Assets::ensure_for(Parts::Api, silent).await?, Options::new(dir.path(), Parts::Api));
    ensure!(second.await.is_err(), "two in one directory");
    cluster.stop().await
}

#[tokio::test]
async fn up_is_harmless_twice_and_repairs() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let _down = DownAtTheEnd(dir.path());
    let first = command("up", dir.path())?;
    ensure!(first.status.success(), "{first:?}");
    let kubeconfig = dir.path().canonicalize()?.join("kubeconfig");
    let expected = format!("export KUBECONFIG={}\n", kubeconfig.display());
    ensure!(String::from_utf8_lossy(&first.stdout) == expected, "{first:?}");

    let before = pid_files(dir.path())?;
    let again = command("up", dir.path())?;
    ensure!(again.status.success() && pid_files(dir.path())? == before, "{again:?}");
    ensure!(command("status", dir.path())?.status.success());

    let maps = Api::<ConfigMap>::default_namespaced(client_from(&kubeconfig).await?);
    maps.create(&PostParams::default(), &config_map("kept")).await?;
    let etcd = before["etcd"].as_u64().context("no process of etcd")?;
    Command::new("sh").args(["-c", &format!("kill -s KILL {etcd}")]).status()?;
    until_sync(|| has_ended(etcd as u32))?;
    ensure!(command("status", dir.path())?.status.code() == Some(3));

    let repaired = command("up", dir.path())?;
    ensure!(repaired.status.success(), "{repaired:?}");
    maps.get("kept").await?;

    let after = pid_files(dir.path())?;
    ensure!(command("down", dir.path())?.status.success());
    let ended = |pid: &Value| pid.as_u64().is_some_and(|pid| has_ended(pid as u32));
    ensure!(after.as_object().is_some_and(|pids| pids.values().all(ended)), "a process is left");
    ensure!(command("status", dir.path())?.status.code() == Some(3));
    ensure!(command("down", dir.path())?.status.success());
    Ok(())
}

#[test]
fn leaves_other_directories_alone() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let precious = dir.path().join("etcd");
    std::fs::create_dir(&precious)?;
    ensure!(command("down", dir.path())?.status.code() == Some(1));
    ensure!(command("up", dir.path())?.status.code() == Some(1));
    ensure!(precious.exists());
    Ok(())
}

async fn start(dir: &Path, parts: Parts) -> Result<ControlPlane> {
    let begin = Instant::now();
    let assets = Assets::ensure_for(parts, silent).await?;
    let cluster = ControlPlane::start(assets, Options::new(dir, parts)).await?;
    println!("{parts:?} started in {:?}", begin.elapsed());
    Ok(cluster)
}

async fn until<T>(condition: impl Future<Output = Result<T, kube::runtime::wait::Error>>) -> Result<T> {
    Ok(timeout(PATIENCE, condition).await.context("waited too long")??)
}

fn until_sync(condition: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        ensure!(Instant::now() < deadline, "waited too long");
        std::thread::yield_now();
    }
    Ok(())
}

async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(())
}

fn deployment(replicas: i32) -> Result<Deployment> {
    let labels = json!({"app": "web"});
    Ok(serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [
                {"name": "web", "image": "web", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
            ]}},
        },
    }))?)
}

fn pod(name: &str, annotations: Value) -> Result<Pod> {
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "initContainers": [{"name": "first", "image": "first"}],
            "containers": [{"name": "main", "image": "main"}],
        },
    }))?)
}

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map
}

async fn annotate(pods: &Api<Pod>, name: &str, key: &str, value: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {key: value}}});
    pods.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn await_phase(pods: &Api<Pod>, name: &str, phase: &str) -> Result<Pod> {
    let reached = |found: Option<&Pod>| found.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some(phase);
    until(await_condition(pods.clone(), name, reached)).await?.context("the pod is gone")
}

fn exit_code(pod: &Pod) -> Option<i32> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    Some(statuses.first()?.state.as_ref()?.terminated.as_ref()?.exit_code)
}

fn writes_of(cluster: &ControlPlane, user: &str) -> Result<usize> {
    let log = std::fs::read_to_string(cluster.audit_log_path())?;
    let lines: Vec<Value> = log.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok(lines.iter().filter(|line| line["user"]["username"] == user && line["stage"] == "ResponseComplete").count())
}

async fn pids(cluster: &ControlPlane, parts: Parts) -> Result<Vec<u32>> {
    let mut pids = Vec::new();
    for part in parts.list() {
        pids.push(cluster.pid(*part).await?);
    }
    Ok(pids)
}

/// Gone, or only waiting to be reaped.
fn has_ended(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| line.is_empty())
}

fn pid_files(dir: &Path) -> Result<Value> {
    let state: Value = serde_json::from_str(&std::fs::read_to_string(dir.join("state.json"))?)?;
    Ok(state["pids"].clone())
}

async fn client_from(kubeconfig: &Path) -> Result<Client> {
    let file = kube::config::Kubeconfig::read_from(kubeconfig)?;
    Ok(Client::try_from(kube::Config::from_custom_kubeconfig(file, &Default::default()).await?)?)
}

fn command(name: &str, dir: &Path) -> Result<Output> {
    Ok(Command::new(env!("CARGO_BIN_EXE_control-plane")).arg(name).arg("--dir").arg(dir).output()?)
}

/// Also when the test fails half way.
struct DownAtTheEnd<'a>(&'a Path);

impl Drop for DownAtTheEnd<'_> {
    fn drop(&mut self) {
        if let Err(error) = command("down", self.0) {
            eprintln!("cannot run down: {error:#}");
        }
    }
}
