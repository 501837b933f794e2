//! API servers for tests that need one for themselves, used by one after the other: to start one costs more than most tests do. Each test
//! gets one that has only the objects with which it started. Whatever a test left is deleted in etcd, where no finalizer and no policy holds
//! it back. An API server whose own objects were changed is never used again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::Request;
use kube::{Client, Config};
use pilothouse_control_plane::{Part, Parts};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::{
    cluster::{Cluster, PATIENCE},
    wait::{Look, eventually},
};

/// What the API server changes by itself while it runs: in etcd, the beginnings of the keys.
const CHANGED_BY_THE_SERVER: [&str; 7] = [
    "/registry/apiregistration.k8s.io/",
    "/registry/configmaps/kube-system/",
    "/registry/flowschemas/",
    "/registry/ipaddresses/",
    OWN_LEASES,
    "/registry/prioritylevelconfigurations/",
    "/registry/ranges/",
];

/// Where the Leases are with which API servers know of each other.
const OWN_LEASES: &str = "/registry/leases/kube-system/";

/// Where the groups are that an API server serves, each version as `v1.apps`.
const API_SERVICES: &str = "/registry/apiregistration.k8s.io/apiservices/";

/// Their group, which no object is about.
const GROUP_OF_API_SERVICES: &str = "apiregistration.k8s.io";

/// The last objects that a new API server makes for itself.
const MADE_AT_THE_START: [&str; 5] = [
    "/registry/namespaces/default",
    "/registry/namespaces/kube-node-lease",
    "/registry/namespaces/kube-public",
    "/registry/namespaces/kube-system",
    "/registry/services/specs/default/kubernetes",
];

/// The API servers that no test uses at the moment.
#[derive(Default)]
pub struct ApiServers {
    idle: Mutex<Vec<ApiServer>>,
}

/// An API server, and what it had when it started.
pub struct ApiServer {
    /// The control plane: an API server and etcd.
    pub cluster: Cluster,
    /// What it had when it started.
    pub started_with: Objects,
}

/// The objects of an API server, by their keys in etcd, and when each was changed last.
pub struct Objects(BTreeMap<String, u64>);

/// A client of etcd.
struct Etcd(Client);

impl ApiServers {
    /// An API server that no test uses, or a new one. A new one belongs to this runtime, which has to outlive it.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn take(&self, runtime: &Handle) -> Result<ApiServer> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(server) = idle {
            return Ok(server);
        }
        let of_start = runtime.clone();
        runtime.spawn_blocking(move || of_start.block_on(ApiServer::start())).await?
    }

    /// Takes back an API server after a test.
    ///
    /// # Errors
    /// If it cannot be brought to where it was when it started, for the test stopped it or changed its own objects. It is gone then.
    pub async fn give_back(&self, server: ApiServer) -> Result<()> {
        server.reset().await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(server);
        Ok(())
    }

    /// Stops all that no test uses.
    ///
    /// # Errors
    /// If one does not stop.
    pub async fn stop(self) -> Result<()> {
        for server in self.idle.into_inner().unwrap_or_else(PoisonError::into_inner) {
            server.cluster.stop().await?;
        }
        Ok(())
    }
}

impl ApiServer {
    async fn start() -> Result<Self> {
        let cluster = Cluster::with(Parts::Api).await?;
        let etcd = Etcd::of(&cluster)?;
        let started_with = eventually(PATIENCE, "the API server to make its own objects", async || {
            let Objects(objects) = etcd.objects().await?;
            let missing: Vec<_> = MADE_AT_THE_START.iter().filter(|key| !objects.contains_key(**key)).collect();
            Ok(if missing.is_empty() { Look::Found(Objects(objects)) } else { Look::NotYet(format!("{missing:?}")) })
        })
        .await?;
        Ok(Self { cluster, started_with })
    }

    /// Deletes what came since the start, and waits until the API server serves no kind of it any more.
    async fn reset(&self) -> Result<()> {
        self.cluster.plane.pid(Part::ApiServer).await?;
        let etcd = Etcd::of(&self.cluster)?;
        self.started_with.are_kept_in(&etcd.objects().await?)?;
        let client = self.cluster.plane.client().await?;
        let own_groups = self.started_with.groups();
        eventually(PATIENCE, "the API server to be as it was when it started", async || {
            let new = self.started_with.new_in(&etcd.objects().await?);
            for key in &new {
                etcd.delete(key).await?;
            }
            let mut groups = served_groups(&client).await?;
            groups.retain(|group| !own_groups.contains(group));
            Ok(Look::of(new.is_empty() && groups.is_empty(), (new, groups)))
        })
        .await
    }
}

impl Objects {
    /// An error if an object of then was changed by somebody else than the API server.
    fn are_kept_in(&self, now: &Self) -> Result<()> {
        let by_itself = |key: &str| CHANGED_BY_THE_SERVER.iter().any(|begin| key.starts_with(begin));
        for (key, revision) in &self.0 {
            ensure!(by_itself(key) || now.0.get(key) == Some(revision), "{key} is not as it was");
        }
        Ok(())
    }

    /// The keys of what came since then.
    fn new_in(&self, now: &Self) -> Vec<String> {
        let is_new = |key: &&String| !self.0.contains_key(*key) && !key.starts_with(OWN_LEASES);
        now.0.keys().filter(is_new).cloned().collect()
    }

    /// The groups of the API server's own kinds.
    fn groups(&self) -> BTreeSet<String> {
        let versions = self.0.keys().filter_map(|key| key.strip_prefix(API_SERVICES)?.split_once('.'));
        versions.map(|(_, group)| group).chain([GROUP_OF_API_SERVICES]).map(str::to_owned).collect()
    }
}

/// The groups that the API server serves, in any of its documents.
async fn served_groups(client: &Client) -> Result<BTreeSet<String>> {
    let served = client.list_api_groups().await?.groups.into_iter().map(|group| group.name);
    let index: Value = client.request(Request::get("/openapi/v3").body(Vec::new())?).await?;
    let paths = index["paths"].as_object().context("an index without paths")?;
    let described = paths.keys().filter_map(|path| Some(path.strip_prefix("apis/")?.split('/').next()?.to_owned()));
    Ok(served.chain(described).collect())
}

impl Etcd {
    fn of(cluster: &Cluster) -> Result<Self> {
        Ok(Self(Client::try_from(Config::new(cluster.plane.etcd_url().parse()?))?))
    }

    async fn objects(&self) -> Result<Objects> {
        // From `/` up to the character after it: all keys.
        let all =
            json!({"key": BASE64_STANDARD.encode("/"), "range_end": BASE64_STANDARD.encode("0"), "keys_only": true});
        let answer = self.ask("/v3/kv/range", &all).await?;
        let keys = answer["kvs"].as_array().into_iter().flatten();
        let objects = keys.map(|entry| {
            let key = entry["key"].as_str().context("an entry without a key")?;
            let revision = entry["mod_revision"].as_str().context("an entry without a revision")?;
            Ok((String::from_utf8(BASE64_STANDARD.decode(key)?)?, revision.parse()?))
        });
        Ok(Objects(objects.collect::<Result<_>>()?))
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.ask("/v3/kv/deleterange", &json!({"key": BASE64_STANDARD.encode(key)})).await.map(drop)
    }

    async fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let request = Request::post(path).header("Content-Type", "application/json").body(serde_json::to_vec(body)?)?;
        Ok(self.0.request(request).await?)
    }
}
