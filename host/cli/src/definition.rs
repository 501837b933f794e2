//! One CustomResourceDefinition: applies it and waits until its kind is served. Deletes none.

use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use serde_json::Value;

/// The name of a definition.
///
/// # Errors
/// If it has none.
pub fn name(definition: &Value) -> anyhow::Result<&str> {
    let name = definition.pointer("/metadata/name").and_then(Value::as_str);
    name.context("the CustomResourceDefinition has no metadata.name")
}

/// Applies a definition as a field manager, and waits until its kind is served.
///
/// # Errors
/// If it has no name, the API server refuses it, or does not serve it in time.
pub async fn apply(client: &Client, definition: &Value, manager: &str, served_within: Duration) -> anyhow::Result<()> {
    let (api, name) = (Api::<CustomResourceDefinition>::all(client.clone()), name(definition)?);
    let parameters = PatchParams::apply(manager).force();
    match api.patch(name, &parameters, &Patch::Apply(definition)).await {
        Ok(_) => {}
        // Its message is all that helps.
        Err(kube::Error::Api(status)) => bail!("the API server refuses it: {}", status.message),
        Err(error) => return Err(error).context("failed to apply it"),
    }
    match tokio::time::timeout(served_within, await_condition(api, name, is_crd_established())).await {
        Ok(waited) => Ok(waited.map(drop)?),
        Err(_) => {
            bail!("the API server does not serve '{name}' after {served_within:?}; see `kubectl describe crd {name}`")
        }
    }
}
