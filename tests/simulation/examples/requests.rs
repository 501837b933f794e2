//! Measures what requests to the simulated API server cost: `cargo run --release -p pilothouse-simulation --example requests`.

use std::{sync::Arc, time::Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Request;
use jiff::Timestamp;
use pilothouse_simulation::api_server::{ApiServer, Catalog, Limit, User};
use serde_json::{Value, json};

/// How often each request is sent.
const TIMES: u32 = 2_000;

fn main() -> Result<()> {
    let begun = Instant::now();
    let catalog = Arc::new(Catalog::new()?);
    println!("catalog, once per process: {:?}", begun.elapsed());
    let mut measure = Measure { server: ApiServer::new(catalog.clone()), user: User::admin("admin") };
    let begun = Instant::now();
    for _ in 0..TIMES {
        std::hint::black_box(ApiServer::new(catalog.clone()));
    }
    println!("new server: {:?}", begun.elapsed() / TIMES);
    measure.send("POST", "/api/v1/namespaces", "application/json", &json!({"metadata": {"name": "ns"}}))?;
    let deployment = deployment();
    let apply = "application/apply-patch+yaml";
    let path = |index: u32| format!("/apis/apps/v1/namespaces/ns/deployments/d{index}?fieldManager=m&force=true");
    measure.time("apply that creates a Deployment", |measure, index| {
        measure.send("PATCH", &path(index), apply, &named(&deployment, index))
    })?;
    measure.time("apply that changes nothing", |measure, index| {
        measure.send("PATCH", &path(index), apply, &named(&deployment, index))
    })?;
    measure.time("apply that changes a Deployment", |measure, index| {
        let mut changed = named(&deployment, index);
        changed["spec"]["replicas"] = 5.into();
        measure.send("PATCH", &path(index), apply, &changed)
    })?;
    measure.time("merge patch of a Deployment's status", |measure, index| {
        let path = format!("/apis/apps/v1/namespaces/ns/deployments/d{index}/status");
        measure.send("PATCH", &path, "application/merge-patch+json", &json!({"status": {"replicas": 5}}))
    })?;
    measure.time("create of a ConfigMap", |measure, index| {
        let body = json!({"metadata": {"name": format!("c{index}")}, "data": {"a": "1"}});
        measure.send("POST", "/api/v1/namespaces/ns/configmaps", "application/json", &body)
    })?;
    measure.time("read of a Deployment", |measure, index| {
        measure.send("GET", &format!("/apis/apps/v1/namespaces/ns/deployments/d{index}"), "", &Value::Null)
    })?;
    let request = Request::get("/apis/apps/v1/deployments?watch=true&resourceVersion=1").body(Bytes::new())?;
    let watch = measure.server.watch(Timestamp::now(), &measure.user, &request);
    let mut watch = watch.ok().context("the watch is refused")?;
    let begun = Instant::now();
    let lines = measure.server.events(&mut watch, Limit::default());
    println!("event on a watch: {:?}", begun.elapsed() / u32::try_from(lines.len())?);
    Ok(())
}

struct Measure {
    server: ApiServer,
    user: User,
}

impl Measure {
    fn send(&mut self, method: &str, path: &str, content_type: &str, body: &Value) -> Result<()> {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("content-type", content_type).body(body)?;
        let response = self.server.handle(Timestamp::now(), &self.user, &request);
        ensure!(response.status().is_success(), "{path}: {response:?}");
        Ok(())
    }

    fn time(&mut self, what: &str, mut send: impl FnMut(&mut Self, u32) -> Result<()>) -> Result<()> {
        let begun = Instant::now();
        (0..TIMES).try_for_each(|index| send(self, index))?;
        println!("{what}: {:?}", begun.elapsed() / TIMES);
        Ok(())
    }
}

fn named(object: &Value, index: u32) -> Value {
    let mut object = object.clone();
    object["metadata"]["name"] = format!("d{index}").into();
    object
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"app": "a", "pilothouse.dev/plugin": "p"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {"containers": [{
                    "name": "c",
                    "image": "registry.example.com/a:1",
                    "ports": [{"containerPort": 8080, "name": "http"}],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
                    "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                }]},
            },
        },
    })
}
