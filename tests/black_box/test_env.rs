//! The environment of a test: a namespace and a host of its own, and helpers that many tests share. Describes the whole state if
//! a test fails.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use jiff::Timestamp;
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    api_servers::{ApiServer, ApiServers, Objects},
    artifacts,
    audit::Writes,
    cluster::{Cluster, HOST_USER, Namespace, PATIENCE, condition, install_crd},
    host::{Host, Setup},
    metrics::Samples,
    proxy::{Proxy, Upstream},
    wait::{Look, eventually},
};
use serde_json::{Value, json};
use tokio::runtime::Handle;

/// Lines of the host's log that a failure shows.
const TAIL: usize = 60;

/// The kinds whose objects a failure shows.
const SHOWN: [&str; 14] = [
    "AppService",
    "LLMModel",
    "LLMModel.llm.example.com",
    "LLMDeployment",
    "ModelDeployment",
    "Misbehaver",
    "Scripted",
    "Sextet",
    "TrainingJob",
    "Deployment",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Service",
    "Pod",
];

/// A namespace and a host in it. The host does not run yet when a test begins.
pub struct TestEnv {
    /// The control plane, shared with other tests unless the test moved to one of its own.
    pub cluster: Arc<Cluster>,
    /// The test's namespace.
    pub namespace: Namespace,
    /// The test's host.
    pub host: Host,
    own: OwnApiServer,
    /// What the API server had when it started, if another test may have it afterwards.
    started_with: Option<Objects>,
}

/// From where a test gets an API server for itself.
enum OwnApiServer {
    /// A new one.
    New,
    /// From those that tests use one after the other.
    Used { all: Arc<ApiServers>, runtime: Handle },
    /// One of a newer Kubernetes.
    Newer,
}

impl TestEnv {
    /// Creates the namespace and prepares the host.
    pub async fn new(cluster: Arc<Cluster>, test: &str) -> Result<Self> {
        let namespace = cluster.namespace(test).await?;
        let host = Host::prepare(namespace.setup())?;
        Ok(Self { cluster, namespace, host, own: OwnApiServer::New, started_with: None })
    }

    /// If the test needs an API server for itself, it gets one of these. New ones belong to this runtime.
    pub fn uses(&mut self, api_servers: Arc<ApiServers>, runtime: Handle) {
        self.own = OwnApiServer::Used { all: api_servers, runtime };
    }

    /// Moves the test to another control plane, with a new namespace and a new host.
    pub async fn move_to(&mut self, cluster: Cluster) -> Result<()> {
        let namespace = cluster.namespace(&self.namespace.name).await?;
        self.host = Host::prepare(namespace.setup())?;
        self.namespace = namespace;
        self.cluster = Arc::new(cluster);
        self.started_with = None;
        Ok(())
    }

    /// Moves the test to an API server of its own and installs these CRDs, which are files of the repository.
    pub async fn move_to_api_server_with(&mut self, crds: &[&str]) -> Result<()> {
        let (cluster, started_with) = match &self.own {
            OwnApiServer::New => (Cluster::with(Parts::Api).await?, None),
            OwnApiServer::Newer => (Cluster::newer(&[]).await?, None),
            OwnApiServer::Used { all, runtime } => {
                let ApiServer { cluster, started_with } = all.take(runtime).await?;
                (cluster, Some(started_with))
            }
        };
        self.move_to(cluster).await?;
        self.started_with = started_with;
        self.install_crds(crds).await
    }

    /// From now on the API servers that the test gets for itself are of a newer Kubernetes.
    pub fn on_newer_api_servers(&mut self) {
        self.own = OwnApiServer::Newer;
    }

    /// Ends the host, and lets another test have the API server.
    pub async fn end(self) -> Result<()> {
        let Self { cluster, namespace, host, own, started_with } = self;
        drop(host);
        cluster.share_code_of(&namespace)?;
        match (own, started_with, Arc::into_inner(cluster)) {
            (OwnApiServer::Used { all, .. }, Some(started_with), Some(cluster)) => {
                all.give_back(ApiServer { cluster, started_with }).await
            }
            _ => Ok(()),
        }
    }

    /// Installs CRDs, which are files of the repository.
    pub async fn install_crds(&self, crds: &[&str]) -> Result<()> {
        for crd in crds {
            install_crd(&self.namespace.client(), &artifacts::repository().join(crd)).await?;
        }
        Ok(())
    }

