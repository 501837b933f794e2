//! One host with `Plugin` objects, from its installation to a restart without its source.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use pilothouse_bench::{process::cpu, setting, table::Measured};
use pilothouse_control_plane::Parts;
use pilothouse_engine::digest;
use pilothouse_tests::{
    app_services::{AppServices, Follower},
    artifacts,
    cluster::{Cluster, Namespace, install_crd},
    host::Host,
    metrics::Samples,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long one phase may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The name of the `Plugin` and of its ConfigMap.
const PLUGIN: &str = "web";

/// A host at work.
pub struct Bench {
    cluster: Cluster,
    namespace: Namespace,
    web: AppServices,
    objects: Follower,
    children: Follower,
    host: Host,
    /// The machine code and the components that it keeps.
    _cache: TempDir,
}

/// What a host had done at some moment.
struct Mark {
    at: Instant,
    cpu: f64,
    counts: Samples,
}

impl Bench {
    /// Starts an API server, and a host without a plugin whose cache is empty.
    pub async fn start() -> Result<Self> {
        let cluster = Cluster::with(Parts::Api).await?;
        let namespace = cluster.namespace("plugins").await?;
        for crd in ["plugins.pilothouse.dev", "appservices.apps.example.com"] {
            install_crd(&namespace.client(), &artifacts::repository().join(format!("crds/{crd}.yaml"))).await?;
        }
        let web = AppServices::new(&namespace.client(), &namespace.name)?;
        let (objects, children) = (web.follow_objects().await?, web.follow_children().await?);
        let cache = tempfile::tempdir()?;
        let mut setup = namespace.setup();
        setup.cache = cache.path().join("cache");
        setup.arguments = ["--plugin-objects", "--host-namespace", &namespace.name].map(str::to_owned).to_vec();
        let mut host = Host::prepare(setup)?;
        host.resume().await?;
        host.ready().await?;
        Ok(Self { cluster, namespace, web, objects, children, host, _cache: cache })
    }

    /// From a ConfigMap to a reconciled object: first with a compiler, then without.
    pub async fn install(&mut self, measured: &mut Vec<Measured>) -> Result<()> {
        let rows = [
            ["install: ConfigMap to object done, compiled, ms", "install, compiled: host CPU, ms"],
            ["install: ConfigMap to object done, cached, ms", "install, cached: host CPU, ms"],
        ];
        for (number, [time, cpu]) in rows.into_iter().enumerate() {
            let name = format!("first-{number}");
            self.web.create_one(&name).await?;
            let mark = self.mark().await?;
            self.store("app-service").await?;
            let done = self.until_done(&name).await?;
            measured.extend([(time, ms(done, mark.at)), (cpu, self.cpu_since(&mark)?)]);
            self.namespace.delete("Plugin", PLUGIN).await?;
            self.web.delete_one(&name).await?;
        }
        Ok(())
    }

    /// From a changed ConfigMap until all objects are on its version, which is compiled meanwhile.
    pub async fn update(&mut self, measured: &mut Vec<Measured>) -> Result<()> {
        let objects = setting("PLUGINS_OBJECTS", 200);
        self.store("app-service").await?;
        self.web.create(objects).await?;
        let done = self.web.each(objects, async |name| {
            self.objects.until(name, |object| object["status"]["observedGeneration"] == 1).await;
            Ok(())
        });
        tokio::time::timeout(PATIENCE, done).await.context("the objects do not get done")??;
        let mark = self.mark().await?;
        self.store_guest("app-service-next").await?;
        let is_next = |child: &Value| child["metadata"]["annotations"]["apps.example.com/revision"] == "2";
        let last = std::cell::Cell::new(mark.at);
        let swapped = self.web.each(objects, async |name| {
            last.set(last.get().max(self.children.until(name, is_next).await));
            Ok(())
        });
        tokio::time::timeout(PATIENCE, swapped).await.context("the objects do not get to the new version")??;
        let after = self.counts().await?;
        let more = |name: &str| (after.sum(name, &[]) - mark.counts.sum(name, &[])) / objects as f64;
        measured.extend([
            ("update: ConfigMap to all objects on the new version, ms", ms(last.get(), mark.at)),
            ("update: host CPU, ms", self.cpu_since(&mark)?),
            ("update: calls per object", more("pilothouse_plugin_calls_total")),
        ]);
        Ok(())
    }

    /// From the start of a host whose ConfigMap is away to an object done.
    pub async fn restart(&mut self, measured: &mut Vec<Measured>) -> Result<()> {
        let bytes = std::fs::read(artifacts::guest("app-service-next")?)?;
        let named = json!({
            "source": {"configMap": {"name": PLUGIN}}, "digest": format!("sha256:{}", digest(&bytes)),
        });
        self.apply_plugin(named).await?;
        let is_named = |plugin: &Value| plugin["status"]["observedGeneration"] == plugin["metadata"]["generation"];
        self.namespace.until("Plugin", PLUGIN, "to be looked at", is_named).await?;
        self.host.stop().await?;
        self.namespace.delete("ConfigMap", PLUGIN).await?;
        self.web.create_one("after").await?;
        let started = Instant::now();
        self.host.resume().await?;
        let done = self.until_done("after").await?;
        measured.extend([
            ("restart without the ConfigMap: start to object done, ms", ms(done, started)),
            ("restart: host CPU, ms", cpu(self.host.pid()?)? * 1_000.0),
        ]);
        Ok(())
    }

    /// Ends the host.
    pub async fn end(mut self) -> Result<(Cluster, Namespace)> {
        self.host.stop().await?;
        Ok((self.cluster, self.namespace))
    }

    async fn until_done(&self, name: &str) -> Result<Instant> {
        let done = self.objects.until(name, |object| object["status"]["observedGeneration"] == 1);
        tokio::time::timeout(PATIENCE, done).await.with_context(|| format!("{name} does not get done"))
    }

    async fn mark(&self) -> Result<Mark> {
        let (cpu, counts) = (cpu(self.host.pid()?)?, self.counts().await?);
        Ok(Mark { at: Instant::now(), cpu, counts })
    }

    fn cpu_since(&self, mark: &Mark) -> Result<f64> {
        Ok((cpu(self.host.pid()?)? - mark.cpu) * 1_000.0)
    }

    async fn counts(&self) -> Result<Samples> {
        Samples::parse(&self.host.metrics().await?)
    }

    async fn store(&self, plugin: &str) -> Result<()> {
        self.put(&std::fs::read(artifacts::plugin(plugin)?)?).await?;
        self.apply_plugin(json!({"source": {"configMap": {"name": PLUGIN}}})).await
    }

    async fn store_guest(&self, guest: &str) -> Result<()> {
        self.put(&std::fs::read(artifacts::guest(guest)?)?).await
    }

    async fn put(&self, component: &[u8]) -> Result<()> {
        let data = json!({"component": BASE64_STANDARD.encode(component)});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PLUGIN}, "binaryData": data});
        self.namespace.apply(map).await.map(drop)
    }

    async fn apply_plugin(&self, spec: Value) -> Result<()> {
        let plugin = json!({
            "apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": PLUGIN}, "spec": spec,
        });
        self.namespace.apply(plugin).await.map(drop)
    }
}

fn ms(done: Instant, since: Instant) -> f64 {
    done.saturating_duration_since(since).as_secs_f64() * 1_000.0
}
