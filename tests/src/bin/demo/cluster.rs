//! What the demo does in the cluster, as a person does it with kubectl, in the namespace `default`. It knows no scenario.

use anyhow::{Context, Result};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use pilothouse_tests::cluster::api;
use serde_json::{Value, json};

use crate::follow::Follow;

/// Where the scenario runs.
pub const NAMESPACE: &str = "default";

/// A client with the verbs that the scenario uses.
pub struct Cluster {
    client: Client,
}

impl Cluster {
    /// The verbs of a client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client itself.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// `kubectl apply -f`, of a file with one object.
    pub async fn apply(&self, yaml: &str) -> Result<()> {
        let object: DynamicObject = serde_saphyr::from_str(yaml).context("failed to read the YAML")?;
        let kind = &object.types.as_ref().context("an object without a kind")?.kind;
        let name = object.metadata.name.as_deref().context("an object without a name")?;
        self.api(kind)?.patch(name, &PatchParams::apply("demo"), &Patch::Apply(&object)).await?;
        Ok(())
    }

    /// `kubectl scale`: through the scale subresource.
    pub async fn scale(&self, kind: &str, name: &str, replicas: i32) -> Result<()> {
        let scale = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.api(kind)?.patch_scale(name, &PatchParams::default(), &scale).await?;
        Ok(())
    }

    /// `kubectl patch --type=merge`.
    pub async fn patch(&self, kind: &str, name: &str, patch: &Value) -> Result<()> {
        self.api(kind)?.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// `kubectl delete`.
    pub async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        self.api(kind)?.delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// `kubectl get`.
    pub async fn get(&self, kind: &str, name: &str) -> Result<Value> {
        Ok(serde_json::to_value(self.api(kind)?.get(name).await?)?)
    }

    /// `kubectl get -l app.kubernetes.io/name=…`: the names of the objects that belong to an application.
    pub async fn names_of(&self, kind: &str, application: &str) -> Result<Vec<String>> {
        let selector = ListParams::default().labels(&format!("app.kubernetes.io/name={application}"));
        let items = self.api(kind)?.list(&selector).await?.items;
        Ok(items.into_iter().filter_map(|item| item.metadata.name).collect())
    }

    /// `kubectl get --watch`.
    pub async fn follow(&self, kind: &str, name: &str) -> Result<Follow> {
        Follow::open(&self.api(kind)?, kind, name).await.with_context(|| format!("failed to watch {kind} '{name}'"))
    }

    fn api(&self, kind: &str) -> Result<Api<DynamicObject>> {
        api(&self.client, kind, Some(NAMESPACE))
    }
}

/// Ready replicas of a Deployment as kubectl prints them: `3/3`.
pub fn ready(deployment: &Value) -> String {
    format!("{}/{}", deployment["status"]["readyReplicas"].as_i64().unwrap_or(0), replicas(deployment))
}

/// Whether a Deployment has as many replicas as wanted, all of them ready, and its status is of its current spec.
pub fn is_ready(deployment: &Value, wanted: i64) -> bool {
    let status = &deployment["status"];
    replicas(deployment) == wanted
        && status["observedGeneration"] == deployment["metadata"]["generation"]
        && status["readyReplicas"] == wanted
        && status["replicas"] == wanted
}

/// The replicas that a Deployment asks for.
pub fn replicas(deployment: &Value) -> i64 {
    deployment["spec"]["replicas"].as_i64().unwrap_or(0)
}

/// The identity of an object, new with each creation.
pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}