    /// Replaces the host by one with another setup.
    pub fn set_up_host(&mut self, change: impl FnOnce(&mut Setup)) -> Result<()> {
        let mut setup = self.namespace.setup();
        change(&mut setup);
        self.host = Host::prepare(setup)?;
        Ok(())
    }

    /// Replaces the host by one that reaches the API server through a proxy.
    pub async fn behind_proxy(&mut self, upstream: &Upstream) -> Result<Proxy> {
        self.behind_proxy_with(upstream, &[]).await
    }

    /// As [`TestEnv::behind_proxy`], for a host with these arguments.
    pub async fn behind_proxy_with(&mut self, upstream: &Upstream, arguments: &[&str]) -> Result<Proxy> {
        let proxy = Proxy::start(upstream.clone(), &self.namespace.name).await?;
        self.set_up_host(|setup| {
            setup.kubeconfig = proxy.kubeconfig();
            setup.arguments = arguments.iter().map(ToString::to_string).collect();
        })?;
        Ok(proxy)
    }

    /// The API server as the host sees it.
    pub async fn upstream(&self) -> Result<Upstream> {
        Upstream::of(&self.namespace.setup().kubeconfig).await
    }

    /// Installs plugins, starts the host and waits until it is ready.
    pub async fn start(&mut self, plugins: &[&str]) -> Result<()> {
        plugins.iter().try_for_each(|plugin| self.install(plugin))?;
        self.host.resume().await?;
        self.host.ready().await
    }

    /// Installs a plugin of the repository or of the tests under its own name.
    pub fn install(&self, plugin: &str) -> Result<()> {
        self.replace(plugin, plugin)
    }

    /// Installs a plugin in the place of another one.
    pub fn replace(&self, plugin: &str, with: &str) -> Result<()> {
        self.host.install(&artifacts::any_plugin(with)?, &format!("{plugin}.wasm"))
    }

    /// Starts the host with the plugin `app-service` and brings an `AppService` `web` to rest.
    pub async fn start_with_web(&mut self) -> Result<()> {
        self.start(&["app-service"]).await?;
        self.namespace.apply(app("web")).await?;
        self.at_rest("web").await
    }

