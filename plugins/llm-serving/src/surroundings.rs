//! The children that stand around the Pods of a server, where an object asks for them: who may reach it, how it is scraped, how it is
//! reached from outside. Kinds that a cluster may lack are only returned where they are installed.

use crate::api::{Ingress, Monitor, MonitorKind};
use crate::child::{Child, Standing};
use crate::container::PORT_NAME;
use crate::gateway::{self, Backend};
use crate::labels;
use crate::server::Server;
use crate::service::ObservedService;
use pilothouse_sdk::{Error, Kind, Request, lookup};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The children, and the kinds that the object asks for and the cluster does not have.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The children.
    pub children: Vec<Child>,
    /// The missing kinds, each with the field that asks for it.
    pub missing_kinds: Vec<MissingKind>,
}

/// A kind that the cluster does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingKind {
    /// The field that asks for it.
    pub field: &'static str,
    /// Its API version.
    pub api_version: &'static str,
    /// Its name.
    pub kind: &'static str,
}

#[derive(Deserialize)]
struct ServiceMonitor {}

impl Kind for ServiceMonitor {
    const API_VERSION: &'static str = "monitoring.coreos.com/v1";
    const KIND: &'static str = "ServiceMonitor";
    const FIELDS: &'static [&'static str] = &["/metadata/name"];
}

#[derive(Deserialize)]
struct PodMonitor {}

impl Kind for PodMonitor {
    const API_VERSION: &'static str = "monitoring.coreos.com/v1";
    const KIND: &'static str = "PodMonitor";
    const FIELDS: &'static [&'static str] = &["/metadata/name"];
}

#[derive(Deserialize)]
struct ResourceClaimTemplate {}

impl Kind for ResourceClaimTemplate {
    const API_VERSION: &'static str = "resource.k8s.io/v1";
    const KIND: &'static str = "ResourceClaimTemplate";
    const FIELDS: &'static [&'static str] = &["/metadata/name"];
}

/// What there is under the names to which ways from outside lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Targets {
    /// Under that of the Service.
    pub service: Standing,
    /// Under that of the InferencePool.
    pub pool: Standing,
}

impl Targets {
    /// What there is for a server of this name.
    pub fn of(request: &Request<impl Sized>, workload: &str) -> Self {
        let service = Standing::of::<ObservedService>(request, workload);
        Self { service, pool: Standing::of::<gateway::Pool>(request, workload) }
    }
}

/// What stands around the Pods of a server. A way from outside only leads to what is ours.
///
/// # Errors
/// A lookup fails.
pub fn of(server: &Server<'_>, targets: Targets) -> Result<Surroundings, Error> {
    let mut all = Surroundings::default();
    let serving = server.spec.serving;
    all.children.extend(serving.network_policy.as_ref().map(|it| Child::recreated(network_policy(server, &it.from))));
    let ingress = serving.ingress.as_ref().map(|given| Child::recreated(ingress(server, given)));
    all.children.extend(ingress.and_then(|ingress| ingress.leading_to(targets.service)));
    if let Some(monitor) = &serving.monitor {
        match monitor.kind {
            MonitorKind::ServiceMonitor => all.add::<ServiceMonitor>("monitor", service_monitor(server, monitor))?,
            MonitorKind::PodMonitor => all.add::<PodMonitor>("monitor", pod_monitor(server, monitor))?,
        };
    }
    if let Some(template) = server.gpus.claim_template(server.workload()) {
        all.add::<ResourceClaimTemplate>("gpuDeviceClass", template)?;
    }
    all.add_gateway(server, targets)?;
    Ok(all)
}

impl Surroundings {
    /// Adds what the Gateway API needs. A route leads to the Service where there can be no pool.
    fn add_gateway(&mut self, server: &Server<'_>, targets: Targets) -> Result<(), Error> {
        let serving = server.spec.serving;
        let has_pool = match &serving.inference_pool {
            Some(given) => self.add::<gateway::Pool>("inferencePool", gateway::pool(server, given))?,
            None => false,
        };
        if let Some(given) = &serving.http_route {
            let (backend, target) =
                if has_pool { (Backend::Pool, targets.pool) } else { (Backend::Service, targets.service) };
            self.add_leading_to::<gateway::Route>("httpRoute", gateway::route(server, given, backend), target)?;
        }
        Ok(())
    }

