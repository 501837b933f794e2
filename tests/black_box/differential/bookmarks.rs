//! Bookmarks on watches: who asks for them gets one before the watch ends, with nothing in it but a resource version, and others get none.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::{AsyncBufReadExt, TryStreamExt, future};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use pilothouse_simulation::api_server::{ApiServer, Catalog, Limit, User};
use serde_json::{Value, json};

use super::{
    same::differences,
    side::{Real, Server, Simulated},
};

/// The namespace of the objects.
const NAMESPACE: &str = "bookmarks";

/// A namespace that nobody watches.
const ELSEWHERE: &str = "no-bookmarks";

/// The kinds: what their paths begin with and end with.
const KINDS: [(&str, &str); 4] =
    [("/api/v1", "configmaps"), ("/api/v1", "services"), ("/apis/apps/v1", "deployments"), ("/apis/batch/v1", "jobs")];

/// What asks for bookmarks.
const ALLOW: &str = "allowWatchBookmarks=true";

/// Compares the bookmarks of all kinds.
///
/// # Errors
/// If they differ.
pub async fn run(client: Client) -> Result<()> {
    let mut real = Real(client.clone());
    let server = ApiServer::new(Arc::new(Catalog::new()?));
    let mut simulated = Simulated { server, user: User::admin("admin") };
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    create(&mut real, "/api/v1/namespaces", &namespace).await?;
    create(&mut simulated, "/api/v1/namespaces", &namespace).await?;
    create(&mut real, "/api/v1/namespaces", &json!({"metadata": {"name": ELSEWHERE}})).await?;
    let mut watches = Vec::new();
    for (root, plural) in KINDS {
        // From a resource version, as hosts watch. A real server sends none that is not newer.
        let all = format!("{root}/namespaces/{NAMESPACE}/{plural}");
        let from = |version: u64| format!("{all}?watch=true&resourceVersion={version}");
        let (real_uri, uri) = (from(listed(&mut real, &all).await?), from(listed(&mut simulated, &all).await?));
        create(&mut real, &all, &object(plural)).await?;
        create(&mut simulated, &all, &object(plural)).await?;
        let expected = bookmark(&mut simulated, &format!("{uri}&{ALLOW}"))?;
        let expected = expected.with_context(|| format!("{plural}: no simulated bookmark"))?;
        ensure!(bookmark(&mut simulated, &uri)?.is_none(), "{plural}: a simulated bookmark that nobody asked for");
        let elsewhere = format!("{root}/namespaces/{ELSEWHERE}/{plural}");
        watches.push(Watched { plural, uri: real_uri, elsewhere, expected });
    }
    let compared = watches.iter().map(|watched| compare(&client, watched));
    future::try_join_all(compared).await.map(drop)
}

/// A watch of the real server.
struct Watched {
    plural: &'static str,
    uri: String,
    /// Where objects of the kind are that it does not show.
    elsewhere: String,
    /// The bookmark of the simulated server.
    expected: Value,
}

/// Compares a bookmark with one of a real watch. A real server sends one two seconds before the end of a watch, if something of the kind
/// has changed since the last event that it sent.
async fn compare(client: &Client, watched: &Watched) -> Result<()> {
    let Watched { plural, uri, elsewhere, expected } = watched;
    let (asked, unasked) = (format!("{uri}&{ALLOW}&timeoutSeconds=8"), format!("{uri}&timeoutSeconds=8"));
    let (asked, unasked) =
        future::try_join(read(client, &asked, Some((plural, elsewhere))), read(client, &unasked, None)).await?;
    let found = asked.iter().rfind(|event| event["type"] == "BOOKMARK");
    let found = found.with_context(|| format!("{plural}: no bookmark in {asked:?}"))?;
    ensure!(version(found) > 0 && version(expected) > 0, "{plural}: no resource version: {found} {expected}");
    let lines = differences(&said(found), &said(expected));
    ensure!(lines.is_empty(), "{plural}: {}", lines.join("; "));
    ensure!(unasked.iter().all(|event| event["type"] != "BOOKMARK"), "{plural}: {unasked:?}");
    Ok(())
}

async fn create(server: &mut impl Server, path: &str, body: &Value) -> Result<()> {
    let request = Request::post(path).header("content-type", "application/json").body(body.to_string().into())?;
    let answer = server.send(request).await?;
    ensure!(answer.code == 201, "{}", answer.body);
    Ok(())
}

/// An object of a kind.
fn object(plural: &str) -> Value {
    let labels = json!({"app": "a"});
    let template = |policy: &str| {
        let containers = json!([{"name": "main", "image": "example.com/main"}]);
        json!({"metadata": {"labels": labels}, "spec": {"containers": containers, "restartPolicy": policy}})
    };
    let spec = match plural {
        "services" => json!({"ports": [{"name": "http", "port": 80}]}),
        "deployments" => json!({"selector": {"matchLabels": labels}, "template": template("Always")}),
        "jobs" => json!({"template": template("Never")}),
        _ => Value::Null,
    };
    let mut object = json!({"metadata": {"name": "a"}});
    if !spec.is_null() {
        object["spec"] = spec;
    }
    object
}

/// All events of a watch of the real server, until it ends. If told, creates an object of a kind elsewhere once it has begun.
async fn read(client: &Client, uri: &str, creates: Option<(&str, &str)>) -> Result<Vec<Value>> {
    let mut lines = Box::pin(client.request_stream(Request::get(uri).body(Vec::new())?).await?).lines();
    let mut events = Vec::new();
    while let Some(line) = lines.try_next().await? {
        events.push(serde_json::from_str(&line)?);
        // After its first event, which is that of the object that is there from the beginning.
        if let Some((plural, elsewhere)) = creates.filter(|_| events.len() == 1) {
            create(&mut Real(client.clone()), elsewhere, &object(plural)).await?;
        }
    }
    Ok(events)
}

/// The bookmark at the end of a watch of the simulated server.
fn bookmark(simulated: &mut Simulated, uri: &str) -> Result<Option<Value>> {
    let request = Request::get(uri).header("accept", "application/json").body(Bytes::new())?;
    let watch = simulated.server.watch(Timestamp::now(), &simulated.user, &request);
    let mut watch = watch.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
    simulated.server.events(&mut watch, Limit::default());
    simulated.server.bookmark(&watch).map(|line| Ok(serde_json::from_slice(&line)?)).transpose()
}

/// The resource version of a list.
async fn listed(server: &mut impl Server, all: &str) -> Result<u64> {
    let request = Request::get(all).header("accept", "application/json").body(Bytes::new())?;
    Ok(version(&json!({"object": server.send(request).await?.body})))
}

fn version(event: &Value) -> u64 {
    let version = event["object"]["metadata"]["resourceVersion"].as_str();
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// What a bookmark says, but its resource version, which is that of the whole server, and the empty fields that the types of some kinds have.
fn said(event: &Value) -> Value {
    let object = &event["object"];
    let mut metadata = object["metadata"].clone();
    metadata["resourceVersion"] = "<version>".into();
    json!({"type": event["type"], "kind": object["kind"], "apiVersion": object["apiVersion"], "metadata": metadata})
}