    /// Starts a host that has all that is measured: the plugin `app-service`, an election, and a `Plugin`. That one is suspended, for the cluster
    /// has other hosts.
    pub async fn start_measured(&mut self) -> Result<()> {
        let namespace = self.namespace.name.clone();
        install_crd(&self.namespace.client(), &artifacts::repository().join("crds/plugins.pilothouse.dev.yaml"))
            .await?;
        self.set_up_host(|setup| {
            let host_namespace = format!("--host-namespace={namespace}");
            setup.arguments = vec!["--leader-elect".to_owned(), "--plugin-objects".to_owned(), host_namespace];
        })?;
        let spec = json!({"source": {"configMap": {"name": "none"}}, "suspended": true});
        let plugin = json!({
            "apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": namespace}, "spec": spec,
        });
        self.namespace.apply(plugin).await?;
        self.start_with_web().await?;
        let is_seen = |object: &Value| condition(object, "Ready")["reason"] == "Suspended";
        self.namespace.until("Plugin", &namespace, "to be seen", is_seen).await.map(drop)
    }

    /// Waits until an `AppService` is ready and neither it nor its Deployment has anything left to report.
    pub async fn at_rest(&self, name: &str) -> Result<()> {
        let what = "to have its Deployment rolled out";
        let holds = |deployment: &Value| {
            let rolled_out = condition(deployment, "Progressing")["reason"] == "NewReplicaSetAvailable";
            rolled_out && deployment["metadata"]["generation"] == deployment["status"]["observedGeneration"]
        };
        self.namespace.until("Deployment", name, what, holds).await?;
        self.namespace.until("AppService", name, "to be ready with all replicas", is_at_rest).await?;
        Ok(())
    }

    /// Creates this many `AppService`s, brings all of them to rest, and returns their names.
    pub async fn many_at_rest(&self, count: usize) -> Result<Vec<String>> {
        let names: Vec<_> = (0..count).map(|number| format!("web-{number}")).collect();
        for name in &names {
            self.namespace.apply(app(name)).await?;
        }
        for name in &names {
            self.at_rest(name).await?;
        }
        Ok(names)
    }

    /// The host's metrics.
    pub async fn metrics(&self) -> Result<Samples> {
        Samples::parse(&self.host.metrics().await?)
    }

    /// The host's metrics once its queues are empty and no reconcile is in progress. Whatever the test has seen is counted by then.
    pub async fn metrics_at_rest(&self) -> Result<Samples> {
        at_rest(&self.host, PATIENCE).await
    }

    /// How many reconciles of a plugin have ended since the host started.
    pub async fn reconciles(&self, plugin: &str) -> Result<f64> {
        Ok(self.metrics().await?.sum("controller_runtime_reconcile_total", &[("controller", plugin)]))
    }

    /// How many calls of a plugin have ended since the host started.
    pub async fn calls(&self, plugin: &str) -> Result<f64> {
        Ok(self.metrics().await?.sum("pilothouse_plugin_calls_total", &[("plugin", plugin)]))
    }

    /// How many repairs of drift the host has counted for a plugin, once it is at rest.
    pub async fn drift_repaired(&self, plugin: &str) -> Result<f64> {
        Ok(self.metrics_at_rest().await?.sum("pilothouse_drift_repaired_total", &[("plugin", plugin)]))
    }

    /// Makes a change that must be followed by a reconcile of the plugin, and waits for its end.
    pub async fn reconciled_after(&self, plugin: &str, change: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let before = self.reconciles(plugin).await?;
        change().await?;
        eventually(PATIENCE, &format!("a reconcile of {plugin}"), async || {
            let now = self.reconciles(plugin).await?;
            Ok(Look::of(now > before, now))
        })
        .await
    }

    /// Sets an annotation that nobody reads.
    pub async fn touch(&self, kind: &str, name: &str, value: impl ToString) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"tests.pilothouse.dev/touched": value.to_string()}}});
        self.namespace.patch(kind, name, patch).await?;
        Ok(())
    }

    /// Touches an `AppService` this many times and waits each time until it has been reconciled. Whatever the host had to do before
    /// is done then.
    pub async fn reconcile_often(&self, name: &str, times: usize) -> Result<()> {
        for turn in 0..times {
            self.reconciled_after("app-service", async || self.touch("AppService", name, turn).await).await?;
        }
        Ok(())
    }

    /// The writes that the host made in this namespace, in order.
    pub async fn host_writes(&self) -> Result<Vec<String>> {
        self.writes_of(HOST_USER).await
    }

    /// The writes that a user made in this namespace, in order.
    pub async fn writes_of(&self, user: &str) -> Result<Vec<String>> {
        Ok(self.timed_writes_of(user).await?.into_iter().map(|(_, write)| write).collect())
    }

    /// The writes that a user made in this namespace, in order, with the times of their responses. Waits until no write is in
    /// progress, so that all writes whose effect the test has seen are included.
    pub async fn timed_writes_of(&self, user: &str) -> Result<Vec<(Timestamp, String)>> {
        eventually(PATIENCE, &format!("the writes of {user} to be answered"), async || {
            let Writes { answered, under_way } = self.audited(user)?;
            Ok(if under_way.is_empty() { Look::Found(answered) } else { Look::NotYet(under_way.join(", ")) })
        })
        .await
    }

    fn audited(&self, user: &str) -> Result<Writes> {
        Writes::read(&self.cluster.plane.audit_log_path(), user, &self.namespace.name)
    }

    /// Waits until the conditions of an object say that it is stalled for this reason.
    pub async fn stalled(&self, kind: &str, name: &str, reason: &str) -> Result<Value> {
        let what = format!("to be stalled with {reason}");
        let holds = |object: &Value| {
            let is = |type_: &str, status: &str| {
                condition(object, type_)["status"] == status && condition(object, type_)["reason"] == reason
            };
            is("Stalled", "True") && is("Ready", "False") && condition(object, "Reconciling").is_null()
        };
        self.namespace.until(kind, name, &what, holds).await
    }

    /// Waits for an Event with this reason on an object.
    pub async fn event(&self, kind: &str, name: &str, reason: &str) -> Result<Value> {
        eventually(PATIENCE, &format!("an Event {reason} on {kind} '{name}'"), async || {
            let events = self.namespace.list("Event").await?;
            let found = events.iter().find(|event| {
                let about = &event["involvedObject"];
                about["kind"] == kind && about["name"] == name && event["reason"] == reason
            });
            Ok(found.cloned().map_or_else(|| Look::NotYet(format!("{} others", events.len())), Look::Found))
        })
        .await
    }

    /// The objects, the Events, the host's writes and the end of its log, for the message of a failed test.
    pub async fn describe_state(&self) -> String {
        let mut lines = Vec::new();
        for kind in SHOWN {
            for mut object in self.namespace.list(kind).await.unwrap_or_default() {
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("managedFields");
                }
                lines.push(format!("{kind}: {object}"));
            }
        }
        for event in self.namespace.list("Event").await.unwrap_or_default() {
            if event["reportingComponent"] == "pilothouse" {
                lines.push(format!(
                    "Event on {}: {} {}",
                    event["involvedObject"]["name"], event["reason"], event["message"]
                ));
            }
        }
        let (writes, log) = (self.audited(HOST_USER), self.end_of_log());
        format!("{}\nthe host's writes: {writes:#?}\nthe host's log:\n{log}", lines.join("\n"))
    }

    /// The lines of the host's log since its last start.
    pub fn log_lines(&self) -> Vec<Value> {
        self.host.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The last lines of the host's log, over all its starts.
    pub fn end_of_log(&self) -> String {
        let log = self.host.whole_log();
        let log: Vec<_> = log.lines().collect();
        log[log.len().saturating_sub(TAIL)..].join("\n")
    }
}