    /// Adds a child if its kind is installed, and says whether it is.
    fn add<K: Kind + DeserializeOwned>(&mut self, field: &'static str, child: Value) -> Result<bool, Error> {
        self.add_leading_to::<K>(field, child, Standing::Ours)
    }

    /// The same for a child that leads to another one.
    fn add_leading_to<K: Kind + DeserializeOwned>(
        &mut self,
        field: &'static str,
        child: Value,
        target: Standing,
    ) -> Result<bool, Error> {
        let missing = MissingKind::of::<K>(field, child["metadata"]["name"].as_str().unwrap_or_default())?;
        let is_installed = missing.is_none();
        match missing {
            None => self.children.extend(Child::recreated(child).leading_to(target)),
            Some(missing) => self.missing_kinds.push(missing),
        }
        Ok(is_installed)
    }
}

impl MissingKind {
    /// The kind of this type for which a field asks, if the cluster does not have it. The host calls again when it does.
    ///
    /// # Errors
    /// The lookup of an object of this name fails for another reason.
    pub fn of<K: Kind + DeserializeOwned>(field: &'static str, name: &str) -> Result<Option<Self>, Error> {
        match lookup::get::<K>(None, name) {
            Ok(_) => Ok(None),
            Err(Error::KindNotInstalled(_)) => Ok(Some(Self { field, api_version: K::API_VERSION, kind: K::KIND })),
            Err(error) => Err(error),
        }
    }
}

fn network_policy(server: &Server<'_>, from: &[Value]) -> Value {
    let same_namespace = [json!({ "podSelector": {} })];
    let from = if from.is_empty() { &same_namespace[..] } else { from };
    let mut rules = vec![json!({ "from": from, "ports": [{ "port": server.port, "protocol": "TCP" }] })];
    if server.is_multi_node() {
        // The Pods of a group talk to each other on ports that they choose.
        let group = json!({ "podSelector": { "matchLabels": labels::selector(&server.spec.identity) } });
        rules.push(json!({ "from": [group] }));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": {
            "podSelector": { "matchLabels": labels::selector(&server.spec.identity) },
            "policyTypes": ["Ingress"],
            "ingress": rules,
        },
    })
}

fn ingress(server: &Server<'_>, given: &Ingress) -> Value {
    let backend = json!({ "service": { "name": server.workload(), "port": { "name": PORT_NAME } } });
    let path = given.path.as_deref().unwrap_or("/");
    let mut rule = json!({ "http": { "paths": [{ "path": path, "pathType": "Prefix", "backend": backend }] } });
    if let Some(host) = &given.host {
        rule["host"] = json!(host);
    }
    let mut spec = json!({ "rules": [rule] });
    if let Some(class) = &given.class_name {
        spec["ingressClassName"] = json!(class);
    }
    if let Some(secret) = &given.tls_secret_name {
        let mut tls = json!({ "secretName": secret });
        if let Some(host) = &given.host {
            tls["hosts"] = json!([host]);
        }
        spec["tls"] = json!([tls]);
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": spec,
    })
}

fn service_monitor(server: &Server<'_>, given: &Monitor) -> Value {
    let mut monitor = monitor::<ServiceMonitor>(server, given, "endpoints");
    // The headless Service has the same Pods, which would be scraped twice.
    let (role, clients) = labels::SERVICE;
    monitor["spec"]["selector"]["matchLabels"][role] = json!(clients);
    monitor
}

fn pod_monitor(server: &Server<'_>, given: &Monitor) -> Value {
    monitor::<PodMonitor>(server, given, "podMetricsEndpoints")
}

fn monitor<K: Kind>(server: &Server<'_>, given: &Monitor, endpoints: &str) -> Value {
    let path = Some(server.engine.metrics_path.as_str()).filter(|path| !path.is_empty()).unwrap_or("/metrics");
    let mut endpoint = json!({ "port": PORT_NAME, "path": path });
    if let Some(interval) = &given.interval {
        endpoint["interval"] = json!(interval);
    }
    let mut metadata = json!({ "name": server.workload(), "labels": labels::of(server) });
    for (label, value) in &given.labels {
        metadata["labels"][label] = json!(value);
    }
    json!({
        "apiVersion": K::API_VERSION,
        "kind": K::KIND,
        "metadata": metadata,
        "spec": { "selector": { "matchLabels": labels::selector(&server.spec.identity) }, endpoints: [endpoint] },
    })
}
