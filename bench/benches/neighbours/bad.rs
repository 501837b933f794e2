//! What a host keeps of plugins that could not load.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use pilothouse_bench::{
    process::{memory, until_at_rest},
    table::Measured,
};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    artifacts,
    bad_plugins::{Bad, BadPlugins},
    cgroup::Cgroup,
    cluster::{Awaited, Cluster, Namespace, condition, install_crd},
    host::Host,
};
use serde_json::{Value, json};

use crate::CONTAINER;

/// How much more memory the host has afterwards.
pub const KEPT: &str = "after bad plugins: host RSS above before, MiB";

/// How long a bad plugin may take to be reported, and the host to come to rest.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long nothing happens, before memory is measured: a host looks every ten seconds whether it is at rest, and then gives back what is free.
const IDLE: Duration = Duration::from_secs(30);

/// What a host uses of a processor that is at rest.
const AT_REST: f64 = 0.05;

/// The good plugin, and its ConfigMap.
const GOOD: &str = "web";

/// Measures it.
pub async fn measure(measured: &mut Vec<Measured>) -> Result<()> {
    let cluster = Cluster::with(Parts::Api).await?;
    let namespace = cluster.namespace("bad-plugins").await?;
    for crd in ["plugins.pilothouse.dev", "appservices.apps.example.com"] {
        install_crd(&namespace.client(), &artifacts::repository().join(format!("crds/{crd}.yaml"))).await?;
    }
    let container = Cgroup::with_memory(CONTAINER)?;
    let mut setup = namespace.setup();
    setup.cgroup = Some(container.folder().to_owned());
    setup.arguments = ["--plugin-objects", "--host-namespace", &namespace.name].map(str::to_owned).to_vec();
    let mut host = Host::prepare(setup)?;
    host.resume().await?;
    host.ready().await?;
    let pid = host.pid()?;

    let good = std::fs::read(artifacts::plugin("app-service")?)?;
    store(&namespace, GOOD, std::slice::from_ref(&good)).await?;
    apply(&namespace, GOOD, &json!({"source": {"configMap": {"name": GOOD}}})).await?;
    let good_one = Awaited { kind: "Plugin", name: GOOD, what: "to be at work" };
    namespace.until_within(PATIENCE, &good_one, is_at_work).await?;
    let (before, _) = memory_at_rest(pid).await?;

    let bad = BadPlugins::of(&good).await?;
    for Bad { name, keys, spec, .. } in &bad.all {
        if let Some(keys) = keys {
            store(&namespace, name, keys).await?;
        }
        apply(&namespace, name, spec).await.with_context(|| name.clone())?;
    }
    for bad in &bad.all {
        until_reported(&namespace, bad).await?;
    }
    for Bad { name, keys, .. } in &bad.all {
        namespace.delete("Plugin", name).await?;
        if keys.is_some() {
            namespace.delete("ConfigMap", name).await?;
        }
    }
    for Bad { name, .. } in &bad.all {
        namespace.until_gone_within(PATIENCE, "Plugin", name).await?;
    }
    let (after, peak) = memory_at_rest(pid).await?;
    measured.extend([
        ("bad plugins", bad.all.len() as f64),
        ("before bad plugins: host RSS, MiB", before),
        ("beside bad plugins: host's peak of RSS, MiB", peak),
        (KEPT, after - before),
    ]);
    ensure!(host.pid()? == pid, "the host was ended");
    host.stop().await?;
    cluster.stop().await
}

/// What the process keeps once it has been at rest for a while, and its peak, in MiB.
async fn memory_at_rest(pid: u32) -> Result<(f64, f64)> {
    until_at_rest(PATIENCE, &[(pid, AT_REST)]).await?;
    tokio::time::sleep(IDLE).await;
    memory(pid)
}

async fn until_reported(namespace: &Namespace, Bad { name, reason, words, .. }: &Bad) -> Result<()> {
    let is_reported = |object: &Value| {
        let loaded = condition(object, "Loaded");
        loaded["reason"] == *reason && loaded["message"].as_str().is_some_and(|message| message.contains(words))
    };
    let what = format!("to say {reason}, {words}");
    namespace.until_within(PATIENCE, &Awaited { kind: "Plugin", name, what: &what }, is_reported).await.map(drop)
}

fn is_at_work(object: &Value) -> bool {
    condition(object, "Ready")["status"] == "True"
}

async fn store(namespace: &Namespace, name: &str, keys: &[Vec<u8>]) -> Result<()> {
    let keys = keys.iter().enumerate();
    let data: serde_json::Map<_, _> =
        keys.map(|(number, bytes)| (format!("key-{number}"), BASE64_STANDARD.encode(bytes).into())).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "binaryData": data});
    namespace.apply(map).await.map(drop)
}

async fn apply(namespace: &Namespace, name: &str, spec: &Value) -> Result<()> {
    let plugin = json!({
        "apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": name}, "spec": spec,
    });
    namespace.apply(plugin).await.map(drop)
}