/// The metrics of a host once its queues are empty and no reconcile is in progress.
pub async fn at_rest(host: &Host, patience: Duration) -> Result<Samples> {
    let read = async || Samples::parse(&host.metrics().await?);
    eventually(patience, "the host to be at rest", async || {
        let now = read().await?;
        // The queue reports both values of the same moment.
        let (waiting, working) = (now.sum("workqueue_depth", &[]), now.sum("workqueue_unfinished_work_seconds", &[]));
        Ok(Look::of(waiting == 0.0 && working == 0.0, (waiting, working)))
    })
    .await?;
    // The other metrics of a reconcile that ended during this read may be too old, so all are read once more.
    read().await
}

/// An `AppService` with three replicas.
pub fn app(name: &str) -> Value {
    json!({
        "apiVersion": "apps.example.com/v1",
        "kind": "AppService",
        "metadata": {"name": name},
        "spec": {"replicas": 3, "image": "example.com/web:1"},
    })
}

/// A `Misbehaver` with this act, which says what its plugin does.
pub fn misbehaver(name: &str, act: &str) -> Value {
    json!({
        "apiVersion": "test.pilothouse.dev/v1",
        "kind": "Misbehaver",
        "metadata": {"name": name},
        "spec": {"act": act},
    })
}

/// A `Sextet` with all six children.
pub fn sextet(name: &str) -> Value {
    json!({
        "apiVersion": "test.pilothouse.dev/v1",
        "kind": "Sextet",
        "metadata": {"name": name},
        "spec": {"data": {"tempo": "largo"}, "secret": "b25l", "port": 80},
    })
}

/// A `Scripted` with a spec that says what its plugin returns.
pub fn scripted(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "test.pilothouse.dev/v1",
        "kind": "Scripted",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// A `Scripted` whose plugin returns this answer.
pub fn answering(name: &str, response: Value) -> Value {
    scripted(name, json!({"response": response}))
}

/// A `Deployment` as a child that a plugin returns: no replicas, and one container.
pub fn deployment(name: &str, container: Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    })
}

/// A spec of a `Scripted` whose plugin returns these children and nothing else.
pub fn returning(children: impl IntoIterator<Item = Value>) -> Value {
    let children: Vec<_> = children.into_iter().map(|object| json!({"object": object})).collect();
    json!({"response": {"children": children}})
}

/// A `ConfigMap` as a child that a plugin returns.
pub fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Whether an object is ready in its present generation.
pub fn is_ready(object: &Value) -> bool {
    let ready = condition(object, "Ready");
    ready["status"] == "True" && ready["observedGeneration"] == object["metadata"]["generation"]
}

/// Whether the status of an `AppService` reports everything as desired for its present generation.
fn is_at_rest(app: &Value) -> bool {
    let wanted = &app["spec"]["replicas"];
    let ready = condition(app, "Ready");
    let status = &app["status"];
    ready["status"] == "True"
        && ready["observedGeneration"] == app["metadata"]["generation"]
        && status["readyReplicas"] == *wanted
        && status["replicas"] == *wanted
        && condition(app, "Available")["message"] == format!("{wanted} replicas available")
}
