//! Resource versions that are compacted: lists, pages and watches from before get 410 from both servers.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::{AsyncBufReadExt, StreamExt};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use pilothouse_simulation::api_server::{ApiServer, Catalog, Limit, User};
use pilothouse_tests::wait::{Look, eventually};
use serde_json::{Value, json};

use super::{
    same::differences,
    side::{Real, Server, Simulated},
};

/// How long the real server may take to compact.
const PATIENCE: Duration = Duration::from_secs(60);

/// The objects.
const PATH: &str = "/api/v1/namespaces/expiry/configmaps";

/// Compares what both say of a resource version that is compacted.
///
/// # Errors
/// If it is not the same.
pub async fn run(client: Client) -> Result<()> {
    let mut real = Real(client.clone());
    let server = ApiServer::new(Arc::new(Catalog::new()?));
    let mut simulated = Simulated { server, user: User::admin("admin") };
    let (real_reads, version) = prepare(&mut real).await?;
    let (simulated_reads, _) = prepare(&mut simulated).await?;
    let revision = simulated.server.revision();
    simulated.server.compact(revision);
    for (what, (real_read, simulated_read)) in
        ["a further page", "a list at a version"].iter().zip(real_reads.iter().zip(&simulated_reads))
    {
        let expected = outcome(&simulated.send(get(simulated_read)?).await?.body);
        ensure!(expected["code"] == 410, "{what}: the simulated server says {expected}");
        eventually(PATIENCE, &format!("{what} to be refused as by the simulated server"), async || {
            // Something must change for the real server to compact.
            change(&mut real, &Timestamp::now().to_string()).await?;
            let lines = differences(&outcome(&real.send(get(real_read)?).await?.body), &expected);
            Ok(Look::of(lines.is_empty(), lines))
        })
        .await?;
    }
    let watch = |version: &str| format!("{PATH}?watch=true&resourceVersion={version}");
    let expected = {
        let mut watch = simulated
            .server
            .watch(Timestamp::now(), &simulated.user, &get(&watch("2"))?)
            .map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
        let line = simulated.server.events(&mut watch, Limit::default()).into_iter().next();
        serde_json::from_slice::<Value>(&line.context("no event")?)?
    };
    eventually(PATIENCE, "a watch to be refused as by the simulated server", async || {
        let stream = client.request_stream(Request::get(watch(&version)).body(Vec::new())?).await?;
        let line = Box::pin(stream).lines().next().await.context("the watch ended")??;
        let event: Value = serde_json::from_str(&line)?;
        let lines = differences(&event_outcome(&event), &event_outcome(&expected));
        Ok(Look::of(lines.is_empty(), lines))
    })
    .await
}

/// Makes some objects. Returns what can be read as long as nothing is compacted, and the resource version of that time.
async fn prepare(server: &mut impl Server) -> Result<(Vec<String>, String)> {
    post(server, "/api/v1/namespaces", &json!({"metadata": {"name": "expiry"}})).await?;
    for name in ["a", "b", "c"] {
        post(server, PATH, &json!({"metadata": {"name": name}})).await?;
    }
    let page = server.send(get(&format!("{PATH}?limit=1"))?).await?.body;
    let text = |field: &str| page["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (next, version) = (text("continue"), text("resourceVersion"));
    ensure!(!next.is_empty(), "there is no further page: {page}");
    change(server, "1").await?;
    let exact = format!("{PATH}?resourceVersion={version}&resourceVersionMatch=Exact");
    Ok((vec![format!("{PATH}?limit=1&continue={next}"), exact], version))
}

async fn change(server: &mut impl Server, value: &str) -> Result<()> {
    let request = Request::patch(format!("{PATH}/a")).header("content-type", "application/merge-patch+json");
    let answer = server.send(request.body(json!({"data": {"a": value}}).to_string().into())?).await?;
    ensure!(answer.code == 200, "{}", answer.body);
    Ok(())
}

async fn post(server: &mut impl Server, path: &str, body: &Value) -> Result<()> {
    let request = Request::post(path).header("content-type", "application/json").body(body.to_string().into())?;
    let answer = server.send(request).await?;
    ensure!(answer.code == 201, "{}", answer.body);
    Ok(())
}

fn get(uri: &str) -> Result<Request<Bytes>> {
    Ok(Request::get(uri).header("accept", "application/json").body(Bytes::new())?)
}

fn outcome(body: &Value) -> Value {
    json!({"kind": body["kind"], "code": body["code"], "reason": body["reason"], "status": body["status"]})
}

fn event_outcome(event: &Value) -> Value {
    json!({"type": event["type"], "object": outcome(&event["object"])})
}
