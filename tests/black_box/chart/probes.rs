//! What the chart says of a host's ports against what a host does that runs with the chart's arguments: which it listens on, who answers probes,
//! and what it reaches. Whether a NetworkPolicy is enforced is the cluster's affair, and not seen here.

use std::{collections::BTreeSet, path::Path, process::Stdio};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition},
    helm::{Helm, Release},
    needs,
    registry::Registry,
    sockets::{self, Ports},
    wait::{Look, eventually},
};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::{
    deployed::Deployed,
    plugin_objects::{plugin_object, text},
    registries::{push, source},
    suite::{Suite, tests, tests_with},
    test_env::TestEnv,
};

/// The name of the release, and of its host.
const HOST: &str = "pilothouse";

pub fn register(suite: &mut Suite) {
    tests_with!(suite, needs::own_network(), a_host_listens_on_the_ports_of_its_pod);
    tests!(suite, a_host_answers_its_probes, a_host_reaches_the_api_server_and_registries);
}

/// With the arguments of the Deployment as they are, in a network of its own: nobody else has these ports there.
async fn a_host_listens_on_the_ports_of_its_pod(_: &mut TestEnv) -> Result<()> {
    let objects = rendered().await?;
    let container = &of_kind(&objects, "Deployment")?["spec"]["template"]["spec"]["containers"][0];
    let declared = container["ports"].as_array().into_iter().flatten().map(|port| number(&port["containerPort"]));
    let declared: BTreeSet<u16> = declared.collect::<Result<_>>()?;
    let folder = tempfile::tempdir()?;
    let host = alone(&artifacts::host_binary()?, container, folder.path())?;
    let pid = host.id().context("it has ended")?;
    eventually(PATIENCE, "the host to listen", async || {
        let found = sockets::ports(pid)?;
        Ok(Look::of(found.listening == declared, format!("{found:?}, and the Pod has {declared:?}")))
    })
    .await?;
    // Of the two, only that of the metrics is open to others.
    let policy = of_kind(&objects, "NetworkPolicy")?;
    ensure!(policy["spec"]["ingress"] == json!([{"ports": [{"port": "metrics"}]}]), "{policy}");
    Ok(())
}

/// All three, and each at its port only. A host that does not see the cluster is alive and not ready.
async fn a_host_answers_its_probes(env: &mut TestEnv) -> Result<()> {
    let deployed = deploy(env).await?;
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    env.host.ready().await?;
    let objects = rendered().await?;
    let container = &of_kind(&objects, "Deployment")?["spec"]["template"]["spec"]["containers"][0];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let get = &container[probe]["httpGet"];
        let (path, port) = (text(&get["path"]), text(&get["port"]));
        let (status, _) = env.host.get(port, path).await?;
        ensure!(status == 200, "the {probe} gets {status} at {port} {path}");
        let (elsewhere, _) = env.host.get("metrics", path).await?;
        ensure!(elsewhere == 404, "the {probe} gets {elsewhere} at the port of the metrics");
    }
    ensure!(env.host.get("metrics", "/metrics").await?.0 == 200, "there are no metrics");
    ensure!(env.host.get("health", "/metrics").await?.0 == 404, "the metrics are open at another port, too");

    env.host.kill().await?;
    let unreachable = "https://127.0.0.1:1";
    let kubeconfig = std::fs::read_to_string(deployed.kubeconfig())?.replace(env.cluster.plane.url(), unreachable);
    let (folder, setup) = (tempfile::tempdir()?, deployed.setup());
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig)?;
    env.set_up_host(|new| {
        *new = setup;
        new.kubeconfig = path;
    })?;
    env.host.resume().await?;
    for (probe, expected) in [("startupProbe", 200), ("livenessProbe", 200), ("readinessProbe", 503)] {
        let path = text(&container[probe]["httpGet"]["path"]);
        let (status, body) = env.host.get("health", path).await?;
        ensure!(status == expected, "without the cluster, the {probe} gets {status}: {body}");
    }
    Ok(())
}

/// And nothing else. The policy names ports, for no policy can name the API server, and registries are anywhere.
async fn a_host_reaches_the_api_server_and_registries(env: &mut TestEnv) -> Result<()> {
    let deployed = deploy(env).await?;
    let registry = Registry::start(false).await?;
    push(&registry, &artifacts::plugin("app-service")?, "web:latest").await?;
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    env.namespace.apply(plugin_object("web", source(&registry, "web:latest"))).await?;
    let pid = env.host.pid()?;
    let (server, registry) = (port_of(env.cluster.plane.url())?, port_of(&registry.image(""))?);
    let mut reached = BTreeSet::new();
    eventually(PATIENCE, "the plugin to be loaded", async || {
        let Ports { listening, reached: now } = sockets::ports(pid)?;
        reached.extend(now.into_iter().filter(|port| !listening.contains(port)));
        let plugin = env.namespace.get("Plugin", "web").await?.context("no Plugin")?;
        Ok(Look::of(condition(&plugin, "Loaded")["status"] == "True", plugin["status"].to_string()))
    })
    .await?;
    ensure!(reached.contains(&server), "it has not reached the API server: {reached:?}");
    let others: Vec<_> = reached.iter().filter(|port| ![server, registry].contains(*port)).collect();
    ensure!(others.is_empty(), "it has reached {others:?}");
    Ok(())
}

fn number(value: &Value) -> Result<u16> {
    Ok(u16::try_from(value.as_u64().context("no number")?)?)
}

/// The port in an address, `HOST:PORT/…`.
fn port_of(address: &str) -> Result<u16> {
    let (_, rest) = address.rsplit_once(':').context("no port")?;
    Ok(rest.trim_end_matches('/').parse()?)
}

/// The chart in the test's namespace, on an API server of its own.
async fn deploy(env: &mut TestEnv) -> Result<Deployed> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml", "crds/appservices.apps.example.com.yaml"])
        .await?;
    let (own, admin) = (env.namespace.name.clone(), env.cluster.plane.kubeconfig_path());
    let release = Release { chart: "pilothouse", name: HOST, namespace: &own, values: &[] };
    Helm::get().await?.install(release, &admin).await?;
    Deployed::read(env, &own, HOST).await
}

async fn rendered() -> Result<Vec<Value>> {
    Helm::get().await?.objects(Release { chart: "pilothouse", name: HOST, namespace: HOST, values: &[] }).await
}

fn of_kind<'o>(objects: &'o [Value], kind: &str) -> Result<&'o Value> {
    objects.iter().find(|object| object["kind"] == kind).with_context(|| format!("no {kind}"))
}

/// Starts a host in a network without anybody else.
fn alone(binary: &Path, container: &Value, folder: &Path) -> Result<Child> {
    let kubeconfig = folder.join("kubeconfig");
    let cluster = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "none"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    });
    std::fs::write(&kubeconfig, cluster.to_string())?;
    let cache = format!("--cache-dir={}", folder.display());
    let arguments = container["args"].as_array().context("no arguments")?.iter().map(text);
    let arguments = arguments.map(|it| it.replace("--cache-dir=/cache", &cache));
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net"]).kill_on_drop(true).stdin(Stdio::null());
    command.arg(binary).args(arguments).arg("--kubeconfig").arg(kubeconfig).env("POD_NAMESPACE", HOST);
    Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}
